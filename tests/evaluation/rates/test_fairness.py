"""Error rates by group, for users with known errors."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation import Scores
from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.fairness import (
    THIRDS,
    WORST,
    error_rates_by,
    group_differences,
    group_rates,
    median_intervals,
)
from keydyn.lab.frame.table_text import markdown
from keydyn.lab.verification.tables import fairness_table
from tests.population.simulated import samples_of_people


def decided(refused, accepted, n=20, **columns):
    """Decisions on users with given numbers of genuine samples refused and impostors' accepted, of n each.

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


def rates_of_groups(random, n):
    names = ("eer", "fmr", "fnmr", "fmr_same", "fmr_other")
    return pd.DataFrame({name: random.uniform(0.001, 0.2, n) for name in names})


def written_again(rates, weight):
    """The published definitions again, group by group and pair by pair."""
    eer, fmr, fnmr = (rates[name].tolist() for name in ("eer", "fmr", "fnmr"))
    n = len(eer)

    def gini(values):
        total = sum(abs(one - other) for one in values for other in values)
        return n / (n - 1) * total / (2 * n**2 * (sum(values) / n))

    widest = [max(abs(a - b) for a, b in combinations(values, 2)) for values in (fmr, fnmr)]
    return {
        "std": math.sqrt(sum((one - sum(eer) / n) ** 2 for one in eer) / n),
        "ser": max(eer) / min(eer),
        "fdr": 1 - (weight * widest[0] + (1 - weight) * widest[1]),
        "ir": (max(fmr) / min(fmr)) ** weight * (max(fnmr) / min(fnmr)) ** (1 - weight),
        "garbe": weight * gini(fmr) + (1 - weight) * gini(fnmr),
        "sir": sum(rates["fmr_same"]) / sum(rates["fmr_other"]),
    }


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("n", [2, 3, 12])
def test_differences_are_as_published(n, weight):
    random = np.random.default_rng([n, int(100 * weight)])
    for _ in range(50):
        rates = rates_of_groups(random, n)
        assert group_differences(rates, weight) == pytest.approx(written_again(rates, weight), abs=1e-12)


def test_groups_that_do_not_differ_are_fair():
    fair = {"std": 0.0, "ser": 1.0, "fdr": 1.0, "ir": 1.0, "garbe": 0.0, "sir": 1.0}
    for value in (0.0, 0.1):
        rates = pd.DataFrame(dict.fromkeys(("eer", "fmr", "fnmr", "fmr_same", "fmr_other"), [value] * 3))
        assert group_differences(rates) == pytest.approx(fair)


def test_a_ratio_to_nothing_has_no_value():
    rates = pd.DataFrame({"eer": [0.0, 0.1], "fmr": [0.0, 0.1], "fnmr": [0.1, 0.1]})
    found = group_differences(rates.assign(fmr_same=[np.nan, np.nan], fmr_other=[0.1, 0.1]))
    assert (found["ser"], found["ir"], found["sir"]) == (None, None, None)
    assert found["garbe"] == pytest.approx(0.5)


@pytest.mark.parametrize(("groups", "weight", "words"), [(1, 0.5, "two groups"), (2, 1.5, "weight")])
def test_differences_that_cannot_be_are_refused(groups, weight, words):
    with pytest.raises(ValueError, match=words):
        group_differences(rates_of_groups(np.random.default_rng(0), groups), weight)


def scores_of(raw, owners, users):
    """Scores in which every query is a trial against every template."""
    raw = np.array(raw, dtype=float)
    queries = len(owners)
    return Scores(
        np.array(owners), np.arange(queries), np.zeros(queries, int), np.array(users), raw,
        np.ones(raw.shape, bool), "none",
    )  # fmt: skip


def test_rates_of_groups_are_counted():
    """Four users, two queries each. The error rates are equal, 1 of 8 and 3 of 24, above a score of 4."""
    users = ["a", "b", "c", "d"]
    owners = np.repeat(users, 2)
    raw = np.where(owners[:, None] == np.array(users), 9.0, 1.0)
    raw[1, 0] = 0.0  # a is refused once
    raw[2, 0] = 5.0  # b, of a's group, is taken for a
    raw[4, 0] = raw[6, 2] = 5.0  # c is taken for a, d for c
    table = group_rates(scores_of(raw, owners, users), {"a": "l", "b": "l", "c": "r", "d": "r"})
    table = table.set_index("group")
    assert table["users"].tolist() == [2, 2]
    assert table["enough"].tolist() == [False, False]
    assert table["fnmr"].tolist() == pytest.approx([1 / 4, 0.0])
    assert table["fmr"].tolist() == pytest.approx([2 / 12, 1 / 12])
    assert table["fmr_same"].tolist() == pytest.approx([1 / 4, 1 / 4])
    assert table["fmr_other"].tolist() == pytest.approx([1 / 8, 0.0])
    genuine, impostor = np.array([9.0, 0.0, 9.0, 9.0]), np.r_[5.0, 5.0, np.ones(10)]
    assert table.loc["l", "eer"] == pytest.approx(equal_error_rate(genuine, impostor))
    assert table.loc["r", "eer"] == 0.0


def test_users_without_a_group_are_left_out():
    owners = np.repeat([0, 1, 2], 2)
    raw = np.where(owners[:, None] == np.arange(3), 9.0, 1.0)
    scores = scores_of(raw, owners, [0, 1, 2])
    table = group_rates(scores, {0: "x", 1: "y", 2: None})
    assert table["users"].tolist() == [1, 1]
    assert table["fmr_same"].isna().all()
    with pytest.raises(ValueError, match="one group"):
        group_rates(scores, dict.fromkeys(range(3), "x"))


def test_many_numbers_become_thirds():
    owners = np.repeat(np.arange(9), 2)
    raw = np.where(owners[:, None] == np.arange(9), 9.0, 1.0)
    table = group_rates(scores_of(raw, owners, np.arange(9)), {user: 20 + 5 * user for user in range(9)})
    assert table["group"].tolist() == list(THIRDS)
    assert table["users"].tolist() == [3, 3, 3]
