"""Sequential tests on simulated keys whose true ratio is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student

from keydyn.decisions.calibration.sequential import faded, increments, suspicion, wald_bounds

N, LENGTH, C = 4000, 150, 6
OFFSETS = np.arange(N + 1) * LENGTH


def typed(own, random, n=N, length=LENGTH, shift=0.4):
    """Terms (n · length, 1 + C) of keys typed by the claimed person, or by one of the cohort, per sequence.

    People differ by where their values lie; values are Student t.
    """
    centres = shift * np.array([0.0, -2.0, -1.5, -1.0, 1.0, 1.5, 2.0])
    who = np.zeros(n, dtype=int) if own else random.integers(1, C + 1, n)
    x = centres[who][:, None] + random.standard_t(5, (n, length))
    return student.logpdf(x.ravel()[:, None] - centres, 5)


def chance(rate, n):
    """How far a rate among n can be above its expectation: four standard deviations."""
    return 4.0 * np.sqrt(rate * (1.0 - rate) / n)


@pytest.mark.parametrize("level", [5.0, 20.0])
def test_a_stranger_rarely_ever_reaches_a_ratio(level):
    """Ville: P(ratio ever > t | stranger) ≤ 1/t, the stranger being like the cohort."""
    ratio = increments(typed(False, np.random.default_rng(0)), OFFSETS, 1.0, -np.inf)
    highest = np.cumsum(ratio.reshape(N, LENGTH), axis=1).max(axis=1)
    reached = np.mean(highest > np.log(level))
    assert reached <= 1 / level + chance(1 / level, N)
    # The bound is no empty one.
    assert reached > 0.5 / level


@pytest.mark.parametrize(("keep", "least"), [(1.0, -np.inf), (0.9, -np.inf), (0.9, -0.5)])
def test_the_claimed_person_rarely_ever_looks_like_a_stranger(keep, least):
    """The same the other way round, for any way of weighting the cohort."""
    ratio = increments(typed(True, np.random.default_rng(1)), OFFSETS, keep, least)
    lowest = np.cumsum(ratio.reshape(N, LENGTH), axis=1).min(axis=1)
    for level in (5.0, 20.0):
        assert np.mean(lowest < -np.log(level)) <= 1 / level + chance(1 / level, N)


def decisions(ratio, bounds):
    """Whether each sequence is rejected before it is accepted; by hand, from plain sums."""
    sums = -np.cumsum(ratio.reshape(-1, LENGTH), axis=1)
    over = (sums >= bounds.reject) | (sums <= -bounds.accept)
    assert over.any(axis=1).mean() > 0.99
    return sums[np.arange(len(sums)), np.argmax(over, axis=1)] >= bounds.reject


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.01, 0.1)])
def test_walds_bounds_hold(alpha, beta):
    """α' ≤ α/(1 − β), β' ≤ β/(1 − α) and α' + β' ≤ α + β, of the first decision."""
    bounds = wald_bounds(alpha, beta)
    random = np.random.default_rng(2)
    stranger = increments(typed(False, random, shift=1.0), OFFSETS, 1.0, -np.inf)
    genuine = increments(typed(True, random, shift=1.0), OFFSETS, 1.0, -np.inf)
    accepted, rejected = 1 - decisions(stranger, bounds).mean(), decisions(genuine, bounds).mean()
    assert accepted <= alpha / (1 - beta) + chance(alpha, N)
    assert rejected <= beta / (1 - alpha) + chance(beta, N)
    assert accepted + rejected <= alpha + beta + chance(alpha + beta, N)
    # The running form makes the same decisions: it is 0 again when it has accepted.
    level = suspicion(genuine, OFFSETS, bounds.accept).reshape(N, LENGTH)
    over = (level >= bounds.reject) | (level == 0.0)
    first = np.argmax(over, axis=1)
    decided = over.any(axis=1)
    found = level[np.arange(N), first] >= bounds.reject
    np.testing.assert_array_equal(found[decided], decisions(genuine, bounds)[decided])


@pytest.mark.parametrize("wrong", [0.0, 0.5, -1.0, np.nan])
def test_error_rates_that_are_none(wrong):
    for rates in ((wrong, 0.1), (0.1, wrong)):
        with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
            wald_bounds(*rates)


def siegmund(drift, height):
    """Average run length of a cumulative sum of normal steps with deviation 1 (Siegmund 1985)."""
    b = height + 1.166
    return (np.exp(-2 * drift * b) + 2 * drift * b - 1) / (2 * drift**2)


def test_pages_run_lengths_are_those_of_theory():
    """At least e^h keys until a false alarm, and as many as Siegmund says; few until a true one."""
    shift, height, n, length = 1.0, 3.0, 2000, 2000
    random = np.random.default_rng(3)
    offsets = np.arange(n + 1) * length
    times = {}
    for mean in (0.0, shift):
        x = random.normal(mean, 1.0, n * length)
        ratio = norm.logpdf(x) - norm.logpdf(x, shift)
        above = suspicion(ratio, offsets).reshape(n, length) >= height
        assert above.any(axis=1).all()
        times[mean] = np.argmax(above, axis=1) + 1.0
    assert times[0.0].mean() > np.exp(height)
    np.testing.assert_allclose(times[0.0].mean(), siegmund(-shift / 2, height / shift), rtol=0.1)
    np.testing.assert_allclose(times[shift].mean(), siegmund(shift / 2, height / shift), rtol=0.1)


def test_a_change_of_person_is_noticed_as_soon_as_a_stranger():
    """What went before the change is no credit: the delay does not grow with it."""
    random = np.random.default_rng(4)
    n, own, strange = 2000, 300, 100
    x = np.concatenate([random.normal(0, 1, (n, own)), random.normal(1, 1, (n, strange))], axis=1).ravel()
    ratio = norm.logpdf(x) - norm.logpdf(x, 1.0)
    offsets = np.arange(n + 1) * (own + strange)
    level = suspicion(ratio, offsets).reshape(n, -1)
    quiet = (level[:, :own] < 6.0).all(axis=1)
    delay = np.argmax(level[quiet, own:] >= 6.0, axis=1) + 1.0
    assert delay.mean() <= siegmund(0.5, 6.0) * 1.02
    # A plain sum has to use up 300 keys' credit first, and never does.
    plain_sum = -np.cumsum(ratio.reshape(n, -1), axis=1)
    assert (plain_sum[:, -1] >= 6.0).mean() < 0.01


def by_hand(terms, lengths, keep, accept):
    """All three, from their definitions."""
    sums, keys, ratios, levels = [], [], [], []
    for part in np.split(terms, np.cumsum(lengths)[:-1]):
        present = [n for n in range(len(part)) if not np.isnan(part[n, 0])]
        level = 0.0
        for n in range(len(part)):
            so_far = [k for k in present if k <= n]
            weights = keep ** np.arange(len(so_far))[::-1]
            sums.append(weights @ part[so_far] if so_far else np.zeros(part.shape[1]))
            keys.append(weights.sum())
            if n in present:
                before = (keep ** np.arange(1, len(so_far))[::-1]) @ part[so_far[:-1], 1:]
                before = before if len(so_far) > 1 else np.zeros(part.shape[1] - 1)
                mixture = logsumexp(before + part[n, 1:]) - logsumexp(before)
                ratios.append(max(part[n, 0] - mixture, -2.0))
                level -= ratios[-1]
                level = 0.0 if level <= -accept else level
            else:
                ratios.append(np.nan)
            levels.append(level)
    return np.array(sums), np.array(keys), np.array(ratios), np.array(levels)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.sampled_from([1.0, 0.8]),
    st.sampled_from([0.0, 1.5]),
    st.integers(0, 2**31),
)
def test_definitions_and_streams(lengths, keep, accept, seed):
    """As defined; and the same to the last bit key by key, sequences in turn."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    terms = random.normal(-5.0, 2.0, (offsets[-1], 4))
    terms[random.random(len(terms)) < 0.2] = np.nan
    sums, keys = faded(terms, offsets, keep)
    ratio = increments(terms, offsets, keep)
    level = suspicion(ratio, offsets, accept)
    if len(terms):
        for found, expected in zip(
            (sums, keys, ratio, level), by_hand(terms, lengths, keep, accept), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    n = len(lengths)
    states = np.zeros((n, 5)), np.zeros((n, 3)), np.zeros(n)
    for place in range(max(lengths)):
        which = np.flatnonzero(np.array(lengths) > place)
        rows, each = offsets[which] + place, np.arange(len(which) + 1)
        some = [state[which] for state in states]
        one_sums, one_keys = faded(terms[rows], each, keep, some[0])
        one_ratio = increments(terms[rows], each, keep, state=some[1])
        one_level = suspicion(one_ratio, each, accept, some[2])
        for state, new in zip(states, some, strict=True):
            state[which] = new
        for found, expected in ((one_sums, sums), (one_keys, keys), (one_ratio, ratio), (one_level, level)):
            np.testing.assert_array_equal(found, expected[rows])


def test_what_is_wrong_is_refused():
    terms, offsets = np.zeros((4, 3)), np.array([0, 4])
    for wrong in ([0, 3], [1, 4], [0, 5, 4], []):
        with pytest.raises(ValueError, match="offsets"):
            faded(terms, np.array(wrong, dtype=np.int64), 0.9)
    for keep in (0.0, 1.1, np.nan):
        with pytest.raises(ValueError, match="keep"):
            increments(terms, offsets, keep)
    with pytest.raises(ValueError, match="infinite"):
        faded(terms - np.inf, offsets, 0.9)
    with pytest.raises(ValueError, match="no cohort"):
        increments(terms[:, :1], offsets)
    with pytest.raises(ValueError, match="least"):
        increments(terms, offsets, 0.9, 0.0)
    with pytest.raises(ValueError, match="accept"):
        suspicion(terms[:, 0], offsets, -1.0)
    for state in (np.zeros((1, 3)), np.full((1, 4), np.nan), np.zeros((1, 8))[:, ::2]):
        with pytest.raises(ValueError, match="state"):
            faded(terms, offsets, 0.9, state)
