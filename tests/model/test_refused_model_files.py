"""Files that are whole and have the right digest, but were not written by `save`: every value is checked."""

import hashlib
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from keydyn import POHMM, load
from keydyn.model import ModelFileError


@pytest.fixture
def path(tmp_path):
    """A saved model of three event types and two features."""
    rng = np.random.default_rng(0)
    events = rng.choice(["a", "b", "c"], 60)
    model = POHMM(emission=["lognormal", "gamma"], tol=0.1).fit(
        np.exp(rng.normal(4, 0.4, (60, 2))), events=events
    )
    model.save(tmp_path / "model.keydyn")
    return tmp_path / "model.keydyn"


def read(path):
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["keydyn"])
        return header, {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118


def write(path, header, tensors):
    """A file with a digest that fits, computed as the format says."""
    if isinstance(header, dict):
        plain = {name: value for name, value in header.items() if name != "sha256"}
        digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
        for name in sorted(tensors):
            digest.update(f"\n{name} {tensors[name].dtype.str} {tensors[name].shape}\n".encode())
            digest.update(tensors[name].tobytes())
        header = plain | {"sha256": digest.hexdigest()}
    save_file(
        tensors, path, {"keydyn": header if isinstance(header, str) else json.dumps(header, sort_keys=True)}
    )


def set_header(*keys, to):
    """A change of one entry of the header."""

    def change(header, tensors):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = to

    return change


def drop_header(*keys):
    def change(header, tensors):
        for key in keys[:-1]:
            header = header[key]
        del header[keys[-1]]

    return change


def set_tensor(name, to):
    """A change of one tensor, by a function of it, or a new one."""

    def change(header, tensors):
        tensors[name] = np.ascontiguousarray(to(tensors[name]) if callable(to) else to)

    return change


def drop_tensor(name):
    return lambda header, tensors: tensors.pop(name)


def entry(value):
    """The same array with its last entry replaced."""

    def change(values):
        values.flat[-1] = value
        return values

    return change


HEADER = {
    "newer": (set_header("version", to=99), r"written by a newer keydyn \(format version 99\); .* up to 1"),
    "version 0": (set_header("version", to=0), "damaged: format version 0"),
    "version text": (set_header("version", to="1"), "damaged: format version '1'"),
    "format": (set_header("format", to="keydyn-template"), "is not a keydyn model"),
    "class": (set_header("class", to="os.system"), "class 'os.system' is not known"),
    "class list": (set_header("class", to=["POHMM"]), r"class \['POHMM'\] is not known"),
    "family": (set_header("families", 0, "family", to="cauchy"), "emission 'cauchy' is not known"),
    "family's settings": (set_header("families", 0, "df", to=3.0), "unexpected keyword argument 'df'"),
    "family as text": (set_header("families", 0, to="lognormal"), r"families\[0\] is 'lognormal', not"),
    "families fewer": (
        set_header("families", to=[{"family": "lognormal"}]),
        "arrays that are not known: emission.1.scale",
    ),
    "families none": (set_header("families", to=[]), "arrays that are not known: emission.0.loc"),
    "families swapped": (lambda h, t: h["families"].reverse(), "arrays that are not known: emission.0.loc"),
    "no settings": (drop_header("settings"), "it has no settings"),
    "settings list": (set_header("settings", to=[1, 2]), r"settings is \[1, 2\], not an object"),
    "extra parameter": (set_header("settings", "command", to="ls"), "unexpected keyword argument 'command'"),
    "n_states text": (set_header("settings", "n_states", to="2"), "n_states must be a whole number"),
    "n_states other": (set_header("settings", "n_states", to=3), "header says 3 states, the arrays 2"),
    "tol text": (set_header("settings", "tol", to="low"), "tol must be zero or greater, not 'low'"),
    "callback": (set_header("settings", "callback", to="print"), "callback must be None or callable"),
    "stop reason": (set_header("fit", "stop_reason_", to="banana"), "stop_reason_ is 'banana', not"),
    "no log-likelihood": (
        set_header("fit", "log_likelihood_", to=float("nan")),
        "log_likelihood_ is nan, not",
    ),
    "iterations": (set_header("fit", "n_iter_", to=-5), "n_iter_ is -5, not a whole number of 1 or more"),
    "a longer history": (set_header("fit", "n_iter_", to=10_000), r"history must have shape \(10000\)"),
    "true parameters": (set_header("fit", "n_parameters_", to=True), "fit.n_parameters_ is True"),
    "an HMM with types": (set_header("class", to="HMM"), "an HMM has no event types of its own"),
    "types that are fractions": (
        set_header("event_types", to=[1.0, 2.0]),
        "not a list of text or whole numbers",
    ),
    "names in a string": (set_header("feature_names", to="ab"), "feature_names is 'ab', not a list"),
    "fixed": (set_header("settings", "fixed", to=7), "fixed must be a tuple of some of"),
    "smoothing": (set_header("smoothing", "start", to=3.0), "smoothing must be"),
    "smoothing list": (set_header("smoothing", to=[]), r"smoothing is \[\], not an object"),
    "types fewer": (set_header("event_types", to=["a", "b"]), r"startprob must have shape \(2, 2\)"),
    "types twice": (set_header("event_types", to=["a", "b", "a"]), "event_types names 'a' more than once"),
    "types mixed": (set_header("event_types", to=["a", 1, "b"]), "all text or all whole numbers"),
    "types text": (set_header("event_types", to="abc"), "event_types is 'abc', not a list"),
    "types missing": (set_header("event_types", to=["a", None, "b"]), "missing label at position 1"),
    "types nested": (set_header("event_types", to=[["a"], ["b"], ["c"]]), "text or whole numbers"),
    "types huge": (set_header("event_types", to=[1, 2, 10**400]), "64 bits"),
    "feature names": (set_header("feature_names", to=["one"]), "feature_names has 1 names for 2 features"),
    "feature names numbers": (set_header("feature_names", to=[1, 2]), r"feature_names\[0\] is 1, not text"),
    "closed": (set_header("closed", to="yes"), "closed is 'yes'"),
    "fit name": (set_header("fit", "predict", to=1.0), r"fit has fields that are not known: \['predict'\]"),
    "fit value": (set_header("fit", "n_iter_", to="many"), "fit.n_iter_ is 'many'"),
    "fit list": (set_header("fit", to=[]), r"fit is \[\], not an object"),
}
TENSORS = {
    "start sum": (set_tensor("startprob", lambda v: v * 1.01), r"startprob\[0\] adds up to 1.01"),
    "start NaN": (set_tensor("startprob", entry(np.nan)), r"startprob\[2, 1\] is nan"),
    "start type": (
        set_tensor("startprob", lambda v: v.astype(np.float32)),
        "startprob has values of type float32",
    ),
    "start shape": (set_tensor("startprob", lambda v: v[0]), "startprob must have shape"),
    "no start": (drop_tensor("startprob"), "it has no startprob"),
    "transition negative": (set_tensor("transmat", entry(-0.5)), r"transmat\[\d, 1, 1\] is -0.5"),
    "transition fewer": (set_tensor("transmat", lambda v: v[:-1]), "transmat must have shape"),
    "transition type": (
        set_tensor("transmat", lambda v: v.astype(np.int64)),
        "transmat has values of type int64",
    ),
    "pairs order": (set_tensor("pairs", lambda v: v[::-1]), "pairs is not sorted"),
    "pairs twice": (set_tensor("pairs", lambda v: v[[0, 0, *range(2, len(v))]]), "pairs is not sorted"),
    "pairs beyond": (set_tensor("pairs", entry(3)), "pairs has values that are not between 0 and 2"),
    "pairs negative": (set_tensor("pairs", lambda v: v - 1), "pairs has values that are not between 0 and 2"),
    "pairs type": (set_tensor("pairs", lambda v: v.astype(np.float64)), "pairs has values of type float64"),
    "pairs shape": (set_tensor("pairs", lambda v: v.ravel()), "pairs must have shape"),
    "scale": (set_tensor("emission.0.scale", entry(-1.0)), "emission.0: scale must be greater than zero"),
    "shape": (set_tensor("emission.1.shape", entry(0.0)), "emission.1: shape must be greater than zero"),
    "loc": (set_tensor("emission.0.loc", entry(np.inf)), "emission.0.loc has values that are not finite"),
    "loc size": (set_tensor("emission.0.loc", lambda v: v[:2]), "emission.0.loc must have shape"),
    "no loc": (drop_tensor("emission.0.loc"), "it has no emission.0.loc"),
    "marginal": (set_tensor("marginal.transmat", lambda v: v * 0.9), "marginal.transmat.* adds up to"),
    "marginal emission": (set_tensor("marginal.emission.0.scale", entry(0.0)), "marginal.emission.0: scale"),
    "part of the marginal": (drop_tensor("marginal.startprob"), "it has no marginal.startprob"),
    "chain sum": (set_tensor("chain.pair_prob", entry(0.99)), "chain.pair_prob does not add up"),
    "chain negative": (
        set_tensor("chain.leaving", entry(-1.0)),
        "chain.leaving has values that are not between 0 and inf",
    ),
    "chain NaN": (set_tensor("chain.prob", entry(np.nan)), "chain.prob.* is nan"),
    "half a chain": (drop_tensor("chain.pair_prob"), "it has no chain.pair_prob"),
    "other half": (drop_tensor("chain.startprob"), "it has no chain.startprob"),
    "stationary": (set_tensor("stationary", lambda v: v + 1.0), "stationary.* adds up to"),
    "history": (set_tensor("history", entry(np.nan)), "history has values that are not finite"),
    "floored": (set_tensor("scale_floored.0", lambda v: v[:1]), "scale_floored.0 must have shape"),
    "floored type": (
        set_tensor("scale_floored.0", lambda v: v * 2.0),
        "scale_floored.0 has values of type float64",
    ),
    "stranger": (set_tensor("payload", np.ones(3)), "arrays that are not known: payload"),
    "half precision": (
        set_tensor("history", lambda v: v.astype(np.float16)),
        "history has values of type float16",
    ),
}
CASES = HEADER | TENSORS


@pytest.mark.parametrize("kind", CASES)
def test_nonsense_is_refused_and_named(kind, path):
    change, message = CASES[kind]
    header, tensors = read(path)
    change(header, tensors)
    write(path, header, tensors)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_the_rewriting_itself_is_sound(path):
    """Header and tensors written back unchanged load, so the refusals above are for the change alone."""
    before = load(path)
    write(path, *read(path))
    np.testing.assert_array_equal(load(path).transmat_, before.transmat_)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([1, 2, 3], "is not a keydyn model"),
        ("null", "is not a keydyn model"),
        ("{", "its header cannot be read"),
        ("[" * 100_000, "its header cannot be read"),
        ('{"format": "keydyn-model",  "version": 1}', "its header was changed"),
        ('{"format": "keydyn-model", "format": "keydyn-model", "version": 1}', "its header was changed"),
        ({"format": "keydyn-model", "version": 1}, "class None is not known"),
        ({"format": "keydyn-model", "version": 1, "x": "\ud800"}, "class None is not known"),
    ],
)
def test_headers_of_other_forms(header, message, path):
    write(path, header, read(path)[1])
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_digest_that_does_not_fit(path):
    header, tensors = read(path)
    tensors["emission.0.loc"][0, 0] += 1e-12
    save_file(tensors, path, {"keydyn": json.dumps(header, sort_keys=True)})
    with pytest.raises(ModelFileError, match="do not match its SHA-256"):
        load(path)
