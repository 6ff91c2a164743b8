"""Reads tables of key pairs, as in KeyRecs' free text: two keys, the hold of the first, the times between.

A row has `key1`, `key2` and times that are named after the events at their ends, D for down and U for up:
DU.key1.key1 is the hold of the first key, DD.key1.key2 the time from press to press, UD.key1.key2 from
release to press, DU.key1.key2 and UU.key1.key2 from the press and the release of the first to the release of
the second. Each row begins with the key that the row before ends with.

The layout follows descriptions: the names of columns in programs that read the set, and the authors' article
(Data in Brief 50, 2023, 109509). It was not checked against a file of the set.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.datasets.files.columns import further, key_names, samples_in
from keydyn.datasets.files.file_form import AsRead, FileForm
from keydyn.datasets.files.file_tables import FileTable
from keydyn.datasets.files.holds_and_flights import unit_of_holds
from keydyn.datasets.files.latency_tables import DOWN_DOWN, DOWN_UP, UP_DOWN, UP_UP, contradicts
from keydyn.keystrokes.key_names import in_our_names
from keydyn.keystrokes.quality import count_by_user
from keydyn.keystrokes.reading_error import ReadingError
from keydyn.keystrokes.schema import SAMPLE, milliseconds, name_parts, sample_starts

FIRST, SECOND = "key1", "key2"
HOLD = f"{DOWN_UP}{FIRST}.{FIRST}"
BETWEEN = {kind: f"{kind}{FIRST}.{SECOND}" for kind in (DOWN_DOWN, UP_DOWN, DOWN_UP, UP_UP)}


def is_digraph_table(table: FileTable, form: FileForm) -> bool:
    """Whether a table has one row per pair of keys, with the hold of the first."""
    return {FIRST, SECOND} <= set(table.columns) and any(
        name in table.columns for name in (HOLD, *BETWEEN.values())
    )


def read_digraphs(table: FileTable, form: FileForm, anonymous: bool) -> AsRead:
    """Read keystrokes from chains of pairs; a broken chain begins a new sample, because it hides the time.

    A pair whose second key was pressed first has a negative DD, and its keys are put in order of press. The
    hold of the last key of a chain follows from the other times of its pair, or is unknown.
    """
    absent = [name for name in (HOLD, BETWEEN[DOWN_DOWN]) if name not in table.columns]
    if absent == [BETWEEN[DOWN_DOWN]] and BETWEEN[UP_DOWN] in table.columns:
        absent = []
    if absent:
        raise ReadingError(f"no column {', '.join(map(repr, absent))}, without which no time is known")
    samples, names = samples_in(table, form, anonymous)
    first, second = (key_names(table, name) for name in (FIRST, SECOND))
    hold = table.numbers(HOLD, form.decimal)
    unit = form.unit or unit_of_holds(hold)
    hold = milliseconds(hold, unit)
    given: dict[str, Floats | None] = {
        kind: milliseconds(table.numbers(name, form.decimal), unit) if name in table.columns else None
        for kind, name in BETWEEN.items()
    }
    step = _given(given, DOWN_DOWN, np.full(len(hold), np.nan))
    step = np.where(np.isnan(step), hold + _given(given, UP_DOWN, step), step)
    starts = np.zeros(len(table), dtype=bool)
    starts[sample_starts(samples)] = True
    known = ~np.isnan(step)
    broken = np.zeros(len(table), dtype=bool)
    broken[1:] = (first.to_numpy()[1:] != second.to_numpy()[:-1]) & ~starts[1:]
    begins = starts | broken | np.concatenate([[False], ~known[:-1]])
    last_hold = _last_holds(hold, step, given)
    next_hold = np.where(np.append(begins[1:], True), last_hold, np.append(hold[1:], np.nan))
    impossible = {
        "negative_intervals": step < 0,
        "negative_holds": hold < 0,
        "contradictions": contradicts(hold, next_hold, step, given),
        "broken_chains": broken,
        "missing_presses": ~known,
    }
    frame, rows = _chains(samples, begins, step)
    is_last = frame.pop("is_last").to_numpy()
    held = np.where(is_last, last_hold[rows], hold[rows])
    keys = np.where(is_last, second.to_numpy()[rows], first.to_numpy()[rows])
    frame.insert(2, "keyname", in_our_names(pd.Series(keys)) if form.by_command else keys)
    frame["timerelease"] = np.round(frame["timepress"].to_numpy() + np.where(held < 0, np.nan, held), 6)
    used = {FIRST, SECOND, HOLD, *BETWEEN.values(), *SAMPLE, *names.values()}
    for name in table.columns:
        if name not in used and (form.others is None or name in form.others):
            frame[name] = pd.Series(further(table, name, form.decimal, True)).to_numpy()[rows]
    counts = count_by_user(samples["user"], impossible)
    names_users = "user" in names or form.user is not None
    return AsRead(frame, rows, table, unit, names_users, "session" in names, counts)


def _given(given: dict[str, Floats | None], kind: str, otherwise: Floats) -> Floats:
    times = given[kind]
    return otherwise if times is None else times


def _last_holds(hold: Floats, step: Floats, given: dict[str, Floats | None]) -> Floats:
    """The hold of the second key of each pair, derived from the times of the pair; NaN if unknown."""
    unknown = np.full(len(hold), np.nan)
    by_press = _given(given, DOWN_UP, unknown) - step
    by_release = hold + _given(given, UP_UP, unknown) - step
    found: Floats = np.where(np.isnan(by_press), by_release, by_press)
    return found


def _chains(samples: pd.DataFrame, begins: Truths, step: Floats) -> tuple[pd.DataFrame, Integers]:
    """User, session, press and `is_last` of each keystroke in order of press, and the row of each.

    Each row contributes its first key, and the last row of a chain also its second key, if its press is
    known.
    """
    n = len(step)
    ends = np.append(begins[1:], True) & ~np.isnan(step)
    copies = 1 + ends.astype(np.int64)
    rows = np.repeat(np.arange(n), copies)
    is_last = np.zeros(len(rows), dtype=bool)
    is_last[np.cumsum(copies)[ends] - 1] = True
    chain = np.cumsum(begins)[rows] - 1
    first = np.flatnonzero(np.diff(chain, prepend=-1))
    before = np.where(is_last, step[rows], np.concatenate([[0.0], step])[rows])
    before[first] = 0.0
    since = np.cumsum(before)
    press = np.round(since - since[first][chain], 6)
    order = np.lexsort([press, chain])
    press, rows, is_last, chain = press[order], rows[order], is_last[order], chain[order]
    press = press - press[first][chain]
    of_chain = samples.iloc[np.flatnonzero(begins)].reset_index(drop=True)
    part = of_chain.groupby(SAMPLE, sort=False, observed=True).cumcount().to_numpy().astype(np.int64)
    names = of_chain.assign(session=name_parts(of_chain["user"], of_chain["session"], part))
    frame = names.iloc[chain].reset_index(drop=True)
    frame["timepress"], frame["is_last"] = press, is_last
    if part.any():
        frame["recorded_session"] = of_chain["session"].iloc[chain].to_numpy()
    return frame, rows
