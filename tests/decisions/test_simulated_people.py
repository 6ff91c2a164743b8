"""What sequential tests promise, kept on people drawn from a population and watched as they type."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.calibration.sequential import increments, suspicion, wald_bounds
from keydyn.population import PopulationModel
from tests.population.simulated import KEYS, samples_of_people

N, LENGTH, C = 2000, 80, 12
OFFSETS = np.arange(N + 1) * LENGTH


@pytest.fixture(scope="module")
def ratios():
    """(N, LENGTH) the running ratio of strangers, who are like the cohort, and of those who are claimed."""
    model = PopulationModel().fit(samples_of_people(n_people=20))
    random = np.random.default_rng(0)
    cohort, claimed = model.draw(C, random), model.draw(N, random)
    keys = random.choice(KEYS, LENGTH)
    found = []
    for typists in ([cohort[k] for k in random.integers(0, C, N)], claimed):
        values = model.typed_by(typists, keys, random).reshape(N * LENGTH, 2)
        streams = model.online_many(claimed, cohort)
        terms = streams.update(values, np.tile(keys, N), np.repeat(np.arange(N), LENGTH))
        steps = np.nan_to_num(increments(terms, OFFSETS, 1.0, -np.inf))
        found.append(np.cumsum(steps.reshape(N, LENGTH), axis=1))
    return found


def most(rate):
    """What a rate among N can be by chance: four standard deviations more."""
    return rate + 4.0 * np.sqrt(rate * (1.0 - rate) / N)


@pytest.mark.parametrize("t", [2.0, 5.0, 20.0, 100.0])
def test_the_ratio_is_rarely_ever_misleading(ratios, t):
    """P(ratio ever > t | stranger) ≤ 1/t, and P(ratio ever < 1/t | claimed person) ≤ 1/t."""
    stranger, genuine = ratios
    misled = np.mean(stranger.max(axis=1) > np.log(t)), np.mean(genuine.min(axis=1) < -np.log(t))
    assert max(misled) <= most(1 / t)
    # The bounds are within a factor of a few of what happens: they say something.
    assert min(misled) > 0.1 / t


@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_walds_bounds_hold(ratios, rate):
    bounds = wald_bounds(rate, rate)
    wrong = []
    for ratio, right in zip(ratios, (-1.0, 1.0), strict=True):
        over = (ratio <= -bounds.reject) | (ratio >= bounds.accept)
        assert over.any(axis=1).all()
        decided = ratio[np.arange(N), np.argmax(over, axis=1)]
        wrong.append(np.mean(np.sign(decided) != right))
    assert max(wrong) <= most(rate / (1 - rate))
    assert sum(wrong) <= most(2 * rate)


def test_page_rarely_locks_those_who_are_claimed(ratios):
    """Falsely at most once in e^h keys: of N sessions at most N · LENGTH / e^h."""
    steps = np.diff(ratios[1], axis=1, prepend=0.0).ravel()
    for h in (6.0, 8.0):
        locked = np.mean((suspicion(steps, OFFSETS).reshape(N, LENGTH) >= h).any(axis=1))
        assert locked <= most(LENGTH * np.exp(-h))
