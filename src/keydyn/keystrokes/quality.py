"""Reports on the quality of recordings: findings by kind and sample, the clock of each user, and copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.clock import NEAR, SYSTEM_TICK, find_ticks, on_grid
from keydyn.keystrokes.one_sample import impossible
from keydyn.keystrokes.schema import SAMPLE, check_keystrokes, sample_lengths, sample_of_row, sample_starts
from keydyn.keystrokes.typing_keys import not_typing
from keydyn.short_repr import short_repr

# Samples of fewer keystrokes can be equal by chance on a coarse clock.
SHORTEST = 5
# Times are compared to 1 µs: counting from a different first press changes the last digits of a fraction.
DECIMALS = 3
PAUSE = 1000.0
LONG_HOLD = 1000.0
# The tempo of a person does not change by this factor between samples; the unit or the recorder changed.
OTHER_SCALE = 5.0

# Kinds of findings in raw events, counted by `pair_events`.
EVENT_KINDS = {
    "events": "raw events",
    "presses": "presses",
    "releases": "releases",
    "repeats": "presses by auto-repeat, dropped",
    "unmatched_releases": "releases without a press, dropped",
    "unidentified_presses": "presses without a key name, dropped",
    "unidentified_releases": "releases without a key name, dropped",
    "shortcut_presses": "presses of shortcuts (keys with Ctrl, Alt or Meta), dropped",
    "navigation_presses": "presses of navigation and function keys, dropped",
    "lost_to_focus": "releases missing because the focus was lost",
    "pressed_again": "releases missing because the key was pressed again first",
    "equal_times": "events at the same time as the previous one; order kept",
    "backward_times": "events stamped before an earlier one; put in order of time",
    "clock_jumps": "times the clock was set back; a new sample begins",
    "pastes": "pastes; their text was not typed",
    "focus_losses": "losses of focus",
}
# Kinds that are due to the clock or the order of events, for which reports name the users.
CLOCK_KINDS = ("unmatched_releases", "pressed_again", "backward_times", "clock_jumps")
# Kinds of findings in keystrokes, as shares of all keystrokes or of the intervals between them.
KEYSTROKE_KINDS = {
    "missing_releases": "keystrokes without a release",
    "zero_durations": "keystrokes released at the time they were pressed",
    "impossible_holds": "holds that no hand makes; missing for models of people",
    "shortcuts": "keystrokes of shortcuts (keys with Ctrl, Alt or Meta), which are not typing",
    "navigation": "keystrokes of navigation and function keys, which are not typing",
    "long_holds": "keystrokes held for longer than {long_hold:g} ms",
}
INTERVAL_KINDS = {
    "overlaps": "keys released after the next was pressed (rollover)",
    "own_overlaps": "keys released after they themselves were pressed again",
    "equal_presses": "presses at the same time as the previous one",
    "impossible_intervals": "intervals that no hand makes; missing for models of people",
    "pauses": "intervals longer than {pause:g} ms",
    "on_system_tick": "intervals within 1 ms of a multiple of 15.625 ms",
}
# Kinds of findings while a file is read, due to its clock, its order or its rows.
FILE_KINDS = {
    "negative_intervals": "rows in which a key is pressed before the one above it; put in order of press",
    "negative_holds": "rows with a release before its press; the release is marked as missing",
    "contradictions": "rows whose times do not add up; the holds and the times from press to press are used",
    "broken_chains": "rows that do not begin with the key that the row above ends with; a new sample begins",
    "missing_presses": "rows without the time of a press; left out",
    "repeated_rows": "rows that occur twice; the copies are left out",
    "strange_rows": "rows that cannot be assigned to a person; left out",
}
# The value of `user` for rows that cannot be assigned to a person.
NOBODY = "nobody"
USERS_SHOWN = 3
SAMPLE_KINDS = {
    "other_scale": f"samples with intervals {OTHER_SCALE:g} times as long, or as short, as the user's others"
}


def nothing_impossible() -> pd.DataFrame:
    """The result of `count_by_user` if there is nothing to count."""
    return pd.DataFrame(columns=["user", "reason", "count"])


def count_by_user(users: pd.Series[Any], found: Mapping[str, NDArray[np.bool_]]) -> pd.DataFrame:
    """Count the rows of each user by kind, one of `FILE_KINDS`: `user`, `reason`, `count`.

    Users and kinds without any such row are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from keydyn.keystrokes.quality import count_by_user
    >>> users = pd.Series(["ann", "bob", "bob"])
    >>> count_by_user(users, {"negative_holds": np.array([False, True, True])}).values.tolist()
    [['bob', 'negative_holds', 2]]
    """
    parts = [
        users[flags].value_counts(sort=False).rename_axis("user").reset_index(name="count")
        for flags in found.values()
    ]
    named = [part.assign(reason=kind) for kind, part in zip(found, parts, strict=True) if len(part)]
    return pd.concat(named, ignore_index=True)[["user", "reason", "count"]] if named else nothing_impossible()


def impossible_in_words(counts: pd.DataFrame) -> list[str]:
    """A sentence for each reason of `count_by_user`, with the users most concerned."""
    return [
        f"{part['count'].sum():,d} {FILE_KINDS[str(reason)]}{_whose(part['user'], part['count'])}"
        for reason, part in counts.groupby("reason", sort=False)
    ]


def _whose(users: pd.Series[Any], counts: pd.Series[Any]) -> str:
    """The users with the largest counts, in parentheses."""
    by_user = counts.groupby(users.to_numpy(), sort=False).sum()
    most = by_user[by_user > 0].sort_values(ascending=False, kind="stable")
    named = [f"user {user}: {n:,d}" for user, n in most.head(USERS_SHOWN).items() if user != NOBODY]
    named += [f"{len(most) - USERS_SHOWN} more users"] if len(most) > USERS_SHOWN else []
    return f" ({', '.join(named)})" if named else ""


def find_duplicates(keystrokes: pd.DataFrame) -> pd.DataFrame:
    """Find samples with the same keys and times, from the first press, as an earlier sample.

    One row per copy, in order: `user`, `session`, `same_as_user`, `same_as_session`. Samples of fewer than
    five keystrokes are not compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import find_duplicates
    >>> typed = make_typists(1, 1)
    >>> find_duplicates(pd.concat([typed, typed.assign(user=7)])).values.tolist()
    [[7, 0, 0, 0]]
    """
    starts = sample_starts(keystrokes)
    copies, originals = _copies(keystrokes, starts)
    samples = keystrokes[SAMPLE].iloc[starts].reset_index(drop=True)
    duplicates = samples.iloc[copies].reset_index(drop=True)
    duplicates[["same_as_user", "same_as_session"]] = samples.iloc[originals].reset_index(drop=True)
    return duplicates


def is_duplicate(keystrokes: pd.DataFrame) -> NDArray[np.bool_]:
    """A mask of the samples that are copies of an earlier one."""
    starts = sample_starts(keystrokes)
    flags = np.zeros(len(starts), dtype=bool)
    flags[_copies(keystrokes, starts)[0]] = True
    return flags


def _copies(keystrokes: pd.DataFrame, starts: Integers) -> tuple[list[int], list[int]]:
    """The numbers of the samples that are copies, and of the first sample each is a copy of."""
    lengths = sample_lengths(starts, len(keystrokes))
    times = keystrokes[["timepress", "timerelease"]].to_numpy(dtype=np.float64)
    since_first = np.round(times - np.repeat(times[starts, :1], lengths, axis=0), DECIMALS)
    rows = np.column_stack([pd.factorize(keystrokes["keyname"])[0], since_first])
    # Make the bytes of equal rows equal: zero gets no sign, and there is a single NaN.
    rows = np.where(np.isnan(rows), np.nan, rows + 0.0)
    first: dict[bytes, int] = {}
    copies, originals = [], []
    for sample, (begin, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        original = first.setdefault(rows[begin : begin + length].tobytes(), sample)
        if original != sample and length >= SHORTEST:
            copies.append(sample)
            originals.append(original)
    return copies, originals


@dataclass(frozen=True, eq=False)
class QualityReport:
    """A report on findings in recordings, and on what was done about them.

    Attributes
    ----------
    samples : one row per sample: user, session, the number of keystrokes, the `span` from first to last press
        in milliseconds, `relative_tempo`, the median interval in units of the user's usual one (1 without
        intervals), and the number of findings of each kind. After `pair_events` also the counts of raw
        events, and `recorded_session`, which differs from `session` if a sample was divided.
    clocks : one row per user: the `step` in which intervals are stored (0 if none can be seen), the `tick` of
        the clock (the step, if no coarser one was found), `on_tick`, the share of intervals up to 400 ms on
        the tick, and `on_system_tick`, the share of all intervals within 1 ms of a multiple of 15.625 ms
    duplicates : the samples that are copies of earlier ones, and those that they copy
    pause, long_hold : the number of milliseconds above which an interval is a pause and a hold is long

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import quality_of
    >>> report = quality_of(make_typists(2, 4), pause=2000.0)
    >>> report.samples[["user", "session", "keystrokes"]].head(2).values.tolist()
    [[0, 0, 11], [0, 1, 11]]
    >>> report.counts["keystrokes"], len(report.duplicates)
    (88, 0)
    """

    samples: pd.DataFrame
    clocks: pd.DataFrame
    duplicates: pd.DataFrame
    pause: float = PAUSE
    long_hold: float = LONG_HOLD

    __repr__ = short_repr

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind in all samples together."""
        known = (*EVENT_KINDS, *KEYSTROKE_KINDS, *INTERVAL_KINDS, *SAMPLE_KINDS)
        kinds = [kind for kind in known if kind in self.samples]
        counts = {kind: int(self.samples[kind].sum()) for kind in ("keystrokes", "intervals", *kinds)}
        return {"users": self.samples["user"].nunique(), "samples": len(self.samples), **counts}

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values and lists, ready for JSON."""
        return {
            "settings": {"pause": self.pause, "long_hold": self.long_hold},
            "counts": self.counts,
            "samples": _records(self.samples),
            "clocks": _records(self.clocks),
            "duplicates": _records(self.duplicates),
        }

    def __str__(self) -> str:
        counts = self.counts
        lines = [
            f"{_amount(counts['keystrokes'], 'keystroke')} in {_amount(counts['samples'], 'sample')} "
            f"of {_amount(counts['users'], 'user')}"
        ]
        for kinds, whole in (
            (EVENT_KINDS, ""),
            (KEYSTROKE_KINDS, "keystrokes"),
            (INTERVAL_KINDS, "intervals"),
            (SAMPLE_KINDS, "samples"),
        ):
            for kind, meaning in kinds.items():
                if kind in counts:
                    share = f"{counts[kind] / max(counts[whole], 1):8.2%}" if whole else " " * 8
                    text = meaning.format(pause=self.pause, long_hold=self.long_hold)
                    several = kind in CLOCK_KINDS and counts["users"] > 1
                    text += _whose(self.samples["user"], self.samples[kind]) if several else ""
                    lines.append(f"{counts[kind]:12,d}{share}  {text}")
        lines += _clock_lines(self.clocks)
        for copy in self.duplicates.itertuples(index=False):
            lines.append(
                f"user {copy.user}, session {copy.session} is the same recording as "
                f"user {copy.same_as_user}, session {copy.same_as_session}"
            )
        return "\n".join(lines)


def quality_of(
    keystrokes: pd.DataFrame, *, pause: float = PAUSE, long_hold: float = LONG_HOLD
) -> QualityReport:
    """Report on keystrokes in the schema, to be read before they are used; nothing is changed.

    Intervals above `pause` milliseconds are counted as pauses, hold times above `long_hold` as long.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import quality_of
    >>> report = quality_of(make_typists(2, 40, tick=15.6))
    >>> report.clocks["tick"].round(1).tolist()
    [15.6, 15.6]
    """
    for name, limit in (("pause", pause), ("long_hold", long_hold)):
        if not limit > 0:
            raise ValueError(f"{name} must be a number of milliseconds above 0, not {limit!r}")
    keystrokes = check_keystrokes(keystrokes)
    starts = sample_starts(keystrokes)
    intervals = _intervals(keystrokes, starts)
    samples = _count_by_sample(keystrokes, starts, intervals, pause, long_hold)
    clocks = _clock_by_user(keystrokes, intervals)
    return QualityReport(samples, clocks, find_duplicates(keystrokes), float(pause), float(long_hold))


def twice_in_words(pairs: pd.DataFrame) -> list[str]:
    """A line for each pair of users who are likely the same person."""
    columns = (pairs[name].tolist() for name in ("user", "other", "minutes"))
    return [
        f"users {user} and {other}: likely the same person{_apart(minutes)}"
        for user, other, minutes in zip(*columns, strict=True)
    ]


def _apart(minutes: float) -> str:
    return "" if np.isnan(minutes) else f", recorded {_amount(max(round(minutes), 1), 'minute')} apart"


def _intervals(keystrokes: pd.DataFrame, starts: Integers) -> Floats:
    """Intervals from press to press; NaN for a sample's first keystroke."""
    press = keystrokes["timepress"].to_numpy()
    intervals: Floats = np.diff(press, prepend=np.nan)
    intervals[starts] = np.nan
    return intervals


def _count_by_sample(
    keystrokes: pd.DataFrame, starts: Integers, intervals: Floats, pause: float, long_hold: float
) -> pd.DataFrame:
    press, release = (keystrokes[column].to_numpy() for column in ("timepress", "timerelease"))
    lengths = sample_lengths(starts, len(press))
    held = release - press
    overlaps = np.zeros(len(press), dtype=bool)
    overlaps[1:] = release[:-1] > press[1:]
    overlaps[starts] = False
    keys = pd.factorize(keystrokes["keyname"])[0]
    wrong_intervals, wrong_holds = impossible(intervals, held, keys, starts)
    shortcuts, navigation = not_typing(keystrokes)
    findings = {
        "missing_releases": np.isnan(release),
        "zero_durations": held == 0,
        "impossible_holds": wrong_holds,
        "impossible_intervals": wrong_intervals,
        "shortcuts": shortcuts,
        "navigation": navigation,
        "long_holds": held > long_hold,
        "overlaps": overlaps,
        "own_overlaps": _own_overlaps(keystrokes, starts),
        "equal_presses": intervals == 0,
        "pauses": intervals > pause,
        "on_system_tick": on_grid(intervals, SYSTEM_TICK, NEAR),
    }
    samples = keystrokes[SAMPLE].iloc[starts].reset_index(drop=True)
    samples["keystrokes"] = lengths
    samples["intervals"] = lengths - 1
    samples["span"] = press[starts + lengths - 1] - press[starts]
    for kind, flags in findings.items():
        samples[kind] = np.add.reduceat(flags.astype(np.int64), starts)
    tempo = _relative_tempo(samples["user"], intervals, starts)
    samples["relative_tempo"] = tempo
    samples["other_scale"] = ((tempo >= OTHER_SCALE) | (tempo <= 1 / OTHER_SCALE)).astype(np.int64)
    return samples


def _relative_tempo(users: pd.Series, intervals: Floats, starts: Integers) -> pd.Series:
    """Each sample's median interval divided by the user's; a lower median, as half may be in another unit."""
    middle = pd.Series(intervals).groupby(sample_of_row(starts, len(intervals))).median()
    usual = middle.groupby(users.to_numpy(), sort=False).transform("quantile", 0.5, interpolation="lower")
    return (middle / usual.where(usual > 0)).fillna(1.0)


def _own_overlaps(keystrokes: pd.DataFrame, starts: Integers) -> NDArray[np.bool_]:
    """A mask of the keys that are pressed before their own previous release in the sample."""
    sample = sample_of_row(starts, len(keystrokes))
    before = keystrokes["timerelease"].groupby([sample, keystrokes["keyname"]], sort=False).shift()
    return before.to_numpy() > keystrokes["timepress"].to_numpy()


def _clock_by_user(keystrokes: pd.DataFrame, intervals: Floats) -> pd.DataFrame:
    codes, users = pd.factorize(keystrokes["user"])
    there = ~np.isnan(intervals)
    order = np.argsort(codes[there], kind="stable")
    count = np.bincount(codes[there], minlength=len(users))
    largest = np.zeros(len(users))
    np.maximum.at(largest, codes, np.abs(keystrokes["timepress"].to_numpy()))
    # An interval is the difference of two numbers, each exact to half a unit in its last place.
    blur = 4 * np.spacing(largest)
    sorted_intervals = intervals[there][order]
    step, tick, share = find_ticks(sorted_intervals, np.concatenate([[0], np.cumsum(count)]), blur)
    near = np.bincount(codes[there], on_grid(intervals[there], SYSTEM_TICK, NEAR), minlength=len(users))
    found = {"user": users, "intervals": count, "step": step, "tick": tick, "on_tick": share}
    return pd.DataFrame(found | {"on_system_tick": near / np.maximum(count, 1)})


def _clock_lines(clocks: pd.DataFrame) -> list[str]:
    """A line for each kind of clock with its number of users, the most common first."""
    steps = clocks["step"].map(lambda step: f"{step:.3g} ms" if step else "no visible step")
    ticks = clocks["tick"].map(lambda tick: f"{tick:.1f} ms")
    coarse = clocks["tick"] > clocks["step"]
    clock = "stored to " + steps + (", tick of " + ticks).where(coarse, "")
    return [f"clock of {_amount(int(n), 'user')}: {text}" for text, n in clock.value_counts().items()]


def _amount(number: int, thing: str) -> str:
    return f"{number:,d} {thing}{'' if number == 1 else 's'}"


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts of plain Python values."""
    columns = [table[column].tolist() for column in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]
