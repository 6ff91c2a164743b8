"""Drawing from a model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from keydyn import HMM, POHMM
from tests.model.enumeration import Truth

# The chance of a false alarm of each test below, with its seed fixed once.
ALPHA = 1e-4


@pytest.fixture(scope="module")
def truth():
    return Truth.random(np.random.default_rng(61), m=3, n_states=2, families=("normal", "lognormal"))


@pytest.fixture(scope="module")
def model(truth):
    return POHMM.from_parameters(*truth.arguments())


def test_events_follow_the_chain_states_the_transitions_values_the_densities(truth, model):
    X, events, states = model.sample(60_000, random_state=1)
    codes = np.array([truth.types.index(e) for e in events])
    table = np.zeros((3, 3))
    np.add.at(table, (codes[:-1], codes[1:]), 1)
    expected = table.sum(axis=1, keepdims=True) * truth.event_trans
    assert stats.chi2.sf(((table - expected) ** 2 / expected).sum(), df=6) > ALPHA
    for v in range(3):
        for w in range(3):
            steps = (codes[:-1] == v) & (codes[1:] == w)
            for i in range(2):
                here = states[1:][steps & (states[:-1] == i)]
                assert stats.binomtest(int(here.sum()), len(here), truth.trans[v, w, i, 1]).pvalue > ALPHA
    for w in range(3):
        for j in range(2):
            here = (codes == w) & (states == j)
            loc, scale = (truth.emission[0][1][name][w, j] for name in ("loc", "scale"))
            assert stats.kstest(X[here, 0], stats.norm(loc, scale).cdf).pvalue > ALPHA
            loc, scale = (truth.emission[1][1][name][w, j] for name in ("loc", "scale"))
            assert stats.kstest(np.log(X[here, 1]), stats.norm(loc, scale).cdf).pvalue > ALPHA


def test_starts_follow_the_start_probabilities(truth, model):
    lengths = [2] * 20_000
    _, events, states = model.sample(lengths=lengths, random_state=2)
    first = np.array([truth.types.index(e) for e in events[::2]])
    observed = np.bincount(first, minlength=3)
    assert stats.chisquare(observed, 20_000 * truth.event_start).pvalue > ALPHA
    for w in range(3):
        here = states[::2][first == w]
        assert stats.binomtest(int(here.sum()), len(here), truth.start[w, 1]).pvalue > ALPHA


def test_given_events_are_kept(model):
    events = ["k0", "k2", "k1", None, "new", "k0"]
    X, drawn, states = model.sample(events=events, random_state=3)
    assert drawn.tolist() == events
    assert X.shape == (6, 2)
    assert set(states) <= {0, 1}
    X, drawn, _ = model.sample(events=[["k0", "k1"], ["k2"]], random_state=3)
    assert drawn.tolist() == ["k0", "k1", "k2"]
    assert np.isfinite(X).all()


def test_seeds(model):
    a, b, c = (model.sample(50, random_state=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    generator = np.random.default_rng(1)
    first, second = model.sample(50, random_state=generator)[0], model.sample(50, random_state=generator)[0]
    np.testing.assert_array_equal(a, first)
    assert not np.array_equal(first, second)
    legacy = model.sample(50, random_state=np.random.RandomState(1))[0]
    np.testing.assert_array_equal(legacy, model.sample(50, random_state=np.random.RandomState(1))[0])


def test_a_fitted_chain_with_a_dead_end():
    """What follows a type that only ever came last is any type, with equal chances."""
    X = np.random.default_rng(0).lognormal(5, 0.3, (9, 1))
    model = POHMM().fit(X, events=list("abcabcabz"))
    _, events, _ = model.sample(6000, random_state=5)
    after = events[1:][events[:-1] == "z"]
    assert stats.chisquare(np.unique(after, return_counts=True)[1]).pvalue > ALPHA
    # Otherwise only observed pairs occur.
    pairs = set(itertools.pairwise(events.tolist()))
    assert {p for p in pairs if p[0] != "z"} == {("a", "b"), ("b", "c"), ("c", "a"), ("b", "z")}


def test_a_dead_end_among_pairs_that_are_listed(truth):
    """Pairs of given parameters are all listed; those that the data do not show have probability zero."""
    model = POHMM.from_parameters(*truth.arguments(), warm_start=True, tol=1e9, max_iter=3)
    X, _, _ = model.sample(4, random_state=1)
    model.fit(X, events=["k0", "k1", "k0", "k2"])
    _, events, _ = model.sample(3000, random_state=2)
    after = events[1:][events[:-1] == "k2"]
    assert stats.chisquare(np.unique(after, return_counts=True)[1]).pvalue > ALPHA
    assert len(set(after)) == 3


def test_an_hmm_draws_one_type():
    hmm = HMM.from_parameters([0.2, 0.8], [[0.9, 0.1], [0.3, 0.7]], [("normal", [0.0, 9.0], [1.0, 1.0])])
    X, events, states = hmm.sample(20, random_state=0)
    assert len(set(events)) == 1
    assert X.shape == (20, 1)
    np.testing.assert_array_equal(states, (X[:, 0] > 4.5).astype(int))
    assert len(hmm.sample(events=list("abc"), random_state=0)[0]) == 3


def test_what_cannot_be_drawn(model):
    with pytest.raises(ValueError, match="n_events must be a whole number, 1 or more"):
        model.sample(0)
