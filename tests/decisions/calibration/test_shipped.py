"""The calibration that comes with keydyn."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.calibration.background import SHIPPED, learnt_calibration, shipped_background
from keydyn.population import PopulationModel


def test_it_belongs_to_the_shipped_population_and_is_small():
    background = shipped_background()
    assert background.calibration.population == PopulationModel.shipped().sha256
    assert background.cohort == ()
    assert background.calibration.n_people == 115
    assert background.calibration.lengths[0] == 10
    assert SHIPPED.stat().st_size < 50_000


@pytest.mark.slow
def test_it_is_what_the_command_makes(recordings):
    """As `make population` does."""
    made, there = learnt_calibration(recordings), shipped_background().calibration
    np.testing.assert_array_equal(made.lengths, there.lengths)
    for name in ("intercept", "slope", "genuine", "suspicion"):
        np.testing.assert_allclose(getattr(made, name), getattr(there, name), rtol=1e-3, atol=1e-3)
