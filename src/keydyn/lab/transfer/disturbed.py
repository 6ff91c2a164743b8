"""Compares the acceptance of genuine samples with and without wrongly recorded keys.

Disturbances are faults of recordings, such as sticking keys, coarse clocks or lost releases. A disturbance
takes keystrokes in the schema, the share of keystrokes to disturb, and a random generator. It returns
modified keystrokes in the schema, divided into the same samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.evaluation.rates.confidence import bootstrap_mean
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import sample_lengths, sample_of_row, sample_starts
from keydyn.lab.frame.study_data import stream
from keydyn.lab.transfer.claims import ROUNDING, known_keys, split, templates_of

Disturbance = Callable[[pd.DataFrame, float, np.random.Generator], pd.DataFrame]

# The hold in milliseconds that one operating system reports for Caps Lock.
LOCK_HOLD = 0.5
# The range of holds of a sticking key, whose logarithm is uniform.
STUCK = (500.0, 10_000.0)
# The delay before a held key repeats, the time between repetitions, and their number.
REPEAT_DELAY, REPEAT_STEP, REPEATS = 500.0, 33.0, 5
# A remote desktop collects the events of this time, and delivers them this far apart.
BURST, BURST_STEP = 250.0, 1.0
# On the other keyboard, keys stay down longer by this factor and are sensed later by this time.
OTHER_HOLD, OTHER_DELAY = 1.3, 8.0


def caps_lock(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Insert a press of Caps Lock before some keys, half-way after the previous press."""
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
    """Report some keys as released at once."""
    return _released(keystrokes, _chosen(keystrokes, share, rng), np.full(len(keystrokes), hold))


def stuck_keys(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Hold some keys for up to ten seconds."""
    holds = np.exp(rng.uniform(np.log(STUCK[0]), np.log(STUCK[1]), len(keystrokes)))
    return _released(keystrokes, _chosen(keystrokes, share, rng), holds)


def missing_releases(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Remove some releases."""
    return _released(keystrokes, _chosen(keystrokes, share, rng), np.full(len(keystrokes), np.nan))


def repeated_keys(keystrokes: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Hold some keys until they repeat; every repetition is recorded as a press without a release."""
    chosen = _chosen(keystrokes, share, rng)
    held = REPEAT_DELAY + REPEAT_STEP * REPEATS
    # Later keys of the sample are delayed.
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
    """Give a share of samples the times of a clock with coarse ticks, in a random phase per sample."""
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
    """Deliver some presses, and all events of the next quarter of a second, together at its end."""
    press, release = keystrokes["timepress"].to_numpy(), keystrokes["timerelease"].to_numpy()
    sample = sample_of_row(sample_starts(keystrokes), len(keystrokes))
    # A burst affects the press that it begins with, and as many more as people type in its time.
    per_burst = 1.0 + BURST / float(np.median(np.diff(press)[sample[1:] == sample[:-1]]))
    chosen = _chosen(keystrokes, share / per_burst, rng)
    # The latest chosen press up to each press; bursts begin at presses, so presses stay in order.
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
    """Type some keys on another keyboard, which senses presses later and holds keys longer."""
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
    """The sum of the values before each row in its sample."""
    starts = sample_starts(keystrokes)
    before = np.cumsum(values) - values
    sums: Floats = before - before[starts][sample_of_row(starts, len(values))]
    return sums


def _rising(times: Floats, sample: Integers) -> Floats:
    """Times of presses, raised where necessary so that they never decrease within a sample."""
    return np.asarray(pd.Series(times).groupby(sample).cummax(), dtype=np.float64)


def _released(keystrokes: pd.DataFrame, chosen: Truths, holds: Floats) -> pd.DataFrame:
    """Change the holds of some keys."""
    release = np.where(chosen, keystrokes["timepress"] + holds, keystrokes["timerelease"])
    return keystrokes.assign(timerelease=release)


def _inserted(keystrokes: pd.DataFrame, rows: pd.DataFrame, places: Floats) -> pd.DataFrame:
    """Insert rows at places between the existing ones."""
    both = pd.concat([keystrokes, rows], ignore_index=True)
    order = np.argsort(np.concatenate([np.arange(len(keystrokes)), places]), kind="stable")
    return both.iloc[order].reset_index(drop=True)


ENROLLED, STATED = 5, 0.01
SHARES = (0.01, 0.02, 0.05)
CLEAN = "nothing"
BOTH, AT_ENROLMENT, AFTERWARDS = "both", "at enrolment", "afterwards"


class Case(NamedTuple):
    """A disturbance with its name, the share of keys it affects, and the side on which it occurs."""

    name: str
    share: float
    side: str
    disturb: Disturbance


def cases() -> Iterator[Case]:
    """All cases: disturbances of some keys, and clocks, which affect all keys, on either side or both."""
    for name, disturb in DISTURBANCES.items():
        for share in SHARES:
            yield Case(name, share, BOTH, disturb)
            if disturb is caps_lock:
                yield Case(name, share, AT_ENROLMENT, disturb)
    for tick, disturb in CLOCKS.items():
        for side in (BOTH, AT_ENROLMENT, AFTERWARDS):
            yield Case(f"a clock of {tick:g} ms", 1.0, side, disturb)


def disturbed(background: Background, typed: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Whether each query is accepted at the stated rate, in each case and without disturbances."""
    clean = recorded_samples(typed)
    parts = [_accepted(background, clean, clean).assign(case=CLEAN, share=0.0, side=BOTH)]
    for case in cases():
        other = recorded_samples(case.disturb(typed, case.share, stream(seed, case.name, case.share)))
        sides = (clean if case.side == AFTERWARDS else other, clean if case.side == AT_ENROLMENT else other)
        found = _accepted(background, *sides)
        parts.append(found.assign(case=case.name, share=case.share, side=case.side))
    return pd.concat(parts, ignore_index=True)


def _accepted(background: Background, enrolled: Samples, asked: Samples) -> pd.DataFrame:
    """Whether own samples are accepted in each person's name."""
    first, later = split(enrolled, ENROLLED), split(asked, ENROLLED)
    templates, keys = templates_of(background, first.enrol), known_keys(background, later.ask)
    rates = np.empty(len(later.ask))
    for u, ((name, template), amount) in enumerate(zip(templates.items(), first.keys.tolist(), strict=True)):
        rows = np.flatnonzero(later.typist == u)
        scores = background.scores({name: template}, later.ask[rows])[:, 0]
        rates[rows] = background.calibrations.at(amount).false_match_rates(scores, keys[rows])
    return pd.DataFrame({"person": later.typist, "accepted": rates <= STATED * ROUNDING})


def disturbed_frame(accepted: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The share accepted in each case, and its difference from that without disturbances, over people."""
    each = {
        key: rows.groupby("person")["accepted"].mean().to_numpy()
        for key, rows in accepted.groupby(["case", "share", "side"], sort=False)
    }
    clean = each[CLEAN, 0.0, BOTH]
    rows = []
    for (case, share, side), shares in each.items():
        difference = shares - clean
        low, high = bootstrap_mean(difference[:, None], seed=seed)
        rows.append(
            {
                "disturbance": case,
                "share": share,
                "side": side,
                "people": len(shares),
                "genuine": float(shares.mean()),
                "difference": float(difference.mean()),
                "difference_low": float(low[0]),
                "difference_high": float(high[0]),
            }
        )
    return pd.DataFrame(rows)
