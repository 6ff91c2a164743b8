"""Measures of a sample's times, against computations that go key by key."""

import math
from dataclasses import replace

import numpy as np
import pytest

from keydyn.decisions.liveness.measures import GROUPS, MEASURES, Seen, measured, measures
from keydyn.keystrokes import one_sample
from keydyn.population import PopulationModel
from keydyn.population.cells import context_codes
from tests.decisions.liveness.measures_by_formula import measures_by_formula

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
    wide = np.where(np.isfinite(x), wide, np.nan)
    effects, slopes = random.normal(0, 0.2, (n, 2, 5)), random.normal(0, 0.3, (2, 3))
    return Seen(x, np.exp(x), y, scale, pair, wide, effects, 1.5 * y, slopes, key, key < 9, key == 2)


def measured_alone(sample):
    return measures(sample, np.array([0, len(sample.key)]))[0]


def measure(sample, name):
    return measured_alone(sample)[MEASURES.index(name)]


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


@pytest.mark.parametrize("n", [2, 3, 12, 80, 400])
@pytest.mark.parametrize("tick", [1.0, 15.6])
def test_all_measures_are_what_their_formulas_say(n, tick):
    random = np.random.default_rng(n)
    missing = [(row, f) for row in range(1, n) for f in range(2) if random.random() < 0.1]
    sample = seen(n, seed=n, missing=missing)
    times = np.ceil(sample.times / tick) * tick
    key = random.integers(0, 9, n)
    sample = sample._replace(times=times, x=np.log(times), key=key, known=key < 7, modifier=key == 3)
    # The same sums in another order.
    np.testing.assert_allclose(measured_alone(sample), measures_by_formula(sample), rtol=1e-9, atol=1e-9)


def test_a_sample_is_seen_beside_anyone_or_beside_a_template(samples):
    known, template = PEOPLE.parameters, PEOPLE.enrol(samples[:2])
    keys = ["shift", "T", "h", "e", "§", "h", "e"] * 12
    press = np.cumsum(np.random.default_rng(0).uniform(40, 300, len(keys)))
    release = press + np.random.default_rng(1).uniform(40, 200, len(keys))
    release[7] = np.nan
    sample = one_sample(keys, press, release)
    ready = PEOPLE.ready_for(sample)
    x, cell, codes = ready.seen.values, ready.typing.cell, ready.seen.codes
    m = len(known.cells.vocabulary)
    alone = np.stack([codes, m + 1 + codes], axis=1)
    modifier = (np.array(keys) == "shift") | (codes == m)
    around = ready.seen.around(known.cells.spaces)
    effects = np.zeros((len(x), 2, 5))
    for f, k in np.ndindex(2, 5):
        table = dict(zip(known.wide.codes[f][k].tolist(), known.wide.effects[f][k].tolist(), strict=True))
        effects[:, f, k] = [table.get(code, 0.0) for code in context_codes(around, m)[f, k].tolist()]
    for owner, mean in ((PEOPLE.anyone(), np.zeros(known.cells.n_cells)), (template, template.mean)):
        # What is expected of the person with this key, in this pair, and in wider contexts.
        location, scale = known.location + mean * known.scale, known.scale[cell]
        residual = ready.typing.y - mean[cell]
        pair = (location[cell] - location[alone]) / scale
        wide = (x - location[cell]) / scale - residual
        own = residual / owner.scale[cell], owner.slopes
        one = Seen(x, np.exp(x), residual, scale, pair, wide, effects, *own, codes, codes < m, modifier)
        found, counts = measured(PEOPLE, sample, template if mean.any() else None)
        np.testing.assert_allclose(found[0], measures_by_formula(one), rtol=1e-9, atol=1e-9)
        assert counts.tolist() == [np.sum(np.isfinite(x[:, 1]) & (codes < m))]


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
    times = sample.times
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
    assert measure(sample._replace(times=np.exp(same)), name) > 0.3 > measure(sample, name)
    coarse = sample._replace(times=50.0 * np.ceil(sample.times / 50.0))
    assert abs(measure(coarse, name)) < 0.3


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_short_constant_and_missing_samples_have_finite_measures(n):
    sample = seen(n)
    for x in (sample.x, np.full((n, 2), np.log(90.0)), np.full((n, 2), np.nan)):
        y = (x - 5.0) / sample.scale
        one = sample._replace(x=x, times=np.exp(x), y=y, wide=np.where(np.isfinite(x), 0.0, np.nan))
        assert np.isfinite(measured_alone(one)).all()


def test_a_template_s_own_means_are_taken_away(samples):
    template = PEOPLE.enrol(samples[:2])
    anyone = PEOPLE.anyone()
    changed = replace(template, mean=template.mean * 0.0, scale=anyone.scale, slopes=anyone.slopes)
    np.testing.assert_allclose(measured(PEOPLE, samples, changed)[0], measured(PEOPLE, samples)[0])
    assert not np.allclose(measured(PEOPLE, samples, template)[0], measured(PEOPLE, samples)[0])
