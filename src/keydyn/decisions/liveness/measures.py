"""What is measured of a sample's times to tell a hand from a machine that makes them up.

A hand prepares the next key while it presses this one, hurries and tires, and never does the same thing twice
in quite the same time. Who makes times up from recordings gets each of them right alone, and how they hang
together wrong. All measures are of times as the population expects them of anyone, so that nobody needs to be
enrolled; each is divided by the sample's own spread where it can be, so that slow and quick typists agree.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.samples import Samples
from keydyn.population.model import PopulationModel
from keydyn.population.parameters import Template

# Residuals count up to this many of the sample's own deviations; those that show the tails, up to this many.
MOST, FAR = 3.0, 6.0
# Beyond this many deviations a residual is far out.
OUT = 2.5
# A median of absolute values, in standard deviations of a normal law.
DEVIATIONS = 1.4826
LEAST_SPREAD = 0.05
# An interval below this, milliseconds, is seldom a hand's.
QUICK = 25.0
# Pseudo-observations by which the mean of a key leans on 0.
KEY_PRIOR = 2.0
# Pseudo-observations of repeated contexts: a sample with few of them says little.
LEAN = 4.0
MODIFIERS = ("shift", "ctrl", "control", "alt", "meta", "cmd", "caps")

NAMES: dict[str, tuple[str, ...]] = {
    "spread": tuple(
        f"{what} of {times}"
        for times in ("intervals", "holds")
        for what in ("spread", "tails", "skewness", "short ones", "long ones")
    ),
    "keys": tuple(
        f"{times}: {what}, {how}"
        for times in ("intervals", "holds")
        for what in ("pair", "wider context")
        for how in ("slope", "correlation")
    ),
    "neighbours": (
        *(f"intervals, {n} apart" for n in (1, 2, 3)),
        *(f"holds, {n} apart" for n in (1, 2, 3)),
        "intervals, farther apart",
        "holds, farther apart",
        "interval and hold",
        "interval and the hold before",
        "interval and the hold two before",
        "hold and the interval before",
        "sizes of holds, 1 apart",
        "sizes of interval and hold",
    ),
    "repeats": tuple(
        f"{what} when a {context} returns, {times}"
        for context in ("key", "pair")
        for times in ("intervals", "holds")
        for what in ("equal times", "differences")
    ),
    "overlaps": (
        "keys released after the next one",
        "keys pressed again before their release",
        "three keys down",
        "overlaps",
        "overlaps: expected, slope",
        "overlaps: expected, correlation",
        "spread of flights",
        "quick intervals",
    ),
}
MEASURES = tuple(name for names in NAMES.values() for name in names)
#: (K,) the number of the group, in the order of `NAMES`, of each measure.
GROUPS = np.repeat(np.arange(len(NAMES)), [len(names) for names in NAMES.values()])


class Seen(NamedTuple):
    """Typing as the population sees it; (N, 2) of interval and hold, unless said otherwise."""

    x: Floats  # logarithms, NaN where missing
    y: Floats  # without what the population expects, in its scale
    scale: Floats
    pair: Floats  # what the pair of keys adds to the expectation for the key alone, in its scale
    wide: Floats  # what wider contexts add
    key: Integers  # (N,) the key's code
    known: Truths  # (N,) whether the population knows the key
    modifier: Truths  # (N,) whether it is held while others are pressed

    def part(self, rows: slice) -> Seen:
        """Some of the keys."""
        return Seen._make(one[rows] for one in self)


def measured(
    people: PopulationModel, samples: Samples, template: Template | None = None
) -> tuple[Floats, Integers]:
    """(n, K) the measures of each sample, and (n,) the number of keys they are of.

    They are beside what is expected of anyone or, with a template, of its owner. Keys that the population
    does not know, or that have no hold, do not count.
    """
    known, ready = people.parameters, people.ready_for(samples)
    seen, cell = ready.seen, ready.typing.cell[:, :2]
    m = len(known.cells.vocabulary)
    key = np.arange(2) * (m + 1) + seen.codes[:, None]
    x, y, scale, location = (
        seen.values[:, :2],
        ready.typing.y[:, :2],
        known.scale[cell],
        known.location[cell],
    )
    pair, wide = (location - known.location[key]) / scale, (x - location) / scale - y
    if template is not None:
        own = template.mean[cell]
        y, pair = y - own, pair + own - template.mean[key] * known.scale[key] / scale
    modifier = modifiers(tuple(known.cells.vocabulary.tolist()))[seen.codes]
    whole = Seen(x, y, scale, pair, wide, seen.codes, seen.codes < m, modifier)
    ends = seen.offsets.tolist()
    found, counts = np.empty((len(samples), len(MEASURES))), np.empty(len(samples), dtype=np.int64)
    for n in range(len(samples)):
        one = whole.part(slice(ends[n], ends[n + 1]))
        found[n] = measures(one)
        counts[n] = np.count_nonzero(np.isfinite(one.x[:, 1]) & one.known)
    return found, counts


@lru_cache(maxsize=16)
def modifiers(vocabulary: tuple[Hashable, ...]) -> Truths:
    """(m + 1,) which of these keys are held while others are pressed; unknown ones may be."""
    names = [str(name).lower() for name in vocabulary]
    return np.array([*(any(word in name for word in MODIFIERS) for name in names), True])


def measures(sample: Seen) -> Floats:
    """(K,) all measures of one sample, in the order of `MEASURES`."""
    if len(sample.x) < 2:
        return np.zeros(len(MEASURES))
    y = about_keys(sample.y, sample.key)
    z = standardised(y)
    found = [*_spread(y, z), *_keys(sample), *_neighbours(np.nan_to_num(np.clip(z, -MOST, MOST)))]
    times = np.exp(sample.x)
    keys, pairs, step = np.where(sample.known, sample.key, -1), np.full(len(times), -1), resolution(times)
    known = (keys[1:] >= 0) & (keys[:-1] >= 0)
    pairs[1:] = np.where(known, keys[:-1] * (1 + keys.max()) + keys[1:], -1)
    for context in (keys, pairs):
        found += _repeats(times, context, step)
    return np.array([*found, *_overlaps(sample, times)])


def standardised(y: Floats) -> Floats:
    """Residuals about the sample's median, in units of its median deviation."""
    away = y - medians(y)
    return away / np.maximum(DEVIATIONS * medians(np.abs(away)), LEAST_SPREAD)


def about_keys(values: Floats, key: Integers, prior: float = KEY_PRIOR) -> Floats:
    """Values about the mean of their key in this sample, which leans on 0: a person's own way with a key."""
    found = np.empty_like(values)
    for f in range(values.shape[1]):
        column = values[:, f]
        there = np.isfinite(column)
        sums = np.bincount(key, np.where(there, column, 0.0))
        found[:, f] = column - (sums / (np.bincount(key, there) + prior))[key]
    return found


def medians(values: Floats) -> Floats:
    """(F,) medians of the columns, without what is missing; 0 where all is."""
    ordered, counts = np.sort(values, axis=0), np.isfinite(values).sum(axis=0)
    columns = np.arange(values.shape[1])
    low, high = (ordered[places, columns] for places in (np.maximum(counts - 1, 0) // 2, counts // 2))
    return np.where(counts > 0, 0.5 * (low + high), 0.0)


def _spread(y: Floats, z: Floats) -> list[float]:
    """How much times vary, how far out some are, and on which side."""
    counts = np.maximum(np.isfinite(z).sum(axis=0), 1)
    spread = np.log(np.maximum(DEVIATIONS * medians(np.abs(y - medians(y))), LEAST_SPREAD))
    far, near = np.nan_to_num(np.clip(z, -FAR, FAR)), np.nan_to_num(np.clip(z, -MOST, MOST))
    tails = 0.5 * np.log((far * far).sum(axis=0) / counts + 0.05)
    skew = near.sum(axis=0) / counts
    below, above = (np.sqrt(side.sum(axis=0) / counts + 0.01) for side in (z < -OUT, z > OUT))
    return [float(one[f]) for f in range(2) for one in (spread, tails, skew, below, above)]


def _keys(sample: Seen) -> list[float]:
    """Whether times follow the keys around them: slopes about 1 for a hand, about 0 for chance."""
    found = []
    beyond = sample.y + sample.wide
    pair, wide = np.where(np.isfinite(beyond), sample.pair, np.nan), sample.wide
    alone, beyond, pair, wide = (
        about_keys(one, sample.key, 0.5) for one in (beyond + pair, beyond, pair, wide)
    )
    for f in range(2):
        for value, expected in ((alone, pair), (beyond, wide)):
            found += _regression(value[:, f], expected[:, f])
    return found


def _regression(value: Floats, expected: Floats) -> list[float]:
    """Slope and correlation of values with what is expected, both leaning on 0."""
    there = np.isfinite(value) & np.isfinite(expected)
    v, e = value[there], expected[there]
    if len(v) == 0:
        return [0.0, 0.0]
    v, e = np.clip(v - v.sum() / len(v), -MOST, MOST), e - e.sum() / len(e)
    both, squares = float(v @ e), float(e @ e)
    return [both / (squares + 2.0), both / math.sqrt((squares + 1.0) * (float(v @ v) + 1.0))]


def _neighbours(z: Floats) -> list[float]:
    """Correlations of residuals that are near each other; 0 stands for what is missing."""
    t, h = np.ascontiguousarray(z.T)
    tt, hh = float(t @ t) + 1.0, float(h @ h) + 1.0
    th = math.sqrt(tt * hh)
    at, ah = (np.where(one == 0.0, 0.0, np.abs(one) - 0.8) for one in (t, h))
    aa, bb = float(at @ at) + 1.0, float(ah @ ah) + 1.0
    return [
        *(float(t[k:] @ t[:-k]) / tt for k in (1, 2, 3)),
        *(float(h[k:] @ h[:-k]) / hh for k in (1, 2, 3)),
        sum(float(t[k:] @ t[:-k]) for k in range(4, 11)) / tt,
        sum(float(h[k:] @ h[:-k]) for k in range(4, 11)) / hh,
        float(t @ h) / th,
        float(t[1:] @ h[:-1]) / th,
        float(t[2:] @ h[:-2]) / th,
        float(h[1:] @ t[:-1]) / th,
        float(ah[1:] @ ah[:-1]) / bb,
        float(at @ ah) / math.sqrt(aa * bb),
    ]


def resolution(times: Floats) -> float:
    """The step of the clock, milliseconds: a small gap between different times; at least 1."""
    different = np.unique(times[np.isfinite(times)])
    gaps = np.sort(np.diff(different))
    gaps = gaps[gaps > 0.01]
    return max(1.0, float(gaps[len(gaps) // 4])) if len(gaps) else 1.0


def _repeats(times: Floats, context: Integers, step: float) -> list[float]:
    """Where a context returns: whether times are equal more often than chance, and how much they differ.

    By chance, two times are equal as often as times of other contexts are equal to them, on any clock.
    """
    order = np.argsort(context, kind="stable")
    order = order[context[order] >= 0]
    same = context[order[1:]] == context[order[:-1]]
    a, b = order[:-1][same], order[1:][same]
    found = []
    for f in range(2):
        values = times[:, f]
        there = np.isfinite(values[a]) & np.isfinite(values[b])
        first, second = values[a[there]], values[b[there]]
        n = len(first)
        every = np.sort(values[np.isfinite(values)])
        alike = np.searchsorted(every, first + 0.5) - np.searchsorted(every, first - 0.5)
        equal = np.abs(first - second) < 0.5
        # The pair itself is among those that are alike.
        chance = np.minimum((alike - 1 - equal) / max(len(every) - 2, 1), 0.5)
        differ = np.log((np.abs(first - second) + step) / np.sqrt(first * second))
        found += [float((equal - 2.0 * chance).sum()) / (n + LEAN), float((differ + 1.5).sum()) / (n + LEAN)]
    return found


def _overlaps(sample: Seen, times: Floats) -> list[float]:
    """How keys overlap: seen from each key, the hold of the one before against the interval between them."""
    before, interval, hold = times[:-1, 1], times[1:, 0], times[1:, 1]
    there = np.isfinite(before) & np.isfinite(interval) & ~sample.modifier[:-1]
    n = max(int(there.sum()), 1)
    expected = sample.x - sample.y * sample.scale
    apart, usual = sample.x[:-1, 1] - sample.x[1:, 0], expected[:-1, 1] - expected[1:, 0]
    over = there & (before > interval)
    nested = over & (before > interval + hold)
    again = over & (sample.key[1:] == sample.key[:-1])
    three = times[:-2, 1] > times[1:-1, 0] + times[2:, 0]
    odd = (apart - usual)[there]
    odd = np.clip(odd - odd.sum() / n, -2.0, 2.0)
    quick = times[:, 0] < QUICK
    return [
        math.sqrt(nested.sum() / n + 0.003),
        math.sqrt(again.sum() / n + 0.003),
        math.sqrt(three.sum() / n + 0.003),
        over.sum() / n,
        *_regression(np.where(there, 2.0 * over, np.nan), np.clip(usual, -2.0, 2.0)),
        0.5 * math.log(float(odd @ odd) / n + 0.01),
        math.sqrt(quick.sum() / len(quick) + 0.003),
    ]
