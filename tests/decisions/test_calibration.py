"""Calibrations against distributions whose ratios and error rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from keydyn.decisions.calibration import RATES, Calibration
from keydyn.decisions.operating_point import Costs, Targets
from keydyn.decisions.trials import Trials

LENGTHS = np.array([10, 40])
# Genuine scores are N(d/2, 1) and strangers' N(−d/2, 1): the true log-likelihood ratio is d times the score.
APART = np.array([1.5, 3.0])


def simulated(n_people: int, queries: int, seed: int, apart: np.ndarray = APART) -> Trials:
    """Everybody claims to be everybody, so many times."""
    random = np.random.default_rng(seed)
    claimed, typist, _ = (
        each.ravel() for each in np.meshgrid(np.arange(n_people), np.arange(n_people), np.arange(queries))
    )
    sign = np.where(claimed == typist, 0.5, -0.5)[:, None]
    return Trials(LENGTHS, sign * apart + random.normal(size=(len(claimed), 2)), claimed, typist)


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


def test_the_false_match_rate_is_that_of_the_distribution() -> None:
    calibration = Calibration.learn(simulated(60, 20, 2))
    for g, keys in enumerate(LENGTHS.tolist()):
        for rate in (0.3, 0.1, 0.03, 0.01, 0.003):
            score = float(norm.isf(rate, -APART[g] / 2))
            found = calibration.false_match_rate(score, keys)
            assert found.value == pytest.approx(rate, rel=0.2)
            assert found.low <= found.value <= found.high
            assert calibration.false_non_match_rate(float(norm.ppf(rate, APART[g] / 2)), keys) == (
                pytest.approx(rate, rel=0.5)
            )
    assert calibration.false_match_rate(-1e6, 10).value == 1.0
    # Never 0: one more stranger might be above everybody seen so far.
    assert calibration.false_match_rate(1e6, 10).value >= 1e-4


def test_a_new_stranger_is_accepted_as_rarely_as_was_said() -> None:
    """The rate holds on average over calibrations, however few trials each has."""
    target, accepted = 0.1, []
    for seed in range(400):
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
    assert targets.answer(calibration, accept + 0.3, 40) == "accept"
    assert targets.answer(calibration, accept - 0.3, 40) == "unsure"
    assert targets.answer(calibration, float(norm.ppf(0.01, apart / 2)) - 0.4, 40) == "reject"
    costs = Costs(false_match=10.0, false_non_match=1.0, prior=0.5)
    assert costs.threshold == pytest.approx(np.log(10.0))
    assert costs.answer(calibration, np.log(10.0) / apart + 0.2, 40) == "accept"
    assert costs.answer(calibration, np.log(10.0) / apart - 0.2, 40) == "reject"
    assert Costs(1.0, 1.0, prior=0.9).threshold == pytest.approx(-np.log(9.0))


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_targets_are_rates(rate: float) -> None:
    with pytest.raises(ValueError, match="false_match must lie between 0 and 1"):
        Targets(false_match=rate)
    with pytest.raises(ValueError, match="prior must lie between 0 and 1"):
        Costs(1.0, 1.0, prior=rate)


def test_perfect_separation_and_ties_give_numbers() -> None:
    apart = Calibration.learn(simulated(12, 3, 6, np.array([200.0, 400.0])))
    assert np.isfinite(apart.slope).all() and (apart.slope > 0).all()
    trials = simulated(12, 3, 7)
    tied = Trials(LENGTHS, np.zeros_like(trials.scores), trials.claimed, trials.typist)
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
        for name in ("lengths", "intercept", "slope", "impostor", "low", "high", "genuine")
    }
    for wrong, problem in (
        ({"slope": -parts["slope"]}, "positive"),
        ({"lengths": parts["lengths"][::-1].copy()}, "must rise"),
        ({"impostor": parts["impostor"][:, ::-1].copy()}, "must rise"),
        ({"low": parts["low"] * np.nan}, "low of a calibration"),
        ({"intercept": parts["intercept"][:1]}, "intercept of a calibration"),
    ):
        with pytest.raises(ValueError, match=problem):
            Calibration(**(parts | wrong), n_people=12)
