"""Rates of claims made by hand, and of simulated places whose scores are shifted by a known amount."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from keydyn.lab.transfer.claims import COUNTED, LEFT_OUT, STATED, among, per_user, rates_frame, rates_of

PEOPLE, SAMPLES = 40, 5


def place(shift, genuine=3.0, seed=0):
    """Strangers' scores are normal with mean `shift`; the stated rates are right where it is 0."""
    rng = np.random.default_rng(seed)
    typist = np.repeat(np.arange(PEOPLE), SAMPLES)
    claimed, typed = np.tile(np.arange(PEOPLE), len(typist)), np.repeat(typist, PEOPLE)
    # Evenly spread quantiles in random order: the shares below are exact, not a matter of chance.
    strange = claimed != typed
    score = np.empty(len(claimed))
    for which, mean in ((strange, shift), (~strange, genuine)):
        n = int(which.sum())
        score[which] = mean + rng.permutation(norm.ppf((np.arange(n) + 0.5) / n))
    return pd.DataFrame(
        {
            "claimed": claimed,
            "typist": typed,
            "sample": np.repeat(np.arange(len(typist)), PEOPLE),
            "enrolled_keys": 240,
            "score": score,
            # The ratio of normal densities with means `genuine` and 0.
            "llr": genuine * score - genuine**2 / 2,
            "rate": norm.sf(score),
        }
    )


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.4])
def test_a_known_shift_of_scores_gives_known_rates(shift):
    for row in rates_of(place(shift)):
        threshold = norm.isf(row["stated"])
        assert row["strangers"] == pytest.approx(norm.sf(threshold - shift), abs=2e-4)
        assert row["genuine_stated"] == pytest.approx(norm.sf(threshold - 3.0), abs=6e-3)
        assert row["genuine_true"] == pytest.approx(norm.sf(norm.isf(0.01) + shift - 3.0), abs=6e-3)
        assert row["eer"] == pytest.approx(norm.sf((3.0 - shift) / 2), abs=4e-3)
        assert row["strangers_low"] <= row["strangers"] <= row["strangers_high"]


def test_an_interval_excludes_what_is_stated_only_where_it_is_wrong():
    right, wrong = (
        next(row for row in rates_of(place(shift)) if row["stated"] == 0.05) for shift in (0.0, 0.8)
    )
    assert right["strangers_low"] <= 0.05 <= right["strangers_high"]
    assert wrong["strangers_low"] > 0.05


def test_cost_is_least_where_the_calibration_is_right():
    right, wrong = (next(rates_of(place(shift))) for shift in (0.0, 1.0))
    assert right["cllr"] == pytest.approx(right["cllr_min"], abs=0.02)
    assert wrong["cllr"] > wrong["cllr_min"] + 0.02
    assert right["keys"] == 240
    assert (right["people"], right["samples"]) == (PEOPLE, PEOPLE * SAMPLES)


def test_likely_repeats_are_no_strangers():
    claims = place(0.0)
    pair = among(claims["claimed"].to_numpy(), claims["typist"].to_numpy(), [(3, 7)])
    assert set(zip(claims["claimed"][pair], claims["typist"][pair], strict=True)) == {(3, 7), (7, 3)}
    assert pair.sum() == 2 * SAMPLES
    # Person 3 takes the test again as 7: all of these claims are accepted.
    claims.loc[pair, "rate"] = 0.0
    labels = {"dataset_from": "essay", "dataset_to": "aalto", "enrolled": 5}
    frame = rates_frame(claims.assign(**labels), {"aalto": [(7, 3)]})
    assert frame["repeats"].tolist() == [COUNTED] * len(STATED) + [LEFT_OUT] * len(STATED)
    counted, left_out = (
        frame[(frame["repeats"] == which) & (frame["stated"] == 0.001)].iloc[0]
        for which in (COUNTED, LEFT_OUT)
    )
    assert counted["claims"] - left_out["claims"] == 2 * SAMPLES
    accepted = counted["strangers"] * counted["claims"] - left_out["strangers"] * left_out["claims"]
    assert accepted == pytest.approx(2 * SAMPLES)


def test_equal_error_rates_of_people_by_hand():
    """The first person's scores are apart; of the second's, half of either kind are on the wrong side."""
    claimed = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    genuine = np.array([True, True, False, False] * 2)
    score = np.array([3.0, 2.0, 1.0, 0.0, 3.0, 1.0, 2.0, 0.0])
    assert per_user(score, claimed, genuine, ~genuine) == pytest.approx((0.0 + 0.5) / 2)
    order = np.array([5, 0, 3, 7, 1, 4, 2, 6])
    assert per_user(score[order], claimed[order], genuine[order], ~genuine[order]) == pytest.approx(0.25)
