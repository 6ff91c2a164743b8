"""Error rates by group, where the errors of every user are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.rates.fairness import THIRDS, WORST, error_rates_by, median_intervals
from keydyn.lab.frame.table_text import markdown
from keydyn.lab.verification.tables import fairness_table
from tests.population.simulated import samples_of_people


def decided(refused, accepted, n=20, **columns):
    """Decisions on users of whom so many of n genuine samples are refused and of n impostors' accepted.

    Errors are spread evenly, so that both halves of a user's decisions have them.
    """
    rows = []
    for user, (no, yes) in enumerate(zip(refused, accepted, strict=True)):
        spread = np.arange(n) // 2 * 2
        own = {name: values[user] for name, values in columns.items()}
        for k in range(n):
            rows.append(
                {"user": user, "genuine": True, "answer": "reject" if spread[k] < no else "accept", **own}
            )
            rows.append(
                {"user": user, "genuine": False, "answer": "accept" if spread[k] < yes else "unsure", **own}
            )
    return pd.DataFrame(rows)


def rate(table, error, column, group):
    found = table[(table["error"] == error) & (table["column"] == column) & (table["group"] == group)]
    assert len(found) == 1
    return found.iloc[0]


def test_rates_are_the_means_of_users():
    refused, accepted = [0, 2, 4, 6, 8, 10], [0, 0, 0, 2, 2, 2]
    speed = [100.0, 110.0, 200.0, 210.0, 400.0, 420.0]
    table = error_rates_by(decided(refused, accepted, speed=speed, hand=list("llrrlr")), ["speed", "hand"])
    assert rate(table, "fnmr", "", "everybody")["rate"] == pytest.approx(np.mean(refused) / 20)
    assert rate(table, "fmr", "", "everybody")["rate"] == pytest.approx(0.05)
    for third, expected in zip(THIRDS, ([0, 2], [4, 6], [8, 10]), strict=True):
        found = rate(table, "fnmr", "speed", third)
        assert found["rate"] == pytest.approx(np.mean(expected) / 20)
        assert found["users"] == 2
        assert found["low"] <= found["rate"] <= found["high"]
    assert rate(table, "fnmr", "hand", "l")["rate"] == pytest.approx((0 + 2 + 8) / 60)
    text = markdown(fairness_table(table.assign(dataset="mine")))
    assert "| speed | lowest third | 2 |" in text


def test_the_worst_tenth_are_the_worst():
    refused = [10, 8, *[0] * 18]
    table = error_rates_by(decided(refused, [0] * 20))
    worst = rate(table, "fnmr", "", WORST)
    assert worst["users"] == 2
    assert worst["rate"] == pytest.approx(9 / 20)
    assert worst["low"] <= worst["rate"] <= worst["high"]
    assert rate(table, "fmr", "", WORST)["rate"] == 0.0


def test_the_worst_tenth_of_equals_is_as_good_as_all():
    """Where users differ by chance only, those chosen by half of their decisions are like all in the rest."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"user": np.repeat(np.arange(200), 20), "genuine": True})
    rows["answer"] = np.where(random.random(len(rows)) < 0.2, "reject", "accept")
    table = error_rates_by(rows)
    worst = rate(table, "fnmr", "", WORST)
    assert worst["rate"] == pytest.approx(0.2, abs=0.08)
    assert worst["low"] < 0.2 < worst["high"]
    assert set(table["error"]) == {"fnmr"}


def test_tied_users_share_the_last_places():
    """One of three users with equal rates is to be chosen: their mean is reported."""
    table = error_rates_by(decided([10] * 3 + [0] * 7, [0] * 10))
    assert rate(table, "fnmr", "", WORST)["rate"] == pytest.approx(0.5)


def test_a_single_user_and_missing_columns():
    table = error_rates_by(decided([4], [0]))
    assert table["low"].isna().all()
    assert "20.0 %" in markdown(fairness_table(table.assign(dataset="mine")))
    with pytest.raises(ValueError, match="'speed'"):
        error_rates_by(decided([4], [0]), ["speed"])
    with pytest.raises(ValueError, match="no decisions"):
        error_rates_by(decided([], []).reindex(columns=["user", "genuine", "answer"]))


def test_speed_is_the_median_interval():
    samples = samples_of_people(n_people=3)
    found = median_intervals(samples)
    X, offsets = samples.sequences.X, samples.sequences.offsets
    for user in range(3):
        own = [X[offsets[s] + 1 : offsets[s + 1], 1] for s in np.flatnonzero(samples.users == user)]
        assert found[user] == pytest.approx(np.median(np.concatenate(own)))
