"""Contexts: bins and their edges, what a callable gets and returns, names, and what was never seen."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import ContextHMM, PartlyHMM, Sequences
from keydyn.model import Bins, NoContext, Past
from keydyn.model.relatives import contexts

NAN = np.nan


@pytest.fixture(scope="module", name="X")
def values():
    return np.random.default_rng(0).lognormal(5, 0.5, (200, 2))


def past_of(columns, lengths, memory=1, events=None):
    return Past.of(Sequences.from_arrays(np.array(columns, dtype=float).T, events, lengths), memory)


def test_the_past_by_hand():
    """Two features, sequences of 3 and 2 events; nothing crosses from one sequence to the next."""
    past = past_of([[1, NAN, 3, 4, 5], [NAN, 7, NAN, 9, NAN]], [3, 2], memory=2, events=[*"abcd", None])
    np.testing.assert_array_equal(past.begun, [False, True, True, False, True])
    np.testing.assert_array_equal(past.last, [[NAN, NAN], [1, NAN], [1, 7], [NAN, NAN], [4, 9]])
    nothing = [NAN, NAN]
    np.testing.assert_array_equal(
        past.values,
        [
            [nothing, nothing],
            [nothing, [1, NAN]],
            [[1, NAN], [NAN, 7]],
            [nothing, nothing],
            [nothing, [4, 9]],
        ],
    )
    assert past.events.tolist() == [[None, None], [None, "a"], ["a", "b"], [None, None], [None, "d"]]


def test_edges():
    """Bins of equal weight; a value on an edge is below it; equal values share a bin; weights are copies."""
    values, ones = np.arange(1.0, 13.0), np.ones(12)
    assert contexts.quantile_edges(values, ones, 3) == (4.0, 8.0)
    assert contexts.quantile_edges(values[::-1], ones, 4) == (3.0, 6.0, 9.0)
    assert contexts.quantile_edges(np.array([1.0, 1.0, 1.0, 2.0]), np.ones(4), 3) == (1.0,)
    assert contexts.quantile_edges(np.ones(5), np.ones(5), 3) == ()
    assert contexts.quantile_edges(np.array([NAN, 5.0, 1.0]), np.ones(3), 2) == (1.0,)
    weights = np.array([3, 1, 2, 5])
    some = np.array([4.0, 2.0, 9.0, 1.0])
    copied = np.repeat(some, weights)
    assert contexts.quantile_edges(some, weights * 1.0, 4) == contexts.quantile_edges(
        copied, np.ones(len(copied)), 4
    )
    rows = Bins((4.0, 8.0)).rows(past_of([[4.0, 4.1, NAN, 8.5, 1.0]], [5]))
    assert rows.tolist() == [3, 0, 1, 1, 2]
    assert Bins((4.0, 8.0)).names() == ["up to 4", "4 to 8", "above 8", "none yet", "pooled"]
    assert Bins(()).names() == ["any value", "none yet", "pooled"]
    assert NoContext().rows(past_of([[1.0, 2.0]], [2])).tolist() == [0, 0]


def test_what_a_callable_gets_and_returns(X):
    """A `Past` with as many events as `memory` says, in fitting and scoring alike."""
    seen = []

    def context(past):
        seen.append(past.values.shape[1:])
        assert past.events.shape == past.values.shape[:2]
        return np.where(np.nanmax(past.values[:, :, 0], axis=1, initial=0.0) > 200, "slow", "fast")

    model = ContextHMM(emission_context=context, transition_context=2, memory=3, tol=1e-2).fit(X)
    assert model.emission_context_.labels == ("fast", "slow")
    assert model.emission_context_.names() == ["fast", "slow", "none yet", "pooled"]
    assert isinstance(model.transition_context_, Bins)
    assert model.emission_[0].loc.shape == (4, 2)
    assert np.isfinite(model.score_samples(X[:20])).all()
    assert set(seen) == {(3, 2)}


def test_a_callable_sees_events(X):
    """The key before as context; a key that was never before another is scored with the pooled tables."""
    keys = np.random.default_rng(2).choice(list("abc"), len(X))
    keys[keys == "c"] = "b"

    def key_before(past):
        return past.events[:, -1]

    model = ContextHMM(emission_context=key_before, transition_context=key_before, tol=1e-2)
    model.fit(X, events=keys)
    assert model.emission_context_.labels == ("a", "b")
    unseen = model.score_samples(X[:2], events=["z", "a"])
    lattice = model._lattice(X[:2], np.array(["z", "a"]), None)
    assert lattice.walk.steps[1] == 3
    pooled = model.emission_[0].loc[3], model.emission_[0].scale[3]
    ordinary = (np.log(X[1, 0]) - pooled[0]) / pooled[1]
    density = -0.5 * ordinary**2 - np.log(pooled[1] * np.sqrt(2 * np.pi)) - np.log(X[1, 0])
    other = model.emission_[1].loc[3], model.emission_[1].scale[3]
    ordinary = (np.log(X[1, 1]) - other[0]) / other[1]
    density += -0.5 * ordinary**2 - np.log(other[1] * np.sqrt(2 * np.pi)) - np.log(X[1, 1])
    np.testing.assert_allclose(lattice.log_density[1, :, 0], density, rtol=1e-12)
    assert np.isfinite(unseen).all()
    # Without a callable events make no difference.
    plain = ContextHMM(tol=1e-2).fit(X, events=keys)
    np.testing.assert_array_equal(plain.history_, ContextHMM(tol=1e-2).fit(X).history_)


def test_the_pooled_row():
    """By hand: a mixture over contexts, each counting as often as it occurred in that state."""
    X = np.random.default_rng(3).lognormal(5, 0.5, (300, 1))
    model = ContextHMM(1, emission_context=2, transition_context=None).fit(X)
    loc, scale = model.emission_[0].loc[:, 0], model.emission_[0].scale[:, 0]
    counts = np.bincount(model.emission_context_.rows(past_of(X.T, [300])), minlength=3)
    assert loc[3] == pytest.approx(np.average(loc[:3], weights=counts))
    assert loc[3] == pytest.approx(np.log(X).mean())
    variance = np.average(scale[:3] ** 2 + (loc[:3] - loc[3]) ** 2, weights=counts)
    assert scale[3] == pytest.approx(np.sqrt(variance))


def test_what_is_no_context(X):
    for name, wrong in (
        ("emission_context", "nobody"),
        ("emission_context", 0),
        ("emission_context", 2.5),
        ("transition_context", True),
        ("transition_context", [1, 2]),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a number of bins"):
            ContextHMM(**{name: wrong}).fit(X)
    with pytest.raises(ValueError, match="context_feature must be the number of a feature, 0 to 1"):
        ContextHMM(context_feature=2).fit(X)
    with pytest.raises(ValueError, match="memory must be"):
        ContextHMM(memory=0).fit(X)
    with pytest.raises(ValueError, match="emission_context bins feature 5"):
        ContextHMM(emission_context=Bins((1.0,), 5)).fit(X)
    with pytest.raises(ValueError, match="edges must be finite and rising"):
        Bins((2.0, 1.0))
    with pytest.raises(ValueError, match="feature must be"):
        Bins((2.0,), -1)
    with pytest.raises(ValueError, match="gave 3 labels for 200 events"):
        ContextHMM(emission_context=lambda past: [1, 2, 3]).fit(X)
    with pytest.raises(ValueError, match="the context function's answer is not a context"):
        ContextHMM(emission_context=lambda past: past.values[:, -1, 0]).fit(X)
    with pytest.raises(ValueError, match="previous_feature must be"):
        PartlyHMM(previous_feature=2).fit(X)


def test_a_callable_that_never_answers(X):
    """All events have no context: one row, and the pooled one."""
    model = ContextHMM(emission_context=lambda past: [None] * len(past.begun), tol=1e-2).fit(X)
    assert model.emission_context_.names() == ["none yet", "pooled"]
    np.testing.assert_allclose(model.emission_[0].loc[0], model.emission_[0].loc[1], rtol=1e-12)
    assert np.isfinite(model.score(X))
