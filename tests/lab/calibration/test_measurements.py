"""Size and power of the test of fit, small, on simulated typists."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.lab.calibration.measurements import (
    calibration,
    calibration_table,
    distance_from_uniform,
    power,
    power_table,
)
from keydyn.lab.goodness_of_fit import figures


def test_distance_from_uniform():
    steps = np.arange(1, 11) / 10
    assert distance_from_uniform(steps, 9) == pytest.approx(0.0)
    assert distance_from_uniform(np.full(50, 0.1), 9) == pytest.approx(0.9)
    assert distance_from_uniform(np.ones(50), 9) == pytest.approx(0.9)


def test_calibration_and_power(keystrokes, tmp_path):
    progress = []
    found = calibration(keystrokes, "mine", n_surrogates=5, repeats=2, progress=progress.append)
    assert progress == list(range(1, 9))
    table = calibration_table(found)
    assert set(table["p"]) == {"p_value", "p_one_sided", "p_double"}
    assert (table["tests"] == 4).all()
    assert table["ks_distance"].between(0, 1).all()
    exponential = {"one exponential": {"n_states": 1, "emission": "exponential"}}
    wrong = power(keystrokes, "mine", models=("hmm",), wrong=exponential, n_surrogates=19)
    # A single exponential is nothing like intervals.
    assert power_table(wrong)["one_sided"].tolist() == [1.0]
    figures.draw_calibration(found, tmp_path / "calibration.png")
    figures.draw_power(power_table(wrong), tmp_path / "power.png")
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())
