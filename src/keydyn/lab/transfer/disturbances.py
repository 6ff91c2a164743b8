"""What goes wrong with recordings: keys that stick, coarse clocks, lost releases. Each disturbs some keys.

A disturbance takes keystrokes in the schema, the share of keystrokes that it befalls, and a source of chance.
It returns other keystrokes in the schema; the samples are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.schema import sample_lengths, sample_of_row, sample_starts

Disturbance = Callable[[pd.DataFrame, float, np.random.Generator], pd.DataFrame]

# Milliseconds. One operating system reports Caps Lock as held for this long.
LOCK_HOLD = 0.5
# A key that sticks is held for a time between these, uniform in its logarithm.
STUCK = (500.0, 10_000.0)
# How long a key is held before it repeats, how often it then does, and how many times.
REPEAT_DELAY, REPEAT_STEP, REPEATS = 500.0, 33.0, 5
# A remote desktop delivers what happened in this time at once, events this far apart.
BURST, BURST_STEP = 250.0, 1.0
# Another keyboard: its keys stay down longer, and are sensed later.
OTHER_HOLD, OTHER_DELAY = 1.3, 8.0


def caps_lock(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Caps Lock is pressed before some keys, half-way from the press before, and let go at once."""
    chosen = _chosen(keystrokes, share, rng)
    chosen[sample_starts(keystrokes)] = False
    places = np.flatnonzero(chosen)
    rows = keystrokes.iloc[places].assign(keyname="caps_lock")
    before = keystrokes["timepress"].to_numpy()[places - 1]
    rows["timepress"] = (rows["timepress"] + before) / 2
    rows["timerelease"] = rows["timepress"] + LOCK_HOLD
    return _inserted(keystrokes, rows, places - np.float64(0.5))


def short_holds(
    keystrokes: pd.DataFrame, share: float, rng: np.random.Generator, hold: float = LOCK_HOLD
) -> pd.DataFrame:
    """Some keys are reported as let go at once."""
    return _released(keystrokes, _chosen(keystrokes, share, rng), np.full(len(keystrokes), hold))


def stuck_keys(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Some keys stay down for up to ten seconds."""
    holds = np.exp(rng.uniform(np.log(STUCK[0]), np.log(STUCK[1]), len(keystrokes)))
    return _released(keystrokes, _chosen(keystrokes, share, rng), holds)


def missing_releases(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Some releases are not seen."""
    return _released(keystrokes, _chosen(keystrokes, share, rng), np.full(len(keystrokes), np.nan))


def repeated_keys(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Some keys are held until they repeat, and every repetition is recorded as a press without a release."""
    chosen = _chosen(keystrokes, share, rng)
    held = REPEAT_DELAY + REPEAT_STEP * REPEATS
    # What follows in the sample comes later.
    delay = _so_far(keystrokes, np.where(chosen, held, 0.0))
    moved = keystrokes.assign(
        timepress=keystrokes["timepress"] + delay, timerelease=keystrokes["timerelease"] + delay
    )
    moved = _released(moved, chosen, np.full(len(moved), held))
    places = np.repeat(np.flatnonzero(chosen), REPEATS)
    number = np.tile(np.arange(REPEATS), int(chosen.sum()))
    rows = moved.iloc[places]
    rows = rows.assign(
        timepress=rows["timepress"] + REPEAT_DELAY + REPEAT_STEP * number,
        timerelease=rows["timerelease"].where(number == REPEATS - 1),
    )
    kept = _released(moved, chosen, np.full(len(moved), np.nan))
    return _inserted(kept, rows, places + (number + 1) / np.float64(REPEATS + 1))


def coarse_clock(
    keystrokes: pd.DataFrame, share: float, rng: np.random.Generator, tick: float = 15.625
) -> pd.DataFrame:
    """A share of samples has times of a clock that ticks seldom, in a phase of the sample's own."""
    starts = sample_starts(keystrokes)
    sample = sample_of_row(starts, len(keystrokes))
    phase = rng.uniform(0.0, tick, len(starts))[sample]
    chosen = (rng.uniform(size=len(starts)) < share)[sample]
    times = {}
    for name in ("timepress", "timerelease"):
        exact = keystrokes[name].to_numpy()
        ticked = np.floor((exact + phase) / tick) * tick - np.floor(phase / tick) * tick
        times[name] = np.where(chosen, ticked, exact)
    return keystrokes.assign(**times)


def bursts(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Some presses, and all events in the quarter of a second after them, arrive together at its end."""
    press, release = keystrokes["timepress"].to_numpy(), keystrokes["timerelease"].to_numpy()
    sample = sample_of_row(sample_starts(keystrokes), len(keystrokes))
    # A burst befalls the press that it begins with, and as many more as people type in its time.
    per_burst = 1.0 + BURST / float(np.median(np.diff(press)[sample[1:] == sample[:-1]]))
    chosen = _chosen(keystrokes, share / per_burst, rng)
    # The latest press, of those chosen, up to each: bursts begin at presses, so presses are in order.
    last = np.maximum.accumulate(np.where(chosen, np.arange(len(press)), -1))
    begin = np.where((last >= 0) & (sample[last] == sample), press[last], -np.inf)
    end = begin + BURST
    late = press < end
    number = _so_far(keystrokes, late.astype(float)) + late
    arrived = np.where(late, end + BURST_STEP * number, press)
    arrived = _rising(arrived, sample)
    let_go = np.where(
        late & (release < end), arrived + BURST_STEP / 2, np.maximum(release, arrived + BURST_STEP / 2)
    )
    return keystrokes.assign(timepress=arrived, timerelease=np.where(np.isnan(release), np.nan, let_go))


def other_keyboard(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Some keys are typed on another keyboard, which senses presses later and holds keys longer."""
    chosen = _chosen(keystrokes, share, rng)
    press, release = keystrokes["timepress"].to_numpy(), keystrokes["timerelease"].to_numpy()
    sample = sample_of_row(sample_starts(keystrokes), len(keystrokes))
    later = _rising(np.where(chosen, press + OTHER_DELAY, press), sample)
    held = (release - press) * np.where(chosen, OTHER_HOLD, 1.0)
    return keystrokes.assign(timepress=later, timerelease=later + held)


#: The disturbances by name.
DISTURBANCES: dict[str, Disturbance] = {
    "Caps Lock held for 0.5 ms": caps_lock,
    "keys held for 0.5 ms": short_holds,
    "keys held for 6 ms": partial(short_holds, hold=6.0),
    "keys that stick": stuck_keys,
    "repeated keys": repeated_keys,
    "missing releases": missing_releases,
    "bursts": bursts,
    "another keyboard": other_keyboard,
}
#: Clocks by their tick in milliseconds; they disturb whole samples.
CLOCKS: dict[float, Disturbance] = {
    tick: partial(coarse_clock, tick=tick) for tick in (1.0, 8.0, 16.0, 100.0)
}


def _chosen(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> Truths:
    """Choose the keystrokes to disturb: a share of each sample's, rounded up or down at random."""
    starts = sample_starts(keystrokes)
    lengths = sample_lengths(starts, len(keystrokes))
    numbers = np.floor(share * lengths + rng.uniform(size=len(lengths))).astype(np.int64)
    sample = sample_of_row(starts, len(keystrokes))
    order = np.lexsort([rng.uniform(size=len(keystrokes)), sample])
    chosen = np.empty(len(keystrokes), dtype=bool)
    chosen[order] = np.arange(len(keystrokes)) - starts[sample] < numbers[sample]
    return chosen


def _so_far(keystrokes: pd.DataFrame, values: Floats) -> Floats:
    """Sum up the values before each row of its sample."""
    starts = sample_starts(keystrokes)
    before = np.cumsum(values) - values
    sums: Floats = before - before[starts][sample_of_row(starts, len(values))]
    return sums


def _rising(times: Floats, sample: Integers) -> Floats:
    """Times of presses, none before an earlier one of its sample."""
    return np.asarray(pd.Series(times).groupby(sample).cummax(), dtype=np.float64)


def _released(keystrokes: pd.DataFrame, chosen: Truths, holds: Floats) -> pd.DataFrame:
    """Let some keys be held for other times."""
    release = np.where(chosen, keystrokes["timepress"] + holds, keystrokes["timerelease"])
    return keystrokes.assign(timerelease=release)


def _inserted(keystrokes: pd.DataFrame, rows: pd.DataFrame, places: Floats) -> pd.DataFrame:
    """Insert rows at places between the present ones."""
    both = pd.concat([keystrokes, rows], ignore_index=True)
    order = np.argsort(np.concatenate([np.arange(len(keystrokes)), places]), kind="stable")
    return both.iloc[order].reset_index(drop=True)
