"""The calibrations and the cohort that come with keydyn."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.calibration.background import SHIPPED, UNNAMED, shipped_background
from keydyn.lab.shipped import across_places, published_people
from keydyn.population import PopulationModel
from keydyn.population.model import SHIPPED_PEOPLE


def test_they_belong_to_the_shipped_population_and_are_small():
    background = shipped_background()
    calibrations = background.calibrations
    assert calibrations.population == PopulationModel.shipped().sha256
    assert calibrations.n_people == 115
    assert calibrations.enrolled.tolist() == [50, 200, 800]
    assert calibrations.lengths[0] == 10
    # The place where they are used is another one.
    assert calibrations.unsure > 0.0
    assert SHIPPED.stat().st_size < 50_000
    assert SHIPPED_PEOPLE.stat().st_size < 600_000


def test_the_cohort_has_no_names_and_has_enrolled_with_little():
    background = shipped_background()
    assert set(background.members) == {UNNAMED}
    assert len(background.cohort) == 115
    assert {one.template_.n_events for one in background.cohort} == {100}
    assert background.place("anyone") == background.place("") == -1


@pytest.mark.slow
def test_they_are_what_the_command_makes(recordings):
    """As `make population` does."""
    made, there = across_places(list(published_people(recordings))), shipped_background().calibrations
    np.testing.assert_array_equal(made.lengths, there.lengths)
    for new, old in zip(made.each, there.each, strict=True):
        for name in ("intercept", "slope", "genuine", "suspicion"):
            np.testing.assert_allclose(getattr(new, name), getattr(old, name), rtol=1e-3, atol=1e-3)
