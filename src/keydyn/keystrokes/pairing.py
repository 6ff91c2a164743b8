"""Pairing of presses and releases to keystrokes; no time is made up, and all omissions are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, compiled
from keydyn.keystrokes.quality import QualityReport, quality_of
from keydyn.keystrokes.raw_events import (
    BLUR,
    NO_FLAG,
    PASTE,
    PRESS,
    RELEASE,
    REPEATED,
    UNIDENTIFIED,
    RawEvents,
    feature_columns,
    read_events,
)
from keydyn.keystrokes.schema import SAMPLE, check_keystrokes, name_parts
from keydyn.keystrokes.typing_keys import shortcuts_and_navigation

# The default of `disorder`, in milliseconds.
DISORDER = 1000.0

# The fates of events. The first four are presses that become keystrokes, three of them without a release.
KEYSTROKE, UNRELEASED, LOST_TO_FOCUS, PRESSED_AGAIN = range(4)
MATCHED, REPEAT, UNMATCHED, UNNAMED, NEITHER, SHORTCUT, NAVIGATION = range(4, 11)


def pair_events(
    events: pd.DataFrame,
    unit: str = "ms",
    *,
    relative: bool = True,
    shortcuts: bool = False,
    disorder: float = DISORDER,
) -> tuple[pd.DataFrame, QualityReport]:
    """Pair raw key events to keystrokes in the schema, and report what was found.

    Parameters
    ----------
    events
        `time`, in `unit`. `type`: "press", "keydown" or "down"; "release", "keyup" or "up"; "paste"; "blur"
        or "focusout"; "focus" or "focusin". `key`: the physical key, by which presses and releases are
        paired. Optional: `keyname`, the name of the key in the schema (by default that of the physical
        key); `user` and `session` (by default all events are one sample); `repeat`, the flag of auto-repeat.
        Further columns that are numeric are features of the keystroke, taken from its press.
    unit
        "s", "ms", "us" or "ns".
    relative
        Count times from the first press of each sample; otherwise they are as given, in milliseconds.
    shortcuts
        Keep shortcuts (keys pressed with Ctrl, Alt or Meta) and navigation and function keys. By default they
        are dropped, because they are not typing; AltGr writes characters, and is kept with them.
    disorder
        An event stamped at most this many milliseconds before an earlier one is late, and is put in order of
        time. One stamped even earlier shows that the clock was set back, and begins a new sample.

    Notes
    -----
    - A press before the release of the previous key (rollover) is normal and kept.
    - A press of a key that is held is auto-repeat, and dropped. With a `repeat` column the flag decides:
      a press that is not a repeat shows that the release before it was not seen.
    - A release without a press is dropped. A press without a release has a missing `timerelease`.
    - When the focus is lost, the releases of the keys that are held will not be seen.
    - Events at the same time keep the order given.
    - A press or release whose key is missing, empty or "Unidentified" cannot be paired, and is dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.keystrokes import pair_events
    >>> events = pd.DataFrame(
    ...     [(0, "keydown", "t"), (90, "keydown", "h"), (110, "keyup", "t"), (170, "keyup", "h")],
    ...     columns=["time", "type", "key"],
    ... )
    >>> keystrokes, report = pair_events(events)
    >>> keystrokes[["keyname", "timepress", "timerelease"]].values.tolist()
    [['t', 0.0, 110.0], ['h', 90.0, 170.0]]
    >>> report.counts["overlaps"]
    1
    """
    if not disorder >= 0:
        raise ValueError(f"disorder must be a number of milliseconds, 0 or above, not {disorder!r}")
    raw = read_events(events, unit)
    sample = raw.sample
    since_start = raw.milliseconds(np.arange(len(sample)), raw.offsets[sample])
    part, late = np.zeros((2, len(since_start)), dtype=np.int64)
    _divide(since_start, raw.offsets, float(disorder), part, late)
    # Segments are numbered across samples; one begins with each sample, and whenever the clock was set back.
    begins = (np.diff(sample, prepend=-1) != 0) | (np.diff(part, prepend=0) != 0)
    segment: Integers = np.cumsum(begins) - 1
    # Segments are in order already: the segment of the n-th event is the same before and after.
    order = np.lexsort((since_start, segment)) if late.any() else np.arange(len(segment))
    release_of, fate = np.empty((2, len(order)), dtype=np.int64)
    _pair(segment, raw.kind[order], raw.key[order], raw.repeat[order], release_of, fate)
    fate = _mark_lost_to_focus(fate, raw.kind[order], segment)
    if not shortcuts:
        fate = _mark_no_typing(fate, raw.names[order], since_start[order], release_of, segment)

    segments = raw.frame[SAMPLE].iloc[begins].reset_index(drop=True)
    segments.insert(2, "recorded_session", segments["session"])
    segments["session"] = name_parts(segments["user"], segments["session"], part[begins])
    presses = np.flatnonzero(fate <= PRESSED_AGAIN)
    if len(presses) == 0:
        raise ValueError(
            "there is no keystroke: no press of an identified key that types and is not a repeat"
        )
    released = np.where(release_of[presses] >= 0, order[release_of[presses]], -1)
    keystrokes = _keystrokes(raw, segments, segment[presses], order[presses], released, relative)
    report = quality_of(keystrokes)
    set_back = begins & (part > 0)
    findings = _findings(raw.kind[order], fate, since_start[order], segment, late[order], set_back)
    for kind, flags in findings.items():
        segments[kind] = np.bincount(segment[flags], minlength=len(segments))
    samples = segments.merge(report.samples, how="left", on=SAMPLE)
    numbers = [column for column in report.samples.columns if column not in SAMPLE]
    samples[numbers] = samples[numbers].fillna(0).astype(report.samples[numbers].dtypes.to_dict())
    return keystrokes, replace(report, samples=samples)


def events_of(keystrokes: pd.DataFrame) -> pd.DataFrame:
    """The presses and releases of keystrokes in the schema, in order of time, as input of `pair_events`.

    Pairing them gives the same keystrokes, except if a key was pressed again before its own release.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import events_of
    >>> events = events_of(make_typists(1, 1))
    >>> list(events.columns)
    ['user', 'session', 'time', 'type', 'key', 'keyname', 'repeat']
    >>> events["type"].value_counts().to_dict()
    {'press': 11, 'release': 11}
    """
    keystrokes = check_keystrokes(keystrokes)
    count = len(keystrokes)
    seen = np.flatnonzero(keystrokes["timerelease"].notna().to_numpy())
    row = np.concatenate([np.arange(count), seen])
    times = keystrokes["timepress"].to_numpy(), keystrokes["timerelease"].to_numpy()[seen]
    events = keystrokes.drop(columns=["timepress", "timerelease"]).iloc[row].reset_index(drop=True)
    events.insert(2, "time", np.concatenate(times))
    events.insert(3, "type", np.repeat(["press", "release"], [count, len(seen)]))
    events.insert(4, "key", events["keyname"])
    events["repeat"] = False
    sample = keystrokes.groupby(SAMPLE, sort=False, observed=True).ngroup().to_numpy()[row]
    # At the same time, a key is pressed before it is released, and released before a later one is pressed.
    order = np.lexsort((np.arange(len(row)), row, events["time"].to_numpy(), sample))
    return events.iloc[order].reset_index(drop=True)


def _keystrokes(
    raw: RawEvents,
    segments: pd.DataFrame,
    of_segment: Integers,
    pressed: Integers,
    released: Integers,
    relative: bool,
) -> pd.DataFrame:
    """Make the rows of the schema from each keystroke's segment and the events of its press and release.

    An event of −1 is a release that was not seen.
    """
    origin = None
    if relative:
        first = np.searchsorted(of_segment, np.arange(len(segments)))
        origin = pressed[first[of_segment]]
    there = released >= 0
    timerelease = np.full(len(pressed), np.nan)
    timerelease[there] = raw.milliseconds(released[there], None if origin is None else origin[there])
    keystrokes = segments[SAMPLE].iloc[of_segment].reset_index(drop=True)
    keystrokes["keyname"] = raw.names[pressed]
    keystrokes["timepress"] = raw.milliseconds(pressed, origin)
    keystrokes["timerelease"] = timerelease
    for column in feature_columns(raw.frame):
        keystrokes[column] = raw.frame[column].iloc[pressed].reset_index(drop=True)
    return check_keystrokes(keystrokes)


def _findings(
    kind: Integers,
    fate: Integers,
    times: Floats,
    segment: Integers,
    late: Integers,
    set_back: NDArray[np.bool_],
) -> dict[str, NDArray[Any]]:
    """A mask of events, in order of time within their segments, for each kind of finding."""
    unnamed = fate == UNNAMED
    return {
        "events": np.ones(len(kind), dtype=bool),
        "presses": kind == PRESS,
        "releases": kind == RELEASE,
        "repeats": fate == REPEAT,
        "unmatched_releases": fate == UNMATCHED,
        "unidentified_presses": unnamed & (kind == PRESS),
        "unidentified_releases": unnamed & (kind == RELEASE),
        "shortcut_presses": fate == SHORTCUT,
        "navigation_presses": fate == NAVIGATION,
        "lost_to_focus": fate == LOST_TO_FOCUS,
        "pressed_again": fate == PRESSED_AGAIN,
        "equal_times": (np.diff(times, prepend=np.nan) == 0) & (np.diff(segment, prepend=-1) == 0),
        "backward_times": late > 0,
        "clock_jumps": set_back,
        "pastes": kind == PASTE,
        "focus_losses": kind == BLUR,
    }


@compiled
def _divide(times: Floats, offsets: Integers, disorder: float, part: Integers, late: Integers) -> None:
    """Find the part of its sample that each event is in, and whether it is stamped before an earlier one."""
    for s in range(len(offsets) - 1):
        number = 0
        latest = times[offsets[s]]
        for n in range(offsets[s], offsets[s + 1]):
            if latest - times[n] > disorder:
                number += 1
                latest = times[n]
            elif times[n] < latest:
                late[n] = 1
            else:
                latest = times[n]
            part[n] = number


@compiled
def _pair(
    segment: Integers, kind: Integers, key: Integers, repeat: Integers, release_of: Integers, fate: Integers
) -> None:
    """Find the event of each press's release, or −1, and the fate of each event."""
    release_of[:], fate[:] = -1, NEITHER
    # The event that pressed each key that is held. A key pressed before `since` is no longer held.
    held = np.full(key.max() + 1 if len(key) else 0, -1, dtype=np.int64)
    since = 0
    for n in range(len(kind)):
        if n > 0 and segment[n] != segment[n - 1]:
            since = n
        if kind[n] == BLUR:
            since = n
        elif kind[n] == PRESS or kind[n] == RELEASE:
            k = key[n]
            if k == UNIDENTIFIED:
                fate[n] = UNNAMED
            elif kind[n] == RELEASE:
                if held[k] >= since:
                    release_of[held[k]] = n
                    fate[held[k]] = KEYSTROKE
                    fate[n] = MATCHED
                    held[k] = -1
                else:
                    fate[n] = UNMATCHED
            elif repeat[n] == REPEATED or (held[k] >= since and repeat[n] == NO_FLAG):
                fate[n] = REPEAT
            else:
                if held[k] >= since:
                    fate[held[k]] = PRESSED_AGAIN
                fate[n] = UNRELEASED
                held[k] = n


def _mark_no_typing(
    fate: Integers, names: NDArray[Any], times: Floats, release_of: Integers, segment: Integers
) -> Integers:
    """Mark the presses that are not typing."""
    presses = np.flatnonzero(fate <= PRESSED_AGAIN)
    release = np.where(release_of[presses] >= 0, times[release_of[presses]], np.nan)
    found = shortcuts_and_navigation(names[presses], times[presses], release, segment[presses])
    marked = fate.copy()
    for flags, kind in zip(found, (SHORTCUT, NAVIGATION), strict=True):
        marked[presses[flags]] = kind
    return marked


def _mark_lost_to_focus(fate: Integers, kind: Integers, segment: Integers) -> Integers:
    """Mark presses without a release after which the focus was lost in the same segment."""
    losses = np.flatnonzero(kind == BLUR)
    open_presses = np.flatnonzero(fate == UNRELEASED)
    if len(losses) == 0:
        return fate
    following = np.searchsorted(losses, open_presses)
    there = following < len(losses)
    there[there] = segment[losses[following[there]]] == segment[open_presses[there]]
    marked = fate.copy()
    marked[open_presses[there]] = LOST_TO_FOCUS
    return marked
