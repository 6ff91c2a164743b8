"""Save and load: the round trip is exact, and every other file is refused with a reason."""

import os
import re
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import keydyn
from keydyn import HMM, POHMM, Sequences, load
from keydyn.model import ModelFileError, Normal, Student

ATTRIBUTES = ["event_types_", "startprob_", "transmat_", "event_startprob_", "event_transmat_", "event_prob_"]
ATTRIBUTES += ["stationary_", "log_likelihood_", "history_", "n_iter_", "converged_", "stop_reason_"]
ATTRIBUTES += ["n_parameters_", "n_parameters_full_", "n_features_in_", "feature_names_in_"]
PARTS = ["startprob", "transmat", "transmat_from", "transmat_to"]
CHAIN = {"chain.startprob", "chain.pair_prob"}


def data(types="abc", n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(4.0, 0.4, (90, n_features)))
    return X, rng.choice(np.array(list(types)), 90), [40, 30, 20]


def fitted(model, types="abc", n_features=2):
    X, events, lengths = data(types, n_features)
    return model.fit(X, events=events, lengths=lengths)


def given(**chain):
    rng = np.random.default_rng(1)
    return POHMM.from_parameters(
        [7, 3],
        rng.dirichlet([1, 1, 1], 2),
        rng.dirichlet([1, 1, 1], (2, 2, 3)),
        [
            ("normal", rng.normal(50, 9, (2, 3)), rng.gamma(9, 1, (2, 3))),
            ("gamma", {"shape": 2.0, "scale": 9.0}),
        ],
        **chain,
    )


def from_frame():
    X, events, lengths = data()
    frame = pd.DataFrame({"Dauer": X[:, 0], "τ": X[:, 1], "key": events, "s": np.repeat([0, 1, 2], lengths)})
    return POHMM(tol=0.1).fit(Sequences.from_frame(frame, ["Dauer", "τ"], "key", "s"))


def with_given_vocabulary():
    X, events, lengths = data()
    return POHMM().partial_fit(X, events=events, lengths=lengths, event_types=["c", "b", "a", "z"])


MIXED = ["lognormal", Student(df=3.0, estimate_df=True), "gamma", "exponential", Normal(), "logstudent"]
MODELS = {
    "pohmm": lambda: fitted(POHMM(tol=0.1)),
    "hmm": lambda: fitted(HMM(n_states=3, tol=0.1)),
    "published": lambda: fitted(POHMM.published(tol=0.1)),
    "mixed families": lambda: fitted(POHMM(emission=MIXED, tol=0.1, smoothing={"start": 0.5}), n_features=6),
    "settings": lambda: fitted(
        POHMM(np.int64(2), Student(df=5.0), tol=np.float64(1.0), fixed=("start",), marginals="exact")
    ),
    "whole numbers": lambda: fitted(POHMM(tol=0.1), types=[-5, 12, 2**40]),
    "any writing": lambda: fitted(POHMM(tol=0.1), types=["ß", "日本", "🙂", "\ud83d", " ", '"\\\n', ""]),
    "feature names": from_frame,
    "given": lambda: given(event_startprob=[1.0, 0.0], event_transmat=[[0.2, 0.8], [1.0, 0.0]]),
    "no marginals": lambda: given(event_transmat=np.eye(2)),
    "given vocabulary": with_given_vocabulary,
    "one event": lambda: POHMM().fit([[3.0]], events=["a"]),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


@pytest.fixture
def path(tmp_path):
    """A saved model."""
    MODELS["pohmm"]().save(tmp_path / "model.keydyn")
    return tmp_path / "model.keydyn"


def outcome(call):
    try:
        return call()
    except (ValueError, AttributeError) as error:
        return repr(error)


def tensor_names(path):
    with safe_open(path, framework="numpy") as file:
        return set(file.keys())


def test_round_trip_is_exact(model, tmp_path):
    """Every attribute to the last bit, the parameters of the constructor, and the class."""
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is type(model)
    for name in ATTRIBUTES:
        have, want = (outcome(lambda m=m, n=name: getattr(m, n)) for m in (again, model))
        assert type(have) is type(want)
        np.testing.assert_array_equal(have, want)
    marginals = [outcome(lambda m=m: m.marginal_) for m in (again, model)]
    assert (marginals[0] == marginals[1]) if isinstance(marginals[1], str) else True
    pairs = list(zip(again.emission_, model.emission_, strict=True))
    if not isinstance(marginals[1], str):
        for name in PARTS:
            np.testing.assert_array_equal(getattr(marginals[0], name), getattr(marginals[1], name))
        pairs += zip(marginals[0].emission, marginals[1].emission, strict=True)
    for have, want in pairs:
        assert have.distribution == want.distribution
        assert have.params.keys() == want.params.keys()
        for name in want.params:
            np.testing.assert_array_equal(have.params[name], want.params[name], strict=True)
    np.testing.assert_equal(again.__dict__.get("scale_floored_"), model.__dict__.get("scale_floored_"))
    assert again.get_params() == model.get_params()


def test_scores_are_equal_to_the_last_bit(model, tmp_path):
    """Also after a second round, for unknown types, online, and for a model learning on."""
    model.save(str(tmp_path / "one"))
    load(str(tmp_path / "one")).save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    again = load(tmp_path / "two")
    X, _, lengths = data(n_features=model.n_features_in_, seed=5)
    X = pd.DataFrame(X, columns=getattr(model, "feature_names_in_", None))
    known = np.resize(model.event_types_, 90)
    events = known.astype(object)
    events[::7] = None
    calls = [
        lambda m: m.score_samples(X, events=events, lengths=lengths),
        lambda m: m.predict_proba(X, events=known, lengths=lengths),
        lambda m: m.predict_events(X[:5])[1],
        lambda m: m.sample(20, random_state=3)[0],
    ]
    for call in calls:
        np.testing.assert_array_equal(outcome(lambda c=call: c(again)), outcome(lambda c=call: c(model)))


def test_a_given_vocabulary_stays_closed(tmp_path):
    MODELS["given vocabulary"]().save(tmp_path / "m")
    again = load(tmp_path / "m").partial_fit([[3.0, 4.0]], events=["new"])
    assert again.event_types_.tolist() == ["c", "b", "a", "z"]


def test_the_event_chain_can_be_left_out(tmp_path):
    """Exactly two tensors are missing; scores stay, and what needs the chain says why it cannot."""
    model = MODELS["pohmm"]()
    model.save(tmp_path / "with")
    model.save(tmp_path / "without", event_chain=False)
    assert tensor_names(tmp_path / "with") - tensor_names(tmp_path / "without") == CHAIN
    again = load(tmp_path / "without")
    X, events, lengths = data(seed=6)
    for method in ("score_samples", "predict_proba", "filter_proba", "predict"):
        want = getattr(model, method)(X, events=events, lengths=lengths)
        np.testing.assert_array_equal(getattr(again, method)(X, events=events, lengths=lengths), want)
    np.testing.assert_array_equal(again.stationary_, model.stationary_)
    again.predict_next(X, events=events, next_event="a")
    again.sample(events=["a", "b"])
    assert again.to_hmm().score(X) == model.to_hmm().score(X)
    for call in (
        lambda: again.score_joint(X, events=events),
        lambda: again.predict_events(X),
        lambda: again.decode_events(X),
        lambda: again.sample(10),
        lambda: again.predict_next(X, events=events),
        lambda: again.event_startprob_,
        lambda: again.event_transmat_,
    ):
        with pytest.raises(ValueError, match=r"saved without its event chain \(event_chain=False\)"):
            call()
    again.save(tmp_path / "again")
    assert tensor_names(tmp_path / "again") == tensor_names(tmp_path / "without")
    assert again.partial_fit(X, events=events).event_startprob_.sum() == pytest.approx(1.0)


def test_the_file_holds_no_running_totals(tmp_path):
    """After any number of chunks the tensors are those of the parameters, and nothing can be updated from."""
    X, events, lengths = data()
    model = fitted(POHMM(tol=0.1)).partial_fit(X, events=events, lengths=lengths)
    model.save(tmp_path / "m")
    emission = {
        f"{of}{k}.{p}" for of in ("emission.", "marginal.emission.") for k in "01" for p in ("loc", "scale")
    }
    chain = {f"chain.{name}" for name in ("prob", "leaving", "entering")} | CHAIN
    rest = {"startprob", "pairs", "transmat", "stationary", "scale_floored.0", "scale_floored.1"}
    assert tensor_names(tmp_path / "m") == emission | chain | rest | {f"marginal.{name}" for name in PARTS}
    with pytest.raises(ValueError, match="nothing to update from"):
        load(tmp_path / "m").update()


@pytest.mark.parametrize("share", [0.04, pytest.param(1.0, marks=pytest.mark.slow)])
def test_every_flipped_byte_is_noticed(path, tmp_path, share):
    """One bit of every byte, and the one that changes a letter's case: no other error, never a model.

    The first and last 64 bytes always; a share of the others.
    """
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    flipped = tmp_path / "flipped"
    ends = {*range(64), *range(len(whole) - 64, len(whole))}
    for n in sorted(ends | set(np.flatnonzero(rng.random(len(whole)) < share).tolist())):
        for bit in {1 << int(rng.integers(8)), 0x20}:
            flipped.write_bytes(whole[:n] + bytes([whole[n] ^ bit]) + whole[n + 1 :])
            with pytest.raises(ModelFileError, match=r"flipped (is|was) (no|not|damaged|written|a safe)"):
                load(flipped)


def test_every_truncation_is_noticed(path, tmp_path):
    whole = path.read_bytes()
    part = tmp_path / "part"
    for n in {*range(0, len(whole), 61), 1, 7, 8, 9, len(whole) - 8, len(whole) - 1}:
        part.write_bytes(whole[:n])
        with pytest.raises(ModelFileError, match="cut short"):
            load(part)
    part.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="is not a keydyn model"):
        load(part)


def test_foreign_files(tmp_path):
    (tmp_path / "text").write_text("user,session,keyname\n" * 9)
    save_file({"weights": np.ones(3)}, tmp_path / "plain")
    save_file({"weights": np.ones(3)}, tmp_path / "other", {"keydyn": '{"format": "keydyn-template"}'})
    with pytest.raises(ModelFileError, match="text is not a keydyn model"):
        load(tmp_path / "text")
    with pytest.raises(ModelFileError, match="plain is a safetensors file, but not a keydyn model"):
        load(tmp_path / "plain")
    with pytest.raises(ModelFileError, match="other is not a keydyn model"):
        load(tmp_path / "other")
    with pytest.raises(ModelFileError, match="is not a keydyn model"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "nothing")


def test_saving_is_whole_or_not_at_all(path, monkeypatch):
    """A write that fails leaves the old file as it was and nothing beside it."""
    before = path.read_bytes()
    for step in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(os, step, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                MODELS["hmm"]().save(path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
    MODELS["hmm"]().save(path)
    assert type(load(path)) is HMM
    with pytest.raises(FileNotFoundError):
        MODELS["hmm"]().save(path.parent / "no folder" / "model")


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX")
def test_permissions_follow_the_umask(path):
    previous = os.umask(0o027)
    try:
        MODELS["one event"]().save(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    class Mine(POHMM):
        pass

    with pytest.raises(ValueError, match="a Mine cannot be saved; POHMM and HMM can"):
        fitted(Mine(tol=0.1)).save(tmp_path / "m")
    for name, value in {"n_states": 5, "emission": "normal"}.items():
        with pytest.raises(ValueError, match="changed after fitting"):
            fitted(POHMM(tol=0.1)).set_params(**{name: value}).save(tmp_path / "m")
    with pytest.raises(ValueError, match="tol must be zero or greater"):
        fitted(POHMM(tol=0.1)).set_params(tol=-1).save(tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_nothing_in_the_package_can_run_what_it_reads():
    sources = list(Path(keydyn.__file__).parent.rglob("*.py"))
    assert len(sources) > 20
    forbidden = re.compile(
        r"\b(pickle|marshal|shelve|dill|joblib\.(dump|load))\b|\b(eval|exec)\(|allow_pickle"
    )
    assert [source for source in sources if forbidden.search(source.read_text())] == []
