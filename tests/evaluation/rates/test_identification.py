"""Identification against scikit-learn, all ways to break ties, and cases worked by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import top_k_accuracy_score

from keydyn.evaluation.rates.identification import identification
from keydyn.evaluation.scores import Scores


def of(raw, owners, trials=None):
    raw = np.asarray(raw, dtype=float)
    owners = np.asarray(owners)
    return Scores(
        owners,
        np.arange(len(owners)),
        np.zeros(len(owners), dtype=np.int64),
        np.arange(raw.shape[1]),
        raw,
        ~np.isnan(raw) if trials is None else trials,
    )


def test_without_ties_it_is_top_k_accuracy():
    rng = np.random.default_rng(0)
    owners = rng.integers(0, 8, size=60)
    raw = rng.normal(size=(60, 8))
    raw[np.arange(60), owners] += 1.0
    result = identification(of(raw, owners))
    for k in range(1, 8):
        theirs = top_k_accuracy_score(owners, raw, k=k, labels=np.arange(8))
        assert result.overall[k - 1] == pytest.approx(theirs)
    assert result.overall[-1] == result.cmc[-1] == 1.0
    per_user = [(raw[owners == u].argmax(axis=1) == u).mean() for u in range(8)]
    np.testing.assert_allclose(result.per_user["acc"], per_user)
    assert result.accuracy.value == pytest.approx(np.mean(per_user))
    assert result.rate(1) == result.cmc[0]
    assert result.rate(99) == 1.0
    assert result.to_frame()["rank"].tolist() == [*range(1, 9)]


@given(st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_ties_are_broken_in_every_way(row):
    """The rate at each rank is the share of orders of the tied templates that put the owner there."""
    orders = [
        order for order in permutations(range(4)) if all(row[order[n]] >= row[order[n + 1]] for n in range(3))
    ]
    result = identification(of([row], [1]))
    for n in range(1, 5):
        assert result.cmc[n - 1] == pytest.approx(np.mean([1 in order[:n] for order in orders]))


def test_queries_of_people_without_a_template_are_counted():
    raw = [[3.0, 1.0, np.nan], [1.0, 3.0, np.nan], [5.0, 1.0, np.nan], [1.0, 5.0, np.nan]]
    result = identification(of(raw, [0, 0, 2, 7]))
    assert result.left_out == 2
    assert result.per_user["queries"].to_dict() == {0: 2}
    assert result.accuracy.value == 0.5
    # Only two templates are candidates, so the second rank is all of them.
    np.testing.assert_allclose(result.cmc, [0.5, 1.0, 1.0])
    assert result.accuracy.low is None


def test_a_sample_that_only_serves_as_an_impostors_is_not_identified():
    trials = np.array([[True, True], [False, True]])
    assert identification(of([[2.0, 1.0], [2.0, 1.0]], [0, 0], trials)).left_out == 1


def test_all_scores_equal_and_minus_infinity():
    np.testing.assert_allclose(identification(of(np.zeros((4, 4)), range(4))).cmc, [0.25, 0.5, 0.75, 1.0])
    result = identification(of([[-np.inf, 0.0], [0.0, -np.inf]], [0, 0]))
    np.testing.assert_allclose(result.cmc, [0.5, 1.0])


def test_one_user_is_always_found_and_nobody_cannot_be():
    assert identification(of([[1.0]], [0])).cmc.tolist() == [1.0]
    with pytest.raises(ValueError, match="no sample can be identified"):
        identification(of([[1.0, 2.0]], [5]))
    with pytest.raises(ValueError, match="ranks begin at 1"):
        identification(of([[1.0]], [0])).rate(0)
