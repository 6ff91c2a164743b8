"""One event at a time: the same numbers as all at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from keydyn import HMM, POHMM
from keydyn.model import OnlineBatch
from tests.model.enumeration import FAMILIES, Truth, random_values


@pytest.fixture(scope="module")
def model():
    return POHMM.from_parameters(*Truth.random(np.random.default_rng(51), m=3, n_states=3).arguments())


def stream(seed, n=40):
    rng = np.random.default_rng(seed)
    X = random_values(rng, FAMILIES, n, missing=0.1)
    events = [["k0", "k1", "k2", None, "new"][k] for k in rng.integers(0, 5, n)]
    return X, events


def test_online_equals_batch(model):
    X, events = stream(1)
    online = model.online()
    np.testing.assert_allclose(online.proba, model.marginal_.startprob)
    increments, probabilities = [], []
    for x, event in zip(X, events, strict=True):
        increments.append(online.update(x, event))
        probabilities.append(online.proba)
    np.testing.assert_allclose(increments, model.score_samples(X, events=events), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(probabilities, model.filter_proba(X, events=events), rtol=1e-12, atol=1e-12)
    assert online.n_events == 40
    assert online.log_likelihood == pytest.approx(model.score(X, events=events), rel=1e-12)


def test_an_hmm_ignores_events_online_too():
    X, events = stream(2)
    hmm = HMM(emission=list(FAMILIES), tol=1.0).fit(X)
    online = hmm.online()
    found = [online.update(x, event) for x, event in zip(X, events, strict=True)]
    np.testing.assert_allclose(found, hmm.score_samples(X), rtol=1e-12, atol=1e-12)


def test_a_saved_state_goes_on_exactly(model):
    X, events = stream(3)
    whole, first = model.online(), model.online()
    expected = [whole.update(x, e) for x, e in zip(X, events, strict=True)]
    for x, e in zip(X[:17], events[:17], strict=True):
        first.update(x, e)
    resumed = model.online(json.loads(json.dumps(first.state(), allow_nan=False)))
    found = [resumed.update(x, e) for x, e in zip(X[17:], events[17:], strict=True)]
    assert found == expected[17:]
    assert resumed.n_events == 40


def test_an_impossible_event_online():
    """−inf from there on, a state that JSON can hold, and no state probabilities to ask for."""
    stay = POHMM.from_parameters(
        ["a"], [[1.0, 0.0]], [[[[0.0, 1.0], [0.0, 1.0]]]], [("exponential", {"scale": [[1.0, 1.0]]})]
    )
    # A density cannot be zero here, so take a start that only leads to where no path goes on.
    online = stay.online()
    assert np.isfinite(online.update([1.0], "a"))
    blocked = online.state() | {"log_filtered": [[None, None]], "log_likelihood": [None]}
    dead = stay.online(json.loads(json.dumps(blocked, allow_nan=False)))
    assert dead.update([1.0], "a") == -np.inf
    with pytest.raises(ValueError, match="session 0 so far have probability zero"):
        _ = dead.proba


def test_many_sessions_of_one_model_at_once(model):
    """Sessions that advance together, apart and by different amounts, each as if it were alone."""
    alone = [model.online() for _ in range(5)]
    together = OnlineBatch([model], 5)
    rng = np.random.default_rng(4)
    for step in range(30):
        which = rng.choice(5, size=rng.integers(1, 6), replace=False)
        X, events = stream(100 + step, len(which))
        found = together.update(X, events, which)[:, 0]
        expected = [alone[s].update(x, e) for s, x, e in zip(which, X, events, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert together.n_events.tolist() == [a.n_events for a in alone]
    np.testing.assert_allclose(together.proba[:, 0], [a.proba for a in alone], rtol=1e-12)
    for s, one in enumerate(alone):
        assert together.state(s) == [one.state()]


def test_states_of_other_models_and_garbage_are_refused(model):
    other = POHMM.from_parameters(*Truth.random(np.random.default_rng(52), m=3, n_states=3).arguments())
    with pytest.raises(ValueError, match="belongs to another model"):
        other.online(model.online().state())
    good = model.online().state()
    for bad in (
        {},
        {**good, "version": 9},
        {**good, "last": [99]},
        {**good, "n_events": [-1]},
        {**good, "log_filtered": [[0.0]]},
        {**good, "log_filtered": [[float("nan")] * 3]},
        {**good, "last": "abc"},
    ):
        with pytest.raises(ValueError, match="state"):
            model.online(bad)
    twice = {name: part * 2 if isinstance(part, list) else part for name, part in good.items()}
    with pytest.raises(ValueError, match="2 streams, not 1"):
        model.online(twice)
