"""Ranks and penalties against scipy, plain loops, and cases worked by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from keydyn.evaluation.continuous.penalty import (
    TIE,
    TrustSettings,
    beaten,
    first_above,
    ranks,
    trust,
    window_penalty,
)

rows = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


def test_rank_penalty_worked_by_hand():
    """Three templates, two samples of four and one events, a window of two."""
    event_scores = np.array(
        [[0.0, -1.0, -2.0], [-2.0, 0.0, -1.0], [0.0, 0.0, -1.0], [-1.0, -1.0, -1.0], [-2, -1, 0]]
    )
    expected_ranks = [[0, 1, 2], [2, 0, 1], [0.5, 0.5, 2], [1, 1, 1], [2, 1, 0]]
    np.testing.assert_allclose(ranks(event_scores), expected_ranks)
    penalty = window_penalty(ranks(event_scores), np.array([0, 4, 5]), window=2)
    np.testing.assert_allclose(penalty, [[0, 1, 2], [2, 1, 3], [2.5, 0.5, 3], [1.5, 1.5, 3], [2, 1, 0]])
    assert first_above(penalty[:4, 0], 2.0) == 2
    assert first_above(penalty[:4, 0], 2.5) == 4


def test_scores_that_differ_by_rounding_are_ties():
    np.testing.assert_allclose(ranks(np.array([[-1.0, -1.0 + 1e-13, -2.0]])), [[0.5, 0.5, 2.0]])
    with pytest.raises(ValueError, match="event 0 has a score that is NaN"):
        ranks(np.array([[np.nan, 1.0]]))


@given(st.lists(rows, min_size=1, max_size=20))
def test_ranks_are_those_of_scipy(scores):
    event_scores = np.array(scores, dtype=float) + 1e-12
    np.testing.assert_array_equal(ranks(event_scores), rankdata(-np.array(scores), axis=1) - 1.0)


def test_ranks_of_many_templates_with_rounding_and_infinities():
    rng = np.random.default_rng(0)
    event_scores = rng.integers(0, 40, size=(200, 60)) + rng.uniform(-1e-11, 1e-11, size=(200, 60))
    event_scores[rng.uniform(size=event_scores.shape) < 0.05] = -np.inf
    expected = rankdata(-np.round(event_scores / TIE), axis=1) - 1.0
    np.testing.assert_array_equal(ranks(event_scores), expected)


def test_a_user_without_a_template_has_no_rank_and_takes_none():
    event_scores = np.array([[3.0, np.nan, 1.0, 2.0], [1.0, np.nan, 1.0, 2.0]])
    found = ranks(event_scores, np.array([True, False, True, True]))
    np.testing.assert_array_equal(found, [[0, np.nan, 2, 1], [1.5, np.nan, 1.5, 0]])
    # Another sample of the same user, who is enrolled there, is not touched by it.
    found[1] = [0, 1, 2, 3]
    penalty = window_penalty(found, np.array([0, 1, 2]))
    np.testing.assert_array_equal(penalty, found)


def test_a_window_needs_an_event():
    with pytest.raises(ValueError, match="window must be 1 or more, not 0"):
        window_penalty(np.zeros((1, 2)), np.array([0, 1]), window=0)


@given(st.lists(rows, min_size=2, max_size=40), st.integers(1, 8), st.integers(1, 39))
def test_the_window_is_a_sum_of_the_last_ranks(scores, window, cut):
    event_scores = np.array(scores, dtype=float)
    offsets = np.array([0, min(cut, len(scores) - 1), len(scores)])
    ranked = ranks(event_scores)
    offline = window_penalty(ranked, offsets, window)
    for begin, end in pairwise(offsets):
        for n in range(begin, end):
            expected = ranked[max(begin, n + 1 - window) : n + 1].sum(axis=0)
            np.testing.assert_array_equal(offline[n], expected)


def test_the_penalty_and_reward_function_at_its_ends():
    """0 at A, −D at worst, C at best, and never falling (Mondal and Bours)."""
    settings = TrustSettings(turning=0.5, width=0.01, reward=2.0, penalty=3.0)
    np.testing.assert_allclose(settings.change(np.array([0.5, -10.0, 10.0])), [0.0, -3.0, 2.0], atol=1e-12)
    assert (np.diff(TrustSettings().change(np.linspace(0, 1, 101))) >= 0).all()
    # With C = D = 1 it is tanh((s − A) / 2B).
    scores = np.linspace(0, 1, 11)
    np.testing.assert_allclose(TrustSettings().change(scores), np.tanh((scores - 0.6) / 0.2), atol=1e-12)


def test_trust_worked_by_hand():
    """Three templates: rank 0 beats all, 1 half, 2 none; trust stays within 0 … 100."""
    np.testing.assert_array_equal(
        beaten(np.array([[0.0, 1.0, 2.0], [0.5, 0.5, 2.0]])), [[1, 0.5, 0], [0.75, 0.75, 0]]
    )
    settings = TrustSettings(turning=0.5, width=1e-3, reward=10.0, penalty=40.0)
    event_ranks = np.array([[2.0, 0, 1], [2, 0, 1], [0, 2, 1], [2, 1, 0], [2, 1, 0], [2, 1, 0], [0, 1, 2]])
    found = trust(event_ranks, np.array([0, 6, 7]), settings)
    np.testing.assert_allclose(found[:, 0], [60, 20, 30, 0, 0, 0, 100], atol=1e-9)
    np.testing.assert_allclose(found[:, 1], [100, 100, 60, 60, 60, 60, 100], atol=1e-9)
    np.testing.assert_allclose(found[:, 2], [100, 100, 100, 100, 100, 100, 60], atol=1e-9)


def test_a_stranger_loses_trust_and_the_owner_keeps_it():
    """Ranks at random, and ranks among the first third, of 30 templates."""
    rng = np.random.default_rng(0)
    event_ranks = np.argsort(rng.uniform(size=(3000, 30)), axis=1).astype(float)
    assert trust(event_ranks, np.array([0, 3000]))[-1].max() < 50.0
    owner = np.where(event_ranks < 10, event_ranks, event_ranks - 10)
    assert trust(owner, np.array([0, 3000]))[-1].mean() > trust(event_ranks, np.array([0, 3000]))[-1].mean()


@pytest.mark.parametrize(
    "wrong", [{"width": 0.0}, {"reward": -1.0}, {"penalty": np.nan}, {"turning": 1.0}, {"turning": np.nan}]
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TrustSettings(**wrong)


def test_one_template_alone_is_refused():
    with pytest.raises(ValueError, match="two templates or more"):
        beaten(np.zeros((2, 1)))
