"""Measures of a sample's times, against computations that go key by key."""

import math
from dataclasses import replace

import numpy as np
import pytest

from keydyn.decisions.liveness.measures import (
    GROUPS,
    MEASURES,
    Seen,
    about_keys,
    measured,
    measures,
    medians,
    resolution,
    standardised,
)
from keydyn.population import PopulationModel

PEOPLE = PopulationModel.shipped()


@pytest.fixture(scope="module")
def samples():
    return PEOPLE.retyped(PEOPLE.draw(2, 0), 2, 60, 0)


def seen(n, seed=0, missing=()):
    """A small sample of three keys."""
    random = np.random.default_rng(seed)
    x = np.log(np.round(random.uniform(40, 300, (n, 2))))
    x[0, 0] = np.nan
    for row, f in missing:
        x[row, f] = np.nan
    scale, pair, wide = (random.uniform(0.2, 0.5, (n, 2)), *random.normal(0, 0.5, (2, n, 2)))
    y = (x - 5.0) / scale - wide
    key = random.integers(0, 3, n)
    return Seen(x, y, scale, pair, np.where(np.isfinite(x), wide, np.nan), key, key < 9, key == 2)


def measure(sample, name):
    return measures(sample)[MEASURES.index(name)]


def test_every_measure_has_a_name_and_a_group(samples):
    values, keys = measured(PEOPLE, samples)
    assert values.shape == (4, len(MEASURES)) == (4, len(GROUPS))
    assert len(set(MEASURES)) == len(MEASURES)
    assert keys.tolist() == [60] * 4
    assert np.isfinite(values).all()


def test_a_sample_is_measured_as_among_others(samples):
    together = measured(PEOPLE, samples)[0]
    alone = [measured(PEOPLE, samples[[n]])[0][0] for n in range(len(samples))]
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_medians_are_those_of_what_is_known():
    values = np.array([[1.0, np.nan], [5.0, np.nan], [np.nan, np.nan], [2.0, np.nan], [9.0, np.nan]])
    assert medians(values).tolist() == [np.nanmedian(values[:, 0]), 0.0]


def test_residuals_are_about_the_mean_of_their_key_which_leans_on_zero():
    key = np.array([0, 1, 0, 1, 0])
    values = np.array([[3.0], [1.0], [np.nan], [2.0], [5.0]])
    expected = [3 - 8 / 4, 1 - 3 / 4, np.nan, 2 - 3 / 4, 5 - 8 / 4]
    np.testing.assert_allclose(about_keys(values, key, 2.0)[:, 0], expected)


@pytest.mark.parametrize("missing", [(), ((4, 0), (5, 1), (6, 1))])
def test_neighbours_are_correlated_as_sums_over_pairs_say(missing):
    sample = seen(25, missing=missing)
    z = np.clip(standardised(about_keys(sample.y, sample.key)), -3, 3)
    above, t_squares, h_squares = 0.0, 1.0, 1.0
    for n in range(25):
        t_squares += z[n, 0] ** 2 if np.isfinite(z[n, 0]) else 0.0
        h_squares += z[n, 1] ** 2 if np.isfinite(z[n, 1]) else 0.0
        if n and np.isfinite(z[n, 0]) and np.isfinite(z[n - 1, 1]):
            above += z[n, 0] * z[n - 1, 1]
    found = measure(sample, "interval and the hold before")
    assert found == pytest.approx(above / math.sqrt(t_squares * h_squares))


def test_the_slope_is_near_one_if_holds_follow_the_next_key_and_near_zero_if_not():
    sample = seen(4000)
    follows = sample.pair + 0.1 * np.random.default_rng(1).normal(size=sample.pair.shape)
    y = follows - sample.pair
    hand = replace_times(sample, y)
    chance = replace_times(sample, y - sample.pair)
    assert measure(hand, "holds: pair, slope") == pytest.approx(1.0, abs=0.05)
    assert measure(chance, "holds: pair, slope") == pytest.approx(0.0, abs=0.05)


def replace_times(sample, y):
    return sample._replace(y=np.where(np.isfinite(sample.x), y, np.nan))


def test_overlaps_are_counted_one_by_one():
    sample = seen(30, seed=3)
    times = np.exp(sample.x)
    over = nested = n = 0
    for k in range(1, 30):
        if sample.modifier[k - 1] or np.isnan(times[k, 0]):
            continue
        n += 1
        over += times[k - 1, 1] > times[k, 0]
        nested += times[k - 1, 1] > times[k, 0] + times[k, 1]
    assert over > 0
    assert measure(sample, "overlaps") == pytest.approx(over / n)
    assert measure(sample, "keys released after the next one") == pytest.approx(math.sqrt(nested / n + 0.003))


def test_equal_times_of_a_key_stand_out_on_any_clock():
    sample = seen(60, seed=5)
    name = "equal times when a key returns, holds"
    same = np.array(sample.x)
    same[:, 1] = np.log(80.0 + 10.0 * sample.key)
    assert measure(sample._replace(x=same), name) > 0.3 > measure(sample, name)
    coarse = sample._replace(x=np.log(50.0 * np.ceil(np.exp(sample.x) / 50.0)))
    assert abs(measure(coarse, name)) < 0.3


def test_the_clock_s_step_is_a_small_gap():
    assert resolution(np.arange(20.0)[:, None] * 15.6) == pytest.approx(15.6)
    assert resolution(np.array([[np.nan, 3.0]])) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_short_constant_and_missing_samples_have_finite_measures(n):
    sample = seen(n)
    for x in (sample.x, np.full((n, 2), np.log(90.0)), np.full((n, 2), np.nan)):
        y = (x - 5.0) / sample.scale
        one = sample._replace(x=x, y=y, wide=np.where(np.isfinite(x), 0.0, np.nan))
        assert np.isfinite(measures(one)).all()


def test_a_template_s_own_means_are_taken_away(samples):
    template = PEOPLE.enrol(samples[:2])
    changed = replace(template, mean=template.mean * 0.0)
    np.testing.assert_allclose(measured(PEOPLE, samples, changed)[0], measured(PEOPLE, samples)[0])
    assert not np.allclose(measured(PEOPLE, samples, template)[0], measured(PEOPLE, samples)[0])
