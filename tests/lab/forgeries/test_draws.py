"""Moments and supports of made-up times, against numpy's and scipy's on each group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from keydyn.lab.forgeries.draws import (
    LEAST_WEIGHT,
    MEMORY,
    averages,
    histograms,
    normal,
    recent_histograms,
    resampled,
    uniform,
)
from keydyn.lab.forgeries.key_contexts import ValueGroups

VALUES = [[80.0, 95.0, 100.0, 160.0], [50.0], [70.0, 70.0, 90.0]]
AGES = [[9, 4, 0, 2], [3], [1, 0, 0]]
# Each group serves as many keys, in turn; moments are then certain to within a few standard errors.
DRAWS = 20_000


def groups(draws=DRAWS):
    sizes = np.array([len(values) for values in VALUES])
    return ValueGroups(
        np.concatenate(VALUES),
        np.concatenate(AGES),
        np.cumsum(sizes) - sizes,
        sizes,
        np.tile(np.arange(len(VALUES)), draws),
    )


def drawn(method, seed=0):
    """(draws, groups)"""
    made = method(groups(), np.random.default_rng(seed))
    return made.reshape(DRAWS, len(VALUES))


def within(values, mean, scale):
    """Whether a mean of draws is within five standard errors of what it should be."""
    return abs(values.mean() - mean) <= 5 * scale / np.sqrt(len(values)) + 1e-9


def test_averages_are_the_means():
    np.testing.assert_allclose(drawn(averages)[:2], np.tile([np.mean(v) for v in VALUES], (2, 1)))
    assert (drawn(averages).std(axis=0) < 1e-9).all()


def test_uniform_times_lie_between_the_extremes():
    for made, values in zip(drawn(uniform).T, VALUES, strict=True):
        low, high = min(values), max(values)
        assert made.min() >= low
        assert made.max() <= high
        if high > low:
            assert stats.kstest(made, stats.uniform(low, high - low).cdf).pvalue > 1e-4
        else:
            assert (made == low).all()


def test_normal_times_have_the_moments():
    for made, values in zip(drawn(normal).T, VALUES, strict=True):
        mean, scale = np.mean(values), np.std(values)
        if scale == 0:
            assert (made == mean).all()
        else:
            assert stats.kstest(made, stats.norm(mean, scale).cdf).pvalue > 1e-4


def test_histograms_are_inverted_as_quantiles_are():
    """The same random numbers, asked of numpy's interpolated quantiles."""
    chance = np.random.default_rng(0).random(DRAWS * len(VALUES)).reshape(DRAWS, len(VALUES))
    for made, u, values in zip(drawn(histograms).T, chance.T, VALUES, strict=True):
        np.testing.assert_allclose(made, np.quantile(values, u), rtol=1e-9)


def test_recent_values_weigh_more():
    """The density between neighbouring values is half the sum of their weights, by the middles."""
    for made, values, ages in zip(drawn(recent_histograms).T, VALUES, AGES, strict=True):
        assert made.min() >= min(values)
        assert made.max() <= max(values)
        order = np.argsort(values, kind="stable")
        sorted_values = np.array(values)[order]
        weights = np.maximum(np.exp(-np.array(ages)[order] / MEMORY), LEAST_WEIGHT)
        if len(values) == 1:
            assert (made == values[0]).all()
            continue
        between = (weights[1:] + weights[:-1]) / 2
        middles = (sorted_values[1:] + sorted_values[:-1]) / 2
        mean = (between @ middles) / between.sum()
        assert within(made, mean, np.ptp(values))


def test_without_memory_only_the_last_sample_counts():
    made = recent_histograms(groups(), np.random.default_rng(0), memory=0.01).reshape(DRAWS, -1)
    # The newest of the third group are 70 and 90; of the first, 100 alone, whose weight reaches halfway to
    # its neighbours.
    assert np.median(made[:, 0]) == pytest.approx(100.0, abs=35.0)
    assert (made[:, 2] >= 70.0).all()


def test_resampled_times_are_those_recorded():
    for made, values in zip(drawn(resampled).T, VALUES, strict=True):
        assert np.isin(made, values).all()
        assert within(made, np.mean(values), np.std(values))


@pytest.mark.parametrize("method", [averages, uniform, normal, histograms, recent_histograms, resampled])
def test_no_keys_have_no_times(method):
    nothing = np.empty(0, dtype=np.int64)
    empty = ValueGroups(np.empty(0), nothing, nothing, nothing, nothing)
    assert len(method(empty, np.random.default_rng(0))) == 0
