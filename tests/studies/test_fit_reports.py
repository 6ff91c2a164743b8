"""What the reports of the studies of fit say, from results made by hand; and the slow studies in full."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from keydyn.commands.run_study import STUDIES
from keydyn.datasets import make_typists
from keydyn.studies.calibration import calibration_table, power_table, share_interval
from keydyn.studies.calibration_report import pooled_words, power_words, size_words, write_calibration
from keydyn.studies.model_choice import FAMILIES, SMOOTHING, STATES, choice_table
from keydyn.studies.model_choice_report import choice_words, write_choice
from keydyn.studies.outputs import Outputs
from keydyn.studies.residual_checks import residual_rows, residual_table, typical_user


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
    two, one, double = line.split("; ")[0::2]
    assert "Fable, POHMM: two-sided calibrated as far as can be seen (size 0.05" in two
    assert "one-sided not calibrated (size 0.36" in one
    assert "double bootstrap of the right size, but not uniform (size 0.05" in double


def test_words_on_size_over_all_models():
    """5 of 100 twice are 10 of 200, a share of 0.05; 36 and 5 are 41 of 200."""
    even = np.arange(1, 101) / 100
    small = np.round(np.ceil(100 * even**3) / 100, 2)
    tables = [
        calibration_table(found_by(small, even)),
        calibration_table(found_by(even, np.ones(100), model="hmm")),
    ]
    said = pooled_words(pd.concat(tables))
    assert "two-sided 10 of 200 (0.05, 0.02 to 0.09; as often as it should)" in said
    assert "one-sided 41 of 200 (0.20, 0.15 to 0.27; too often)" in said
    assert "double bootstrap 5 of 200 (0.03, 0.01 to 0.06; as often as it should)" in said


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
    assert "finds 1 for four users of five" in said
    assert "most often: one state (POHMM, Fable), missed for 10%; least often: exponential" in said


def test_the_report_on_calibration_is_whole(tmp_path):
    even = np.arange(1, 101) / 100
    outputs = Outputs(tmp_path)
    write_calibration(outputs, pd.concat([found_by(even, even), found_by(even / 2, np.nan, "normal")]), {})
    for name in ("report.html", "words.md", "tables/power.csv", "figures/calibration.png", "tests.parquet"):
        assert (tmp_path / name).stat().st_size > 0, name
    outputs.clear(STUDIES["calibration"].files())
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == []


def choices():
    """Every model for two users: BIC is lowest for three log-t states, held-out best for two."""
    rows = []
    for user in (1, 2):
        for states in STATES:
            for family in FAMILIES:
                for rule in SMOOTHING:
                    far = (family != "logstudent") + 3 * (rule is None)
                    held = -5.0 - abs(states - 2) - far
                    rows.append(
                        {
                            "dataset": "essay",
                            "user": str(user),
                            "states": states,
                            "family": family,
                            "smoothing": "none" if rule is None else rule,
                            "parameters": 10 * states,
                            "events": 100,
                            "bic": 100.0 * (9.0 + abs(states - 3) + 2 * far),
                            "held_out": -np.inf if rule is None and family == "lognormal" else held,
                        }
                    )
    return pd.DataFrame(rows)


def test_words_on_the_choice_of_models(tmp_path):
    (said,) = choice_words(choice_table(choices()))
    assert said.startswith(
        "Essay: the median user's BIC is lowest for 3 states, log-t, smoothed, 3.00 an event below the "
        "paper's choice, 2 states, log-normal, smoothed; held-out log-likelihood is highest for 2 states, "
        "log-t, smoothed, 1.00 an event above it."
    )
    # Before it by BIC: log-t of 3, 2, 4 and 1 states, then the four other families of 3; by held-out
    # likelihood the log-t of 2 states alone, for 1 and 3 states of it are as good.
    assert "Of 40 models the paper's is number 9 by BIC and number 2 by held-out likelihood" in said
    assert "the best of all for 0% and 0% of users" in said
    assert "log-normal models 3 states is best by BIC and 2 states by held-out likelihood" in said
    assert "of two states the log-t by BIC and the log-t by held-out likelihood" in said
    assert "would call samples of the median user impossible" in said
    (short,) = write_choice(Outputs(tmp_path), choices(), {})
    assert said in (tmp_path / "words.md").read_text()
    # The paper's, and the two that are best of all for somebody.
    assert short.frame["states"].tolist() == [2, 2, 3]


def test_residuals_of_users():
    keystrokes = make_typists(n_users=3, n_samples=2, text="copied", n_keys=60, random_state=3)
    rows = pd.DataFrame(residual_rows(keystrokes, "mine"))
    assert len(rows) == 6
    table = residual_table(rows)
    assert table["users"].tolist() == [3, 3]
    pohmm = rows[rows["model"] == "pohmm"]
    assert table["not_normal"].iloc[1] == np.mean(pohmm["ks_p"] <= 0.05)
    one = typical_user(keystrokes, "mine", rows)
    of_one = pohmm[pohmm["user"] == one.user].iloc[0]
    # The one in the middle, and the same residuals.
    assert of_one["ks_statistic"] == pohmm["ks_statistic"].median()
    assert stats.kstest(one.residuals["pohmm"], "norm").statistic == pytest.approx(of_one["ks_statistic"])
    assert len(one.residuals["hmm"]) == one.lengths.sum() == of_one["residuals"]
