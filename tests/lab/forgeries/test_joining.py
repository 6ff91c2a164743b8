"""Joined and cut samples, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.lab.forgeries import first_keys_of_each, joined
from tests.lab.forgeries.recordings import typed

PARTS = [
    ("abc", [0, 10, 20], [1, 2, 3]),
    ("de", [0, 30], [4, 5]),
    ("f", [0], [6]),
    ("ghij", [0, 40, 50, 60], [7, 8, 9, 10]),
    ("k", [0], [11]),
]


def test_sentences_are_joined_until_they_are_long_enough():
    samples = joined(typed(*PARTS), 4)
    assert ["".join(one.labels()) for one in samples.sequences] == ["abcde", "fghij"]
    assert samples.names == [(0, 0), (0, 1)]
    np.testing.assert_array_equal(
        times_of(samples)[:5], [[np.nan, 1], [10, 2], [20, 3], [np.nan, 4], [30, 5]]
    )
    assert len(joined(typed(*PARTS), 100)) == 0
    with pytest.raises(ValueError, match="1 key or more"):
        joined(typed(*PARTS), 0)


def test_the_first_keys_of_each_sample():
    samples = first_keys_of_each(typed(*PARTS), 3)
    assert ["".join(one.labels()) for one in samples.sequences] == ["abc", "ghi"]
    assert samples.names == [(0, 0), (0, 3)]
    assert times_of(samples)[:, 1].tolist() == [1, 2, 3, 7, 8, 9]
    assert len(first_keys_of_each(typed(*PARTS), 5)) == 0
    with pytest.raises(ValueError, match="1 key or more"):
        first_keys_of_each(typed(*PARTS), 0)
