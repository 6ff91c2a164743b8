"""The published protocol on data that is not as regular as the published."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.evaluation.published_protocol import Scores, recognition, score_all
from keydyn.keystrokes import Samples


def chosen(frame, order):
    return pd.concat([frame[(frame["user"] == u) & (frame["session"] == s)] for u, s in order])


def test_the_order_of_users_changes_nothing():
    """With a sample left out, users appear in another order in some folds."""
    frame = make_typists(3, 3, random_state=3)
    straight = [(u, s) for u in range(3) for s in range(3)]
    mixed = [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (1, 2), (0, 2), (2, 2)]
    for detector in ("manhattan-scaled", "pohmm"):
        one, other = (
            recognition(score_all(detector, Samples.of(chosen(frame, o)))) for o in (straight, mixed)
        )
        pd.testing.assert_frame_equal(one, other)


def test_unequal_numbers_of_samples():
    """A user without a query in a fold is an impostor's target all the same; without training it is told."""
    frame = make_typists(3, 4, random_state=3)
    scores = score_all("manhattan", Samples.of(frame[(frame["user"] > 0) | (frame["session"] < 2)]))
    assert scores.owners.tolist() == [0, 1, 2, 0, 1, 2, 1, 2, 1, 2]
    assert scores.raw.shape == (10, 3)
    with pytest.raises(ValueError, match="user 0 has no sample to learn from"):
        score_all("manhattan", Samples.of(frame[(frame["user"] > 0) | (frame["session"] < 1)]))


def test_scores_that_are_all_equal_are_worth_nothing():
    found = recognition(Scores(np.arange(2), np.arange(2), np.zeros((2, 2))))
    assert found["eer"].tolist() == [0.5, 0.5]


def test_templates_that_tie_share_the_query():
    """All scores equal: nobody is favoured for being first."""
    scores = Scores(np.array([0, 1, 2, 3]), np.arange(4), np.zeros((4, 4)))
    found = recognition(scores)
    assert found["acc"].tolist() == [0.25] * 4
    assert found["eer"].tolist() == [0.5] * 4
