"""Conversion of scores to tables and back."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.evaluation.scores import Scores


def test_a_part_of_a_table_of_categories():
    """The names of other datasets' users, which a part of a larger table still lists, are not in the way."""
    scores = Scores(
        np.array(["b", "a"]),
        np.array([0, 0]),
        np.array([0, 0]),
        np.array(["b", "a"]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.ones((2, 2), dtype=bool),
    )
    frame = scores.to_frame()
    other = frame.assign(reference="z", user="z")
    both = pd.concat([other, frame]).astype({"reference": "category", "user": "category"})
    part = Scores.from_frame(both[both["user"] != "z"])
    assert part.users.tolist() == ["b", "a"]
    np.testing.assert_array_equal(part.raw, scores.raw)
