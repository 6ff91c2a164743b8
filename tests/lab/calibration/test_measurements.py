"""Size and power of the test of fit, small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.lab.calibration import report as figures
from keydyn.lab.calibration.measurements import (
    TRUE,
    calibration_calls,
    calibration_table,
    distance_from_uniform,
    power_table,
)
from keydyn.lab.goodness_of_fit.measurements import SurrogateTest
from tests.lab.rows import called


def test_distance_from_uniform():
    steps = np.arange(1, 11) / 10
    assert distance_from_uniform(steps, 9) == pytest.approx(0.0)
    assert distance_from_uniform(np.full(50, 0.1), 9) == pytest.approx(0.9)
    assert distance_from_uniform(np.ones(50), 9) == pytest.approx(0.9)


def test_calibration_and_power(keystrokes, tmp_path):
    found = called(calibration_calls(keystrokes, "mine", TRUE, SurrogateTest(5, 4), repeats=2))
    assert len(found) == 8
    table = calibration_table(found)
    assert set(table["p"]) == {"p_value", "p_one_sided", "p_double"}
    assert (table["tests"] == 4).all()
    assert table["ks_distance"].between(0, 1).all()
    exponential = {"one exponential": {"n_states": 1, "emission": "exponential"}}
    wrong = called(calibration_calls(keystrokes, "mine", exponential, SurrogateTest(19), models=("hmm",)))
    # A single exponential is nothing like intervals.
    assert power_table(wrong)["one_sided"].tolist() == [1.0]
    figures.draw_calibration(found, tmp_path / "calibration.png")
    figures.draw_power(power_table(wrong), tmp_path / "power.png")
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())
