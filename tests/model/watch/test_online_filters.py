"""One event at a time: the same numbers as all at once."""

from __future__ import annotations

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
