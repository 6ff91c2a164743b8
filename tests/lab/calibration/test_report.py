"""What the report on size and power says, from results made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from keydyn.lab.calibration.measurements import calibration_table, power_table, share_interval
from keydyn.lab.calibration.report import pooled_words, power_words, size_words, write
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.run_study import STUDIES


def found_by(p_one_sided, p_double, hypothesis="true", model="pohmm"):
    """Tests of a hundred users with 99 surrogates; the two-sided p-value is uniform."""
    n = len(p_one_sided)
    return pd.DataFrame(
        {
            "dataset": "fable",
            "user": np.arange(n).astype(str),
            "model": model,
            "hypothesis": hypothesis,
            "p_value": np.arange(1, n + 1) / n,
            "p_one_sided": p_one_sided,
            "p_double": p_double,
            "surrogates": 99,
        }
    )


def test_an_interval_of_a_share_by_its_definition():
    """Clopper and Pearson: the ends are the shares under which the count would be as extreme with 0.025."""
    low, high = share_interval(7, 60)
    assert stats.binom.sf(6, 60, low) == pytest.approx(0.025)
    assert stats.binom.cdf(7, 60, high) == pytest.approx(0.025)
    assert share_interval(0, 60)[0] == 0.0


def test_words_on_size():
    """Uniform p-values are called calibrated; those that crowd at zero or in the middle are not."""
    even = np.arange(1, 101) / 100
    small = np.round(np.ceil(100 * even**3) / 100, 2)
    middle = np.concatenate([even[:5], np.full(95, 0.5)])
    table = calibration_table(found_by(small, middle))
    (line,) = size_words(table)
    assert line.split("; ") == [
        "Fable, POHMM: the two-sided test is calibrated as far as can be seen",
        "the one-sided test is not calibrated",
        "the double bootstrap test has the right size, but its p-values are not uniform.",
    ]


def test_words_on_size_over_all_models():
    """5 of 100 twice are 10 of 200, a share of 0.05; 36 and 5 are 41 of 200."""
    even = np.arange(1, 101) / 100
    small = np.round(np.ceil(100 * even**3) / 100, 2)
    tables = [
        calibration_table(found_by(small, even)),
        calibration_table(found_by(even, np.ones(100), model="hmm")),
    ]
    said = pooled_words(pd.concat(tables))
    assert "two-sided test rejects 10 of 200, as often as it should (a share of 0.05, 0.02 to 0.09)" in said
    assert "one-sided test rejects 41 of 200, too often (a share of 0.20, 0.15 to 0.27)" in said
    assert "bootstrap test rejects 5 of 200, as often as it should (a share of 0.03, 0.01 to 0.06)" in said


def test_words_on_power():
    found = power_table(
        pd.concat(
            [
                found_by(np.r_[np.full(90, 0.025), np.full(10, 0.5)], np.nan, "one state"),
                found_by(np.r_[np.full(20, 0.025), np.full(80, 0.5)], np.nan, "exponential"),
            ]
        )
    )
    np.testing.assert_allclose(found["missed"], [0.1, 0.8])
    assert (found["low"] < found["one_sided"]).all()
    assert (found["one_sided"] < found["high"]).all()
    said = power_words(found)
    assert "rejects 1 for four users in five" in said
    assert "most often one state (POHMM, Fable), which it misses for 10% of users, and least often" in said


def test_the_report_on_calibration_is_whole(tmp_path):
    even = np.arange(1, 101) / 100
    outputs = Outputs(tmp_path)
    write(outputs, pd.concat([found_by(even, even), found_by(even / 2, np.nan, "normal")]), {})
    for name in ("report.html", "words.md", "tables/power.csv", "figures/calibration.png", "tests.parquet"):
        assert (tmp_path / name).stat().st_size > 0, name
    outputs.clear(STUDIES["calibration"].files())
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == []
