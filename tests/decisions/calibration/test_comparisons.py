"""Places whose strangers score higher by a known shift, and what their own people say of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from keydyn.decisions.calibration.amounts import Calibrations
from keydyn.decisions.calibration.comparisons import (
    COMPARISONS,
    Comparisons,
    own_place,
    own_rate,
)
from tests.decisions.calibration.test_calibration import APART, simulated

UNSURE = 0.3


@pytest.fixture(scope="module")
def calibrations() -> Calibrations:
    """Learnt elsewhere, from strangers whose scores are normal; places differ by 0.3."""
    return Calibrations.learn({100: simulated(60, 20, 1)}, UNSURE)


def place(n: int, shift: float, seed: int, each: int = 5, between: float = 0.0) -> dict[str, Comparisons]:
    """Comparisons among n people whose strangers score higher by `shift`; templates differ by `between`."""
    random = np.random.default_rng(seed)
    names = [f"p{n}" for n in range(n)]
    easy = dict(zip(names, between * random.normal(size=n), strict=True))
    found = {}
    for name in names:
        others = [other for other in names if other != name] * each
        own = np.array([easy[other] for other in others])
        scores = -APART[1] / 2 + shift + own + random.normal(size=len(others))
        amounts = np.full(len(others), 40), np.full(len(others), 100)
        found[name] = Comparisons(tuple(others), scores, *amounts)
    return found


def test_many_people_say_what_the_shift_is(calibrations: Calibrations) -> None:
    for shift in (-0.4, 0.0, 0.4):
        found = own_place(calibrations, place(40, shift, 3))
        assert (found.people, found.comparisons) == (40, 40 * 39 * 5)
        # Three deviations, and what the calibration's own rates are off by.
        assert found.shift == pytest.approx(shift, abs=3 * found.unsure + 0.05)
        assert found.unsure < UNSURE / 3


def test_rates_hold_once_own_people_count(calibrations: Calibrations) -> None:
    people = place(40, 0.5, 5)
    before, found = calibrations.at(100), own_place(calibrations, people)
    after = calibrations.moved(found.shift, found.unsure).at(100)
    # The true share of this place's strangers who reach the threshold of 1 %.
    reached = [norm.sf(one.threshold(0.01, 40), -APART[1] / 2 + 0.5) for one in (before, after)]
    assert reached[0] > 0.025
    assert 0.007 < reached[1] < 0.014
    rate = own_rate(calibrations.moved(found.shift, found.unsure), people, 0.01)
    assert rate is not None
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low <= 0.01 <= rate.high


def test_the_fewer_people_the_less_is_believed(calibrations: Calibrations) -> None:
    shifts, deviations = [], []
    for n in (3, 6, 12, 40):
        # Three people can agree by chance: what is believed is the mean over places.
        found = [own_place(calibrations, place(n, 0.5, seed)) for seed in range(12)]
        shifts.append(np.mean([one.shift for one in found]))
        deviations.append(np.mean([one.unsure for one in found]))
    assert deviations == sorted(deviations, reverse=True)
    assert max(deviations) < UNSURE
    assert 0.0 < shifts[0] < shifts[-1] < 0.55


def test_the_deviation_covers_places_drawn_as_stated(calibrations: Calibrations) -> None:
    """Places drawn with the deviation that is assumed: the posterior's interval covers most of them."""
    random = np.random.default_rng(11)
    covered = 0
    for seed in range(40):
        shift = UNSURE * random.normal()
        found = own_place(calibrations, place(8, shift, 100 + seed, between=0.3))
        covered += abs(found.shift - shift) <= 1.96 * found.unsure
    # 38 are expected; with 95 % each, fewer than 33 have a probability below 1 in 200.
    assert covered >= 33


def test_few_people_and_own_calibrations_change_nothing(calibrations: Calibrations) -> None:
    two = place(2, 1.0, 1)
    assert own_place(calibrations, two).shift == 0.0
    assert own_place(calibrations, {}).people == 0
    assert own_rate(calibrations, two, 0.01) is None
    here = calibrations.moved(0.0, 0.0)
    assert own_place(here, place(20, 1.0, 1)) == own_place(here, place(20, 1.0, 1))
    assert own_place(here, place(20, 1.0, 1)).shift == 0.0


def test_who_left_does_not_count(calibrations: Calibrations) -> None:
    people = place(10, 0.3, 2)
    gone = {name: one.without("p0") for name, one in people.items() if name != "p0"}
    still_named = {name: one for name, one in people.items() if name != "p0"}
    assert own_place(calibrations, gone) == own_place(calibrations, still_named)
    assert own_place(calibrations, gone).people == 9
    assert "p0" not in gone["p1"].claimed


def test_files() -> None:
    one = place(4, 0.0, 1)["p0"]
    again = COMPARISONS.parsed(one.packed(), "a file")
    assert again.claimed == one.claimed
    assert again.scores.tolist() == one.scores.tolist()
    assert len(COMPARISONS.parsed(Comparisons.none().packed(), "a file")) == 0
    with pytest.raises(ValueError, match="comparisons have"):
        Comparisons(("a",), np.zeros(2), np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64))
