"""The clock behind the times of keystrokes: the step in which they are stored, and the tick of the clock.

The times of a clock that ticks every 15.6 ms may be stored in whole milliseconds. Intervals are then close to
multiples of the tick, within the rounding of the step, and take far fewer values than the step suggests.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, compiled, inner

SYSTEM_TICK = 1000 / 64  # the usual timer interrupt of desktop systems, milliseconds
NEAR = 1.0  # an interval this close to a multiple of the tick is on it, milliseconds

# An error in the tick adds up over many ticks, so only short intervals reveal the tick.
LONGEST = 400.0
# The number of intervals used; more would only take time.
MOST = 400
# With fewer intervals a tick could be due to chance: the closeness of 50 random ones has a standard deviation
# of 0.08.
FEWEST = 50
# The range of ticks to look for, in milliseconds: 30 to 1,000 per second. Slower ones look like a rhythm of
# typing.
SLOWEST = 34.0
FASTEST = 1.0
# The closeness of intervals of which about half are on the tick.
CLOSE = 0.5
# The longest multiple of the best tick whose closeness is within this of the best is taken as the tick.
AS_GOOD = 0.02


def on_grid(intervals: Floats, period: float | Floats, tolerance: float) -> Truths:
    """A mask of the intervals within `tolerance` of a multiple of `period`, not NaN; shapes broadcast.

    Close to zero only zero itself counts, because a clock with this tick shows no interval shorter than it.
    """
    multiple = np.round(intervals / period)
    away = np.abs(intervals - period * multiple)
    near: Truths = np.where(multiple == 0, away == 0, away <= tolerance)
    return near


def find_ticks(intervals: Floats, offsets: Integers, blur: Floats) -> tuple[Floats, Floats, Floats]:
    """Find the step, the tick and the share of intervals on the tick for each group of intervals in ms.

    Group g is intervals[offsets[g]:offsets[g + 1]]; blur[g] is the precision that its times can have.
    The step is 0 if none can be seen, as in times that were never rounded. If no tick is found, it is the
    step.
    """
    steps, ticks, shares = np.zeros((3, len(offsets) - 1))
    _find_ticks(intervals, offsets, blur, steps, ticks, shares)
    return steps, ticks, shares


@compiled
def _find_ticks(
    intervals: Floats, offsets: Integers, blur: Floats, steps: Floats, ticks: Floats, shares: Floats
) -> None:
    """Like `find_ticks`, but write the results into arrays of zeros."""
    for g in range(len(offsets) - 1):
        short = _some_short(intervals[offsets[g] : offsets[g + 1]])
        if len(short) == 0:
            continue
        step = _stored_step(short, blur[g])
        steps[g] = ticks[g] = step
        shares[g] = 1.0 if step > 0 else 0.0
        if len(short) < FEWEST:
            continue
        tick, closeness = _closest_tick(short, step)
        if closeness >= CLOSE:
            ticks[g] = tick
            tolerance = max(step, tick / 16) + 1e-6
            count = 0
            for x in short:
                if abs(x - tick * round(x / tick)) <= tolerance:
                    count += 1
            shares[g] = count / len(short)


@inner
def _some_short(intervals: Floats) -> Floats:
    """At most MOST of the short intervals, spread evenly, without zeros, which are on every grid."""
    short = intervals[(intervals > 0) & (intervals <= LONGEST)]
    if len(short) <= MOST:
        return short
    some = np.empty(MOST)
    for k in range(MOST):
        some[k] = short[k * len(short) // MOST]
    return some


@inner
def _stored_step(short: Floats, blur: float) -> float:
    """The largest step of which all intervals are multiples: a decimal one if there are few intervals."""
    step = 1.0
    for _ in range(7):
        slack = max(0.01 * step, blur)
        if slack > 0.1 * step:
            return 0.0
        fits = True
        for x in short:
            if abs(x - step * round(x / step)) > slack:
                fits = False
                break
        if fits:
            if len(short) < FEWEST:
                return step
            common = 0
            for x in short:
                common = math.gcd(common, round(x / step))
            return step * max(common, 1)
        step /= 10
    return 0.0


@inner
def _closest_tick(short: Floats, step: float) -> tuple[float, float]:
    """The tick whose multiples the intervals are closest to, and the closeness, by coarse and fine search."""
    fastest = max(FASTEST, 2.5 * step)
    if fastest >= SLOWEST:
        return step, 0.0
    # Adjacent frequencies differ by an eighth of a tick over the longest interval.
    stride = 1 / (8 * LONGEST)
    best = 0.0
    closest = -1.0
    for n in range(int((1 / fastest - 1 / SLOWEST) / stride) + 1):
        frequency = 1 / SLOWEST + n * stride
        closeness = _closeness(short, frequency)
        if closeness > closest:
            best, closest = frequency, closeness
    centre = best
    for n in range(-20, 21):
        frequency = centre + n * stride / 20
        closeness = _closeness(short, frequency)
        if closeness > closest:
            best, closest = frequency, closeness
    # Every multiple of 8 is a multiple of 4 too: of equally good ticks, the longest is the right one.
    tick = 1 / best
    for n in range(2, int(SLOWEST / tick) + 1):
        if _closeness(short, best / n) >= closest - AS_GOOD:
            tick = n / best
    return tick, closest


@inner
def _closeness(short: Floats, frequency: float) -> float:
    """A measure that is 1 if all intervals are multiples of the tick, and 0 on average if they are random."""
    away = 0.0
    for x in short:
        ticks = x * frequency
        away += abs(ticks - round(ticks))
    return 1 - 4 * away / len(short)
