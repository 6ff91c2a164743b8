"""A model that was saved and loaded is the same to the last bit, in its parameters and in every answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from keydyn import HMM, POHMM, Sequences, fit_many, load
from keydyn.model import Categorical

FAMILIES = ("normal", "lognormal", "gamma", "exponential", "student", "logstudent")
SMOOTHING = (None, "frequency", 0.3, {"start": "frequency", "emission": 0.5})
TYPES = np.array(list("abcdefgh"))
WAYS = (
    "fit",
    "published",
    "many",
    "partial_fit",
    "accumulate",
    "HMM",
    "to_hmm",
)
ASKED = (
    *("score", "score_samples", "predict_proba", "filter_proba", "predict", "decode", "aic"),
    *("score_joint", "forecast_residuals"),
)
ATTRIBUTES = (
    *("startprob_", "transmat_", "event_startprob_", "event_transmat_", "event_prob_", "stationary_"),
    *("log_likelihood_", "history_", "n_parameters_"),
)


def drawn(generator: np.random.Generator, way: str, n_states: int) -> Any:
    """A model fitted to random data with random settings."""
    n, families = int(generator.integers(15, 60)), generator.choice(FAMILIES, 2).tolist()
    settings: dict[str, Any] = {
        "n_states": n_states,
        "emission": families,
        "tol": 1e-2,
        "max_iter": 20,
        "order_states": bool(generator.random() < 0.7),
        "spread": float(generator.choice([0.5, 2.0])),
    }
    own = {
        "smoothing": SMOOTHING[generator.integers(len(SMOOTHING))],
        "marginals": str(generator.choice(["printed", "exact"])),
    }
    X, more = (np.exp(generator.normal(4.0, 0.5, (n, 2))) for _ in range(2))
    X[generator.random(X.shape) < 0.05] = np.nan
    X[0] = 50.0
    events = generator.choice(TYPES[: generator.integers(1, 7)], n).astype(object)
    events[1:][generator.random(n - 1) < 0.1] = None
    match way:
        case "fit":
            return POHMM(**settings, **own).fit(X, events=events)
        case "published":
            return POHMM.published(**(settings | own)).fit(X, events=events)
        case "many":
            data = [Sequences.from_arrays(values, events) for values in (X, more)]
            return fit_many(POHMM(**settings, **own), data)[1]
        case "partial_fit":
            return (
                POHMM(**settings, **own)
                .fit(X, events=events)
                .partial_fit(more, events=TYPES[generator.integers(0, 8, n)])
            )
        case "accumulate":
            return (
                POHMM(**settings, **own)
                .fit(X, events=events)
                .accumulate(more, events=TYPES[generator.integers(0, 8, n)])
            )
        case "HMM":
            return HMM(**settings, **own).fit(X)
        case _:
            return POHMM(**settings, **own).fit(X, events=events).to_hmm()


def said(model: Any) -> dict[str, Any]:
    """What a model says of itself, and of data that it has not seen."""
    generator = np.random.default_rng(7)
    X = np.exp(generator.normal(4.0, 0.5, (30, 2)))
    events = TYPES[generator.integers(0, 8, 30)].astype(object)
    events[::7] = None
    answers: dict[str, Any] = {}
    for name in ATTRIBUTES:
        try:
            answers[name] = getattr(model, name)
        except (AttributeError, ValueError) as error:
            answers[name] = str(error)
    for k, emission in enumerate(model.emission_):
        answers |= {f"emission {k} {name}": values for name, values in emission.params.items()}
    for name in ASKED:
        try:
            answers[name] = getattr(model, name)(X, events=events)
        except ValueError as error:
            answers[name] = str(error)
    stream = model.online()
    answers["online"] = [stream.update(x, event) for x, event in zip(X, events, strict=True)]
    answers["sample"] = model.sample(20, random_state=0)[0]
    return answers


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (str, type(None))):
        return bool(a == b)
    return np.asarray(a).tobytes() == np.asarray(b).tobytes() and np.shape(a) == np.shape(b)


@pytest.mark.parametrize("n_states", range(1, 7))
@pytest.mark.parametrize("way", WAYS)
def test_saving_and_loading_changes_no_bit(way, n_states, tmp_path):
    for seed in range(2):
        generator = np.random.default_rng([seed, n_states, WAYS.index(way)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = drawn(generator, way, n_states)
        model.save(tmp_path / "model.keydyn")
        back = load(tmp_path / "model.keydyn")
        before, after = said(model), said(back)
        assert before.keys() == after.keys()
        assert [name for name in before if not same(before[name], after[name])] == []
        back.save(tmp_path / "again.keydyn")
        assert (tmp_path / "again.keydyn").read_bytes() == (tmp_path / "model.keydyn").read_bytes()


def test_categories_too(tmp_path):
    generator = np.random.default_rng(0)
    X, events = generator.integers(0, 3, (60, 1)).astype(float), generator.choice(TYPES, 60)
    model = POHMM(n_states=3, emission=Categorical(3), tol=0.1).fit(X, events=events)
    model.save(tmp_path / "model.keydyn")
    again = load(tmp_path / "model.keydyn")
    assert same(model.score_samples(X, events=events), again.score_samples(X, events=events))
