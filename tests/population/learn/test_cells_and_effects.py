"""Where the iteration for what people share begins."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.population.learn.cells_and_effects import _start


class Loaded:
    """Values that are in memory."""

    def __init__(self, values):
        self.values = values

    def load(self):
        return self.values, np.zeros(self.values.shape, dtype=np.int64)


@pytest.mark.parametrize(
    ("location", "deviation", "is_seen"),
    # What lies within the rounding of a feature's size is no deviation.
    [(0.0, 1e-3, True), (1e6, 1e-2, True), (1e6, 1e-4, False), (-1e6, 1e-4, False), (0.0, 1e-10, False)],
)
def test_a_feature_starts_with_its_median_and_its_deviation_unless_that_is_rounding(
    location, deviation, is_seen
):
    steps = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, np.nan])
    values = np.column_stack([location + deviation * steps, np.full(6, np.nan)])
    found, scale = _start([Loaded(values)], 2)
    assert found == pytest.approx([location, 0.0])
    # That of a normal distribution whose middle half is as wide; nothing is known of the other feature.
    expected = deviation / 0.67449 if is_seen else 1.0
    assert scale == pytest.approx([expected, 1.0], rel=1e-4)
