"""Error rates against distributions that are known, and against decisions made one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.calibration.error_rates import claims_among, counted_rates, stated_rates
from keydyn.decisions.calibration.trials import Trials
from keydyn.keystrokes.one_sample import recorded_samples
from tests.decisions.calibration.test_calibration import APART, LENGTHS, simulated


def test_stated_rates_are_those_of_the_distributions() -> None:
    calibration = Calibration.learn(simulated(60, 20, 5))
    for target in (0.1, 0.01):
        found = stated_rates(calibration, Targets(target))
        assert [one.keys for one in found] == LENGTHS.tolist()
        for one, apart in zip(found, APART, strict=True):
            assert one.accepted_strangers.value == pytest.approx(target, rel=1e-6)
            assert one.accepted_strangers.low < target < one.accepted_strangers.high
            # The share of N(d/2, 1) below the score that this share of N(−d/2, 1) reaches.
            refused = norm.cdf(norm.isf(target) - apart)
            assert one.refused_genuine == pytest.approx(refused, abs=0.04)


def test_a_share_that_the_calibration_cannot_state_accepts_nobody() -> None:
    found = stated_rates(Calibration.learn(simulated(10, 2, 6)), Targets(1e-4))
    assert [(one.accepted_strangers, one.refused_genuine) for one in found] == [(None, 1.0)] * 2


def test_counted_rates_are_those_of_decisions_made_one_by_one() -> None:
    frame = make_typists(n_users=3, n_samples=4, text="free", n_keys=60, random_state=3)
    background, at = shipped_background(), Targets(0.05)
    trials = claims_among(background, recorded_samples(frame))
    # Three of four samples of 60 keys enrol.
    whole = counted_rates(trials, background.calibrations.at(3 * 60), at)[-1]
    by_sample = dict(iter(frame.groupby(["user", "session"], sort=False)))
    own, strangers = [], []
    for user, session in by_sample:
        for other in frame["user"].unique():
            verifier = Verifier.of(background, at)
            # The person claimed is enrolled without the sample of this turn, as the typist is.
            turn = sorted({n for name, n in by_sample if name == user}).index(session)
            numbers = sorted({n for name, n in by_sample if name == other})
            left = [by_sample[other, n] for place, n in enumerate(numbers) if place != turn]
            verifier.enrol(other, pd.concat(left, ignore_index=True))
            accepted = verifier.verify(other, by_sample[user, session]).accepted
            (own if other == user else strangers).append(accepted)
    assert whole.keys == 60
    assert whole.refused_genuine.value == 1 - np.mean(own)
    assert whole.accepted_strangers.value == np.mean(strangers)
    assert whole.refused_genuine.trials == whole.accepted_strangers.trials == len(own) == 12
    # Of three people there is no telling how others would fare.
    assert whole.refused_genuine.low is None


def test_counted_rates_have_intervals_that_hold_the_truth_as_often_as_they_say() -> None:
    calibration = Calibration.learn(simulated(60, 20, 7))
    threshold = calibration.threshold(0.05, 10)
    held = []
    for seed in range(60):
        counted = counted_rates(simulated(20, 3, 100 + seed), calibration, Targets(0.05))[0].refused_genuine
        assert counted.trials == 60
        held.append(counted.low <= norm.cdf(threshold - APART[0] / 2) <= counted.high)
    # 95 % are aimed at; with 20 people somewhat fewer, and 60 repetitions scatter by 3 % around that.
    assert np.mean(held) >= 0.85


def test_lengths_that_nobody_typed_have_no_rate() -> None:
    scores = np.array([[0.0, np.nan], [1.0, np.nan]])
    trials = Trials(LENGTHS, scores, np.array([0, 1]), np.array([0, 0]))
    found = counted_rates(trials, Calibration.learn(simulated(10, 5, 8)), Targets(0.1))
    assert found[0].refused_genuine is not None
    assert found[1].refused_genuine is found[1].accepted_strangers is None


def test_one_person_or_single_samples_are_refused() -> None:
    frame = make_typists(n_users=2, n_samples=2, text="free", n_keys=20, random_state=3)
    one = frame[frame["user"] == frame["user"].iloc[0]]
    single = frame["session"] == frame["session"].iloc[0]
    # Also where only one of the people has a single sample.
    for too_little in (one, frame[single], frame[single | (frame["user"] == frame["user"].iloc[0])]):
        with pytest.raises(ValueError, match="two people or more"):
            claims_among(shipped_background(), recorded_samples(too_little))
