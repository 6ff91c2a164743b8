"""Measures of a sample's times that tell a hand from a machine that makes them up.

A hand prepares the next key while it presses this one, hurries and tires, and never does the same thing twice
in quite the same time. A forger who makes times up from recordings gets each single time right, but not how
they depend on each other. All measures are relative to the times that the population expects of anyone, so
that no one needs to be enrolled; where possible they are divided by the sample's own spread, so that slow and
quick typists have similar values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, plain, within, without_counting
from keydyn.keystrokes.samples import Samples
from keydyn.population.cells import N_CONTEXTS, Cells
from keydyn.population.features import CLIP, parents
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

# Residuals are limited to this many of the sample's own deviations, and to FAR where tails are measured.
MOST, FAR = 3.0, 6.0
# A residual with more deviations than this counts as an outlier.
OUT = 2.5
# The standard deviation of a normal distribution in units of its median absolute deviation.
DEVIATIONS = 1.4826
LEAST_SPREAD = 0.05
# Hands seldom produce an interval below this, in milliseconds.
QUICK = 25.0
# Pseudo-observations that draw the mean of a key towards 0.
KEY_PRIOR = 2.0
# Added to the shares of rare events, so that their square roots do not depend on single ones.
LEAST_SHARE = 0.003
# The contexts, besides the pair of keys, that intervals and holds depend on, in the order of a population's
# wide effects.
CONTEXTS = (
    ("position", "place in the word", "next key", "three keys", "two keys before"),
    ("position", "place in the word", "key before", "three keys", "two keys before"),
)
# Pseudo-observations of repeated contexts: a sample with few of them says little.
LEAN = 4.0
MODIFIERS = ("shift", "ctrl", "control", "alt", "meta", "cmd", "caps")

NAMES: dict[str, tuple[str, ...]] = {
    "spread": (
        *(
            f"{what} of {times}"
            for times in ("intervals", "holds")
            for what in ("spread", "tails", "skewness", "short ones", "long ones")
        ),
        *(f"{times}: distance from what is expected" for times in ("intervals", "holds")),
    ),
    "keys": (
        *(
            f"{times}: {what}, {how}"
            for times in ("intervals", "holds")
            for what in ("pair", "wider context")
            for how in ("slope", "correlation")
        ),
        *(
            f"{times}: {what}, slope"
            for times, contexts in zip(("intervals", "holds"), CONTEXTS, strict=True)
            for what in contexts
        ),
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
        *(
            f"{times}: times before, {how}"
            for times in ("intervals", "holds")
            for how in ("slope", "correlation")
        ),
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
# For each pair of neighbours: the number of the measure, the two rows of residuals that are multiplied
# (intervals, holds, and the sizes of both), and the number of keys by which the second precedes the first.
NEAR = np.array(
    [
        *((f * 3 + apart - 1, f, f, apart) for f in range(2) for apart in (1, 2, 3)),
        *((6 + f, f, f, apart) for f in range(2) for apart in range(4, 11)),
        *((8 + apart, 0, 1, apart) for apart in range(3)),
        (11, 1, 0, 1),
        (12, 3, 3, 1),
        (13, 2, 3, 0),
    ]
)
# The earlier residuals that a residual depends on, (2, 3, 2), as in a population.
PARENTS = parents(2)
_, KEYS, NEIGHBOURS, REPEATS, OVERLAPS = np.cumsum([0, *map(len, NAMES.values())])[:-1].tolist()
#: (K,) the number of the group, in the order of `NAMES`, of each measure.
GROUPS = np.repeat(np.arange(len(NAMES)), [len(names) for names in NAMES.values()])


class Seen(NamedTuple):
    """Typing as the population sees it; arrays are (N, 2), interval and hold, unless noted otherwise."""

    x: Floats  # logarithms, NaN where missing
    times: Floats  # milliseconds
    y: Floats  # minus what the population expects, in its scale
    scale: Floats
    pair: Floats  # contribution of the pair of keys to the expectation for the key alone, in its scale
    wide: Floats  # contribution of all wider contexts
    effects: Floats  # (N, 2, N_CONTEXTS) contribution of each of them
    own: Floats  # y in units of the person's own scale
    slopes: Floats  # (2, 3) dependence of the person's times on earlier ones
    key: Integers  # (N,) the key's code
    known: Truths  # (N,) whether the population knows the key
    modifier: Truths  # (N,) whether the key is held while others are pressed


class StandardisedTyping(NamedTuple):
    """Samples without what people share, and what people share and their owner has in each cell."""

    # (N, F) each, of which the first two columns count: logarithms, NaN where missing; those without what
    # people share; and the cell of each
    values: Floats
    y: Floats
    cell: Integers
    effects: Floats  # (N, 2, N_CONTEXTS) contribution of each wider context
    # (C,) what people share, then the owner's own
    location: Floats
    scale: Floats
    mean: Floats
    own_scale: Floats
    slopes: Floats
    held: Truths  # (m + 1,) which keys are held while others are pressed


class Room(NamedTuple):
    """Scratch space for computing the measures of a sample."""

    rows: Floats  # (6, N) values per key
    ordered: Floats  # (2 N,)
    # (m + 1,) for each key, the sum and number of its values, and where it was last typed
    sums: Floats
    counts: Floats
    last: Integers
    before: Integers  # (2, N) where the key, and the pair of keys, was typed before; −1 if not at all


def measured(
    people: PopulationModel, samples: Samples, template: Template | None = None
) -> tuple[Floats, Integers]:
    """(n, K) measures of each sample, and (n,) the number of keys that they are based on.

    They are relative to what is expected of anyone or, with a template, of its owner. Keys that the
    population does not know, or that have no hold, do not count.
    """
    known, ready = people.parameters, people.ready_for(samples)
    owner = people.anyone() if template is None else template
    people.check_fits(owner)
    N, offsets, shared = len(ready.seen.codes), ready.seen.offsets, known.contexts
    own = (plain(owner.mean), plain(owner.scale), plain(owner.slopes), modifiers(known.cells))
    typed = ready.seen.values, ready.typing.y, ready.typing.cell, ready.effects
    source = StandardisedTyping(*typed, shared.location, shared.scale, *own)
    x, ms, y, scale, pair, wide, of_person = np.empty((7, N, 2))
    marks = np.empty(N, dtype=bool), np.empty(N, dtype=bool)
    around = pair, wide, source.effects
    times = Seen(x, ms, y, scale, *around, of_person, source.slopes, ready.seen.codes, *marks)
    keys: Integers = np.zeros(len(offsets) - 1, dtype=np.int64)
    fill_seen(source, offsets, times, keys)
    return measures(times, offsets), keys


@without_counting
def fill_seen(source: StandardisedTyping, offsets: Integers, seen: Seen, keys: Integers) -> None:
    """Fill in samples as the population sees them, and for each the number of known keys with a hold."""
    m = len(source.held) - 1
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            code = min(max(seen.key[n], 0), m)
            seen.known[n], seen.modifier[n] = code < m, source.held[code]
            for f in range(2):
                # The cell of the key alone comes before those of pairs.
                c, alone = source.cell[n, f], f * (m + 1) + code
                scale, x, y = source.scale[c], source.values[n, f], source.y[n, f]
                pair = source.location[c] - source.location[alone] - source.mean[alone] * source.scale[alone]
                wide = 0.0
                for k in range(N_CONTEXTS):
                    wide += source.effects[n, f, k]
                seen.x[n, f], seen.times[n, f], seen.scale[n, f] = x, math.exp(x), scale
                seen.y[n, f] = y - source.mean[c]
                seen.pair[n, f] = pair / scale + source.mean[c]
                seen.wide[n, f] = np.nan if np.isnan(y) else wide
                seen.own[n, f] = seen.y[n, f] / source.own_scale[c]
            keys[q] += seen.known[n] and not np.isnan(seen.x[n, 1])


@lru_cache(maxsize=16)
def modifiers(cells: Cells) -> Truths:
    """(m + 1,) mask of keys that are held while others are pressed; unknown keys may be."""
    names = [str(name).lower() for name in cells.vocabulary.tolist()]
    return np.array([*(any(word in name for word in MODIFIERS) for name in names), True])


def quick_share(values: Floats) -> Floats:
    """(n,) share of intervals that are too quick for most hands, from measures (n, K)."""
    return np.asarray(values[:, MEASURES.index("quick intervals")] ** 2 - LEAST_SHARE)


def measures(typed: Seen, offsets: Integers) -> Floats:
    """(n, K) all measures of samples that begin at these offsets, in the order of `MEASURES`."""
    N, codes = len(typed.key), int(typed.key.max(initial=0)) + 1
    sums, counts = np.empty((2, codes))
    whole = np.empty(codes, dtype=np.int64), np.empty((2, N), dtype=np.int64)
    found = np.zeros((len(offsets) - 1, len(MEASURES)))
    fill_measures(typed, offsets, Room(np.empty((6, N)), np.empty(2 * N), sums, counts, *whole), found)
    return found


@without_counting
def fill_measures(typed: Seen, offsets: Integers, room: Room, found: Floats) -> None:
    """Fill `measures` into an array of zeros; samples with fewer than two keys keep the zeros."""
    for q in range(len(offsets) - 1):
        if offsets[q + 1] > offsets[q] + 1:
            _spread(typed, offsets[q], offsets[q + 1], room, found[q])
            _own(typed, offsets[q], offsets[q + 1], room, found[q])
            _neighbours(room.rows, offsets[q + 1] - offsets[q], found[q, NEIGHBOURS:])
            _keys(typed, offsets[q], offsets[q + 1], room, found[q, KEYS:])
            _repeats(typed, offsets[q], offsets[q + 1], room, found[q, REPEATS:])
            _overlaps(typed, offsets[q], offsets[q + 1], room, found[q, OVERLAPS:])


@within
def _spread(typed: Seen, first: int, end: int, room: Room, found: Floats) -> None:
    """Measure how much times vary, how far out some are, and on which side.

    Rows 0 and 1 of the room become the residuals about the person's own mean of each key, in units of their
    median deviation, limited to `MOST`, and 0 where they are missing.
    """
    n, key = end - first, typed.key[first:end]
    for f in range(2):
        z, away = room.rows[f, :n], room.rows[2, :n]
        for k in range(n):
            z[k] = typed.y[first + k, f]
        _about_keys(z, key, KEY_PRIOR, room)
        middle = _median(z, room.ordered)
        for k in range(n):
            away[k] = abs(z[k] - middle)
        spread = max(DEVIATIONS * _median(away, room.ordered), LEAST_SPREAD)
        count, squares, sum_, below, above = 0, 0.0, 0.0, 0, 0
        for k in range(n):
            one = (z[k] - middle) / spread
            z[k] = 0.0
            if not np.isnan(one):
                far = min(max(one, -FAR), FAR)
                z[k] = min(max(one, -MOST), MOST)
                count += 1
                squares += far * far
                sum_ += z[k]
                below += one < -OUT
                above += one > OUT
        count = max(count, 1)
        found[5 * f] = math.log(spread)
        found[5 * f + 1] = 0.5 * math.log(squares / count + 0.05)
        found[5 * f + 2] = sum_ / count
        found[5 * f + 3] = math.sqrt(below / count + 0.01)
        found[5 * f + 4] = math.sqrt(above / count + 0.01)


@within
def _own(typed: Seen, first: int, end: int, room: Room, found: Floats) -> None:
    """Measure how far times are from those expected of the person, and how they depend on earlier times.

    Forgeries made from enrolled times are too near, and those made from a few others too far away.
    """
    value, expected = room.rows[2, : end - first], room.rows[3, : end - first]
    for f in range(2):
        count, total, squares = 0, 0.0, 0.0
        for n in range(first, end):
            value[n - first] = typed.own[n, f]
            if not np.isnan(typed.own[n, f]):
                count, total = count + 1, total + typed.own[n, f]
        for n in range(first, end):
            leans = 0.0
            for j in range(3):
                of, before = PARENTS[f, j]
                one = typed.own[n - before, of] if n - before >= first else 0.0
                leans += 0.0 if np.isnan(one) else typed.slopes[f, j] * min(max(one, -CLIP), CLIP)
            expected[n - first] = leans
            away = typed.own[n, f] - total / max(count, 1)
            squares += 0.0 if np.isnan(away) else min(away * away, MOST * MOST)
        found[10 + f] = 0.5 * math.log(squares / max(count, 1) + 0.05)
        place = NEIGHBOURS + 14 + 2 * f
        found[place], found[place + 1] = _regression(value, expected)


@within
def _about_keys(values: Floats, key: Integers, prior: float, room: Room) -> None:
    """Subtract from values the mean of their key, drawn towards 0: the person's own way with a key."""
    sums, counts = room.sums, room.counts
    for n in range(len(values)):
        sums[key[n]], counts[key[n]] = 0.0, prior
    for n in range(len(values)):
        if not np.isnan(values[n]):
            sums[key[n]] += values[n]
            counts[key[n]] += 1.0
    for n in range(len(values)):
        values[n] -= sums[key[n]] / counts[key[n]]


@within
def _median(values: Floats, ordered: Floats) -> float:
    """The median of the values that are not missing; 0 if all are."""
    count = 0
    for n in range(len(values)):
        if not np.isnan(values[n]):
            ordered[count] = values[n]
            count += 1
    if count == 0:
        return 0.0
    _sort(ordered[:count])
    middle: float = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
    return middle


@within
def _sort(values: Floats) -> None:
    """Sort in place by Shell's method, which has a tenth as much code to compile as NumPy's sort."""
    gap = 1
    while gap < len(values):
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for n in range(gap, len(values)):
            value, k = values[n], n
            while k >= gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value


@within
def _keys(typed: Seen, first: int, end: int, room: Room, found: Floats) -> None:
    """Measure whether times follow the keys around them: slopes are near 1 for a hand, near 0 by chance."""
    n, key, rows = end - first, typed.key[first:end], room.rows
    for f in range(2):
        for k in range(n):
            y, pair, wide = typed.y[first + k, f], typed.pair[first + k, f], typed.wide[first + k, f]
            rows[2, k], rows[3, k] = y + wide + pair, np.nan if np.isnan(y + wide) else pair
            rows[4, k], rows[5, k] = y + wide, wide
        for row in range(2, 6):
            _about_keys(rows[row, :n], key, 0.5, room)
        for row in (2, 4):
            place = 4 * f + row - 2
            found[place], found[place + 1] = _regression(rows[row, :n], rows[row + 1, :n])
        for context in range(N_CONTEXTS):
            for k in range(n):
                rows[3, k] = typed.effects[first + k, f, context]
                rows[2, k] = typed.y[first + k, f] + rows[3, k]
            found[8 + N_CONTEXTS * f + context] = _regression(rows[2, :n], rows[3, :n])[0]


@within
def _regression(value: Floats, expected: Floats) -> tuple[float, float]:
    """Slope and correlation of values with expected ones, both drawn towards 0."""
    count, v_mean, e_mean = 0, 0.0, 0.0
    for n in range(len(value)):
        if not np.isnan(value[n] + expected[n]):
            count, v_mean, e_mean = count + 1, v_mean + value[n], e_mean + expected[n]
    both, v_squares, e_squares = 0.0, 0.0, 0.0
    for n in range(len(value)):
        if not np.isnan(value[n] + expected[n]):
            v = min(max(value[n] - v_mean / count, -MOST), MOST)
            e = expected[n] - e_mean / count
            both, v_squares, e_squares = both + v * e, v_squares + v * v, e_squares + e * e
    return both / (e_squares + 2.0), both / math.sqrt((e_squares + 1.0) * (v_squares + 1.0))


@within
def _neighbours(rows: Floats, n: int, found: Floats) -> None:
    """Correlate residuals of keys near each other; missing residuals are 0."""
    for f in range(2):
        for k in range(n):
            rows[2 + f, k] = 0.0 if rows[f, k] == 0.0 else abs(rows[f, k]) - 0.8
    for place, one, other, apart in NEAR:
        both, squares, other_squares = 0.0, 1.0, 1.0
        for k in range(n):
            both += rows[one, k] * rows[other, k - apart] if k >= apart else 0.0
            squares += rows[one, k] * rows[one, k]
            other_squares += rows[other, k] * rows[other, k]
        found[place] += both / math.sqrt(squares * other_squares)


@within
def _repeats(typed: Seen, first: int, end: int, room: Room, found: Floats) -> None:
    """Measure for repeated contexts whether times agree more often than by chance, and how much they differ.

    Chance is how often times of other contexts equal these, so that the measure holds for any clock.
    """
    step = _resolution(typed.times[first:end], room.ordered)
    _look_back(typed, first, end, room)
    for f in range(2):
        count = 0
        for n in range(first, end):
            if not np.isnan(typed.times[n, f]):
                room.ordered[count] = typed.times[n, f]
                count += 1
        every = room.ordered[:count]
        _sort(every)
        for context in range(2):
            pairs, more, differ = 0, 0.0, 0.0
            for n in range(first, end):
                before, now = room.before[context, n - first], typed.times[n, f]
                then = np.nan if before < 0 else typed.times[first + before, f]
                if np.isnan(then + now):
                    continue
                equal = abs(then - now) < 0.5
                alike = _below(every, then + 0.5) - _below(every, then - 0.5)
                # The two times themselves are among those that are alike.
                more += equal - 2.0 * min((alike - 1 - equal) / max(count - 2, 1), 0.5)
                differ += math.log((abs(then - now) + step) / math.sqrt(then * now)) + 1.5
                pairs += 1
            found[4 * context + 2 * f] = more / (pairs + LEAN)
            found[4 * context + 2 * f + 1] = differ / (pairs + LEAN)


@within
def _resolution(times: Floats, ordered: Floats) -> float:
    """The step of the clock in milliseconds: a small gap between different times, at least 1."""
    count, gaps = 0, 0
    for n in range(len(times)):
        for f in range(2):
            if not np.isnan(times[n, f]):
                ordered[count] = times[n, f]
                count += 1
    _sort(ordered[:count])
    for n in range(1, count):
        gap = ordered[n] - ordered[n - 1]
        if gap > 0.01:
            # The values overwritten here have been used already.
            ordered[gaps] = gap
            gaps += 1
    _sort(ordered[:gaps])
    return max(1.0, ordered[gaps // 4]) if gaps > 0 else 1.0


@within
def _look_back(typed: Seen, first: int, end: int, room: Room) -> None:
    """Fill in where the key, and the pair of keys, of each keystroke was typed before."""
    key, known, before = typed.key[first:end], typed.known[first:end], room.before
    for n in range(len(key)):
        room.last[key[n]] = -1
    for n in range(len(key)):
        before[0, n] = room.last[key[n]] if known[n] else -1
        room.last[key[n]] = n
        place = before[0, n] if n > 0 and known[n - 1] else -1
        while place > 0 and key[place - 1] != key[n - 1]:
            place = before[0, place]
        before[1, n] = place if place > 0 else -1


@within
def _below(ordered: Floats, limit: float) -> int:
    """The number of values below a limit."""
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@within
def _overlaps(typed: Seen, first: int, end: int, room: Room, found: Floats) -> None:
    """Measure how keys overlap: the hold of the previous key against the interval that follows it."""
    x, times = typed.x, typed.times
    count, over, nested, again, three, quick, total = 0, 0, 0, 0, 0, 0, 0.0
    value, usual, odd = room.rows[2, : end - first], room.rows[3, : end - first], room.rows[4, : end - first]
    for n in range(first, end):
        k, before, interval = n - first, times[n - 1, 1] if n > first else np.nan, times[n, 0]
        quick += interval < QUICK
        three += n > first + 1 and times[n - 2, 1] > times[n - 1, 0] + interval
        value[k] = usual[k] = odd[k] = np.nan
        if np.isnan(before + interval) or typed.modifier[n - 1]:
            continue
        over_it = before > interval
        count, over = count + 1, over + over_it
        nested += over_it and before > interval + times[n, 1]
        again += over_it and typed.key[n] == typed.key[n - 1]
        apart = x[n - 1, 1] - x[n, 0]
        expected = apart - typed.y[n - 1, 1] * typed.scale[n - 1, 1] + typed.y[n, 0] * typed.scale[n, 0]
        value[k], usual[k], odd[k] = 2.0 * over_it, min(max(expected, -2.0), 2.0), apart - expected
        total += odd[k]
    count, squares = max(count, 1), 0.0
    for one in odd:
        squares += 0.0 if np.isnan(one) else min(max(one - total / count, -2.0), 2.0) ** 2
    found[0] = math.sqrt(nested / count + LEAST_SHARE)
    found[1] = math.sqrt(again / count + LEAST_SHARE)
    found[2] = math.sqrt(three / count + LEAST_SHARE)
    found[3] = over / count
    found[4], found[5] = _regression(value, usual)
    found[6] = 0.5 * math.log(squares / count + 0.01)
    found[7] = math.sqrt(quick / (end - first) + LEAST_SHARE)
