"""Calibrations by the amount enrolled, and moved, against distributions whose rates are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from keydyn.decisions.calibration.amounts import CALIBRATIONS, Calibrations
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.files import ModelFileError
from tests.decisions.calibration.test_calibration import APART, LENGTHS, simulated

# Who enrols with more is told apart better.
AMOUNTS = {50: APART, 200: 2.0 * APART}


@pytest.fixture(scope="module")
def calibrations() -> Calibrations:
    """From 60 people who enrolled with 50 keys, and with 200."""
    return Calibrations.learn({keys: simulated(60, 20, keys, apart) for keys, apart in AMOUNTS.items()})


def test_each_amount_has_its_own_rates(calibrations: Calibrations) -> None:
    for amount, apart in AMOUNTS.items():
        calibration = calibrations.at(amount)
        for g, keys in enumerate(LENGTHS.tolist()):
            score = float(norm.isf(0.03, -apart[g] / 2))
            assert calibration.false_match_rate(score, keys).value == pytest.approx(0.03, rel=0.2)


def test_between_amounts_and_beyond_them(calibrations: Calibrations) -> None:
    little, much = calibrations.at(50), calibrations.at(200)
    between = calibrations.at(100)  # halfway on a logarithmic scale
    known = np.isfinite(little.impostor) & np.isfinite(much.impostor)
    assert between.impostor[known] == pytest.approx(((little.impostor + much.impostor) / 2)[known])
    assert between.slope == pytest.approx((little.slope + much.slope) / 2)
    assert calibrations.at(1).intercept.tolist() == little.intercept.tolist()
    assert calibrations.at(10**6).intercept.tolist() == much.intercept.tolist()
    # Thousands of people cost no more calibrations than there are steps.
    assert len({id(calibrations.at(keys)) for keys in range(50, 200)}) <= 11


def test_a_moved_calibration_is_that_of_strangers_who_score_higher(calibrations: Calibrations) -> None:
    shift = 0.4
    moved, keys, apart = calibrations.moved(shift, 0.0).at(50), 40, APART[1]
    score = float(norm.isf(0.02, -apart / 2 + shift))
    assert moved.false_match_rate(score, keys).value == pytest.approx(0.02, rel=0.2)
    same = calibrations.at(50).ratio(score - shift, keys)
    assert moved.ratio(score, keys) == pytest.approx(same, rel=1e-12)


def test_what_is_not_known_of_a_place_widens_the_interval(calibrations: Calibrations) -> None:
    unsure, keys = 0.3, 40
    plain, wide = calibrations.at(50), calibrations.moved(0.0, unsure).at(50)
    score = plain.threshold(0.02, keys)
    before, after = plain.false_match_rate(score, keys), wide.false_match_rate(score, keys)
    assert after.value == pytest.approx(before.value, rel=1e-9)
    # The rate if strangers scored 1.96 deviations higher or lower, by the true distribution.
    low, high = (norm.sf(score + side * 1.96 * unsure, -APART[1] / 2) for side in (1, -1))
    assert after.low == pytest.approx(low, rel=0.35)
    assert after.high == pytest.approx(high, rel=0.35)
    assert after.low < before.low < before.high < after.high


def test_an_interval_ends_beyond_all_strangers_seen() -> None:
    """Where no draw of people has a stranger who came as far, the interval still ends."""
    calibrations = shipped_background().calibrations
    for keys in (40, 150, 640):
        found = calibrations.at(300).false_match_rate(100.0, keys)
        assert 0.0 <= found.low <= found.value <= found.high <= 0.01


def test_amounts_with_too_few_trials_are_left_out() -> None:
    trials = {50: simulated(60, 20, 1), 200: simulated(4, 1, 2)}
    assert Calibrations.learn(trials).enrolled.tolist() == [50]
    with pytest.raises(ValueError, match="a calibration needs 20 genuine"):
        Calibrations.learn({200: simulated(4, 1, 2)})


def test_files(calibrations: Calibrations) -> None:
    named = replace(calibrations, population="a" * 64, unsure=0.25)
    again = CALIBRATIONS.parsed(named.packed(), "a file")
    assert again.sha256 == named.sha256 != calibrations.sha256
    assert again.at(120).impostor.tolist() == named.at(120).impostor.tolist()
    assert (again.population, again.unsure, again.n_people) == ("a" * 64, 0.25, 60)
    changed = bytearray(named.packed())
    changed[-9] ^= 1
    with pytest.raises(ModelFileError):
        CALIBRATIONS.parsed(bytes(changed), "a file")


def test_what_makes_no_calibrations(calibrations: Calibrations) -> None:
    each, enrolled = calibrations.each, calibrations.enrolled
    for wrong in (enrolled[::-1], enrolled[:1], np.array([0, 200])):
        with pytest.raises(ValueError, match="enrolled must rise"):
            Calibrations(wrong, each)
    fewer = each[1].only(np.array([True, False]))
    with pytest.raises(ValueError, match="the same numbers of keys"):
        Calibrations(enrolled, (each[0], fewer))
    with pytest.raises(ValueError, match="unsure must be 0 or more"):
        Calibrations(enrolled, each, unsure=-1.0)
    with pytest.raises(ValueError, match="no calibration between"):
        Calibration.towards(each[0], fewer, 0.5)
