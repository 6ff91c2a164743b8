"""Calibrations against distributions whose ratios and error rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from keydyn.decisions.calibration.calibration import RATES, Calibration
from keydyn.decisions.calibration.learning import locked_at, watched_hours
from keydyn.decisions.calibration.sequential import suspicion
from keydyn.decisions.calibration.trials import Trials
from keydyn.decisions.decision import Costs, Targets

LENGTHS = np.array([10, 40])
# Genuine scores are N(d/2, 1) and strangers' N(−d/2, 1): the true log-likelihood ratio is d times the score.
APART = np.array([1.5, 3.0])
# Two genuine sessions of half an hour each, whose suspicion rises to 4 and to 6.
WATCHED = (np.array([1.0, 4.0, 2.0, 6.0]), np.array([0, 2, 4]), np.array([0.0, 0.5, 0.0, 0.5]))


def simulated(n_people: int, queries: int, seed: int, apart: np.ndarray = APART) -> Trials:
    """Everybody claims to be everybody, so many times."""
    random = np.random.default_rng(seed)
    claimed, typist, _ = (
        each.ravel() for each in np.meshgrid(np.arange(n_people), np.arange(n_people), np.arange(queries))
    )
    sign = np.where(claimed == typist, 0.5, -0.5)[:, None]
    scores = sign * apart + random.normal(size=(len(claimed), 2))
    return Trials(LENGTHS, scores, claimed, typist, *WATCHED)


def test_ratios_are_the_true_ones_at_and_between_the_lengths() -> None:
    calibration = Calibration.learn(simulated(60, 20, 1))
    scores = np.linspace(-2, 2, 9)
    for g, keys in enumerate(LENGTHS):
        found = calibration.llr(scores, np.full(9, keys))
        assert found == pytest.approx(APART[g] * scores, abs=0.35)
    # Halfway on the logarithmic scale of keys, and unchanged beyond both ends.
    between = calibration.llr(scores, np.full(9, 20))
    ends = [calibration.llr(scores, np.full(9, keys)) for keys in (10, 40)]
    assert between == pytest.approx((ends[0] + ends[1]) / 2, rel=1e-12)
    assert calibration.llr(scores, np.full(9, 3)).tolist() == ends[0].tolist()
    assert calibration.llr(scores, np.full(9, 1000)).tolist() == ends[1].tolist()


def test_rates_between_the_lengths_lie_between_theirs() -> None:
    """Halfway on the logarithmic scale of keys is the geometric mean of the rates at both ends."""
    calibration = Calibration.learn(simulated(60, 20, 1))
    scores = np.linspace(-1, 1, 9)
    for rates in (calibration.false_match_rates, calibration.false_non_match_rates):
        short, between, long = (rates(scores, np.full(9, keys)) for keys in (10, 20, 40))
        assert (short > 0).all()
        assert (long > 0).all()
        assert between == pytest.approx(np.sqrt(short * long), rel=1e-9)
        assert (np.abs(np.log(long / short)) > 0.01).all()


def test_the_false_match_rate_is_that_of_the_distribution() -> None:
    calibration = Calibration.learn(simulated(60, 20, 2))
    for g, keys in enumerate(LENGTHS.tolist()):
        for rate in (0.3, 0.1, 0.03, 0.01, 0.003):
            score = float(norm.isf(rate, -APART[g] / 2))
            found = calibration.false_match_rate(score, keys)
            assert found.value == pytest.approx(rate, rel=0.2)
            assert found.low <= found.value <= found.high
            low = norm.ppf(rate, APART[g] / 2)
            below = calibration.false_non_match_rates(np.array([low]), np.array([keys]))
            assert below == pytest.approx([rate], rel=0.5)
            level = calibration.threshold(rate, keys)
            assert calibration.false_match_rate(level, keys).value == pytest.approx(rate, rel=1e-6)
    assert calibration.false_match_rate(-1e6, 10).value == 1.0
    assert calibration.threshold(1e-9, 10) == np.inf
    # Never 0: one more stranger might be above everybody seen so far.
    assert calibration.false_match_rate(1e6, 10).value >= 1e-4


def test_a_new_stranger_is_accepted_as_rarely_as_was_said() -> None:
    """The rate holds on average over calibrations, however few trials each has."""
    target, accepted = 0.1, []
    for seed in range(120):
        calibration = Calibration.learn(simulated(10, 2, 1000 + seed))
        level = calibration.impostor[0, int(np.argmin(np.abs(RATES - target)))]
        accepted.append(norm.sf(level, -APART[0] / 2))
    error = 3 * np.std(accepted) / np.sqrt(len(accepted))
    assert target - 0.02 <= np.mean(accepted) <= target + error


def test_ratios_of_strangers_exceed_t_at_most_once_in_t() -> None:
    calibration = Calibration.learn(simulated(60, 20, 3))
    fresh = simulated(80, 10, 4)
    ratios = calibration.llr(fresh.scores[~fresh.genuine, 1], np.array([40]))
    for t in (2.0, 5.0, 10.0, 30.0, 100.0):
        chance = 3 * np.sqrt(1 / t / len(ratios))
        assert (ratios > np.log(t)).mean() <= 1 / t + chance


def test_answers_follow_targets_and_costs() -> None:
    calibration = Calibration.learn(simulated(60, 20, 5))
    apart = APART[1]
    accept = float(norm.isf(0.01, -apart / 2))
    targets = Targets(false_match=0.01, false_non_match=0.01)
    low = float(norm.ppf(0.01, apart / 2))
    scores, keys = np.array([accept + 0.3, accept - 0.3, low - 0.4]), np.full(3, 40)
    assert targets.answers(calibration.meanings(scores, keys)) == ["accept", "unsure", "reject"]
    costs = Costs(false_match=10.0, false_non_match=1.0, prior=0.5)
    assert costs.threshold == pytest.approx(np.log(10.0))
    scores = np.log(10.0) / apart + np.array([0.2, -0.2])
    assert costs.answers(calibration.meanings(scores, keys[:2])) == ["accept", "reject"]
    assert Costs(1.0, 1.0, prior=0.9).threshold == pytest.approx(-np.log(9.0))


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_targets_are_rates(rate: float) -> None:
    with pytest.raises(ValueError, match="false_match must lie between 0 and 1"):
        Targets(false_match=rate)
    with pytest.raises(ValueError, match="prior must lie between 0 and 1"):
        Costs(1.0, 1.0, prior=rate)


def test_perfect_separation_and_ties_give_numbers() -> None:
    apart = Calibration.learn(simulated(12, 3, 6, np.array([200.0, 400.0])))
    assert np.isfinite(apart.slope).all()
    assert (apart.slope > 0).all()
    trials = simulated(12, 3, 7)
    tied = Trials(LENGTHS, np.zeros_like(trials.scores), trials.claimed, trials.typist, *WATCHED)
    calibration = Calibration.learn(tied)
    # A score that everybody has says nothing, and everybody reaches it.
    assert calibration.ratio(0.0, 10) == pytest.approx(0.0, abs=1e-6)
    assert calibration.false_match_rate(0.0, 10).value == 1.0


def test_too_few_trials_are_refused() -> None:
    trials = simulated(3, 2, 8)
    with pytest.raises(ValueError, match="a calibration needs 20 genuine and 20 false claims"):
        Calibration.learn(trials)


def test_nobody_can_change_it_and_nonsense_is_refused() -> None:
    calibration = Calibration.learn(simulated(12, 3, 9))
    with pytest.raises(ValueError, match="read-only"):
        calibration.slope[0] = 2.0
    parts = {
        name: np.array(getattr(calibration, name))
        for name in (
            "lengths",
            "intercept",
            "slope",
            "lapse",
            "impostor",
            "low",
            "high",
            "genuine",
            "suspicion",
        )
    }
    unbounded = parts["impostor"].copy()
    unbounded[0] = np.inf
    for wrong, problem in (
        ({"impostor": unbounded}, "impostor must begin with what all reach"),
        ({"genuine": parts["genuine"][:, ::-1].copy()}, "genuine must fall"),
        ({"slope": -parts["slope"]}, "slope has values"),
        ({"lengths": parts["lengths"][::-1].copy()}, "must rise"),
        ({"lengths": np.full_like(parts["lengths"], 5)}, "must rise"),
        ({"impostor": parts["impostor"][:, ::-1].copy()}, "must rise"),
        ({"low": parts["low"] * np.nan}, "low has values"),
        ({"intercept": parts["intercept"][:1]}, "intercept must have shape"),
    ):
        with pytest.raises(ValueError, match=problem):
            Calibration(**(parts | wrong), n_people=12, hours=1.0)
    for hours in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="hours must be above 0"):
            Calibration(**parts, n_people=12, hours=hours)


def test_the_level_of_lock_outs_is_that_of_the_sessions() -> None:
    calibration = Calibration.learn(simulated(12, 3, 9))
    # At most five of the two sessions in their hour together: the lowest level there is, which 6 exceeds.
    assert calibration.lockout_level(5.0) == 4.0
    assert calibration.lockout_level(100.0) == 4.0
    assert calibration.lockout_level(3.2) == 4.0
    # An hour supports no rate below 3 per hour: from there on, above all that was seen, by Page's bound.
    assert calibration.hours == 1.0
    assert calibration.supported_lockouts == 3.0
    for rate in (1.0, 0.1, 1e-3):
        assert calibration.lockout_level(rate) == pytest.approx(6.0 + np.log(3.0 / rate))
    with pytest.raises(ValueError, match="above 0"):
        calibration.lockout_level(0.0)


@pytest.mark.parametrize("per_hour", [5.0, 1.0, 0.2])
def test_people_who_type_as_their_template_says_are_locked_out_no_oftener_than_asked(per_hour: float) -> None:
    """Calibrated in three hours, which support 1 per hour, and watched for three hundred."""
    few, many = watched(3, 10), watched(300, 11)
    trials = simulated(12, 3, 12)
    calibration = Calibration.learn(
        Trials(trials.lengths, trials.scores, trials.claimed, trials.typist, *few)
    )
    at = locked_at(many[0], many[1], np.full(300, calibration.lockout_level(per_hour)))
    hours = watched_hours(many[2], many[1], at).sum()
    # The chance of the few hours of a rate that is measured, and that of the many.
    chance = 3 * np.sqrt(per_hour / calibration.hours + per_hour / hours) if per_hour >= 1.0 else 0.0
    assert (at < np.diff(many[1])).sum() / hours <= per_hour + chance


def watched(n_hours: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Page's sum in sessions of an hour, a key per second: values are N(0, 1), those of others N(1, 1)."""
    keys = 3600
    offsets = np.arange(n_hours + 1) * keys
    x = np.random.default_rng(seed).normal(size=n_hours * keys)
    return suspicion(0.5 - x, offsets), offsets, np.tile(np.arange(1, keys + 1) / keys, n_hours)
