"""Reads tables of holds and latencies with a row per sample: columns H.KEY, DD.KEY.KEY and UD.KEY.KEY.

The CMU password data are one instance; KeyRecs' fixed text is another, with DU.KEY.KEY for the hold, and
DU.KEY.NEXT and UU.KEY.NEXT in addition to DD and UD. The first layout was verified on the published file; the
second follows descriptions: the names of columns in programs that read it, and the authors' article.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Truths
from keydyn.datasets.files.columns import labels, numbers_of
from keydyn.datasets.files.file_form import AsRead, FileForm
from keydyn.datasets.files.file_tables import FileTable
from keydyn.datasets.files.holds_and_flights import unit_of_holds
from keydyn.keystrokes.key_names import in_our_names
from keydyn.keystrokes.quality import count_by_user
from keydyn.keystrokes.reading_error import ReadingError, Remedy
from keydyn.keystrokes.schema import milliseconds

HOLD, DOWN_UP, DOWN_DOWN, UP_DOWN, UP_UP = "H.", "DU.", "DD.", "UD.", "UU."
USERS = ("user", "subject", "participant")
# Further columns, with their names in the schema.
FURTHER = {"sessionIndex": "sitting", "rep": "repetition", "session": "sitting", "repetition": "repetition"}
# The tolerance in milliseconds for sums of three times, each of which was rounded to a millisecond.
SLACK = 2.0


def is_latency_table(table: FileTable, form: FileForm) -> bool:
    """Whether a table has a row per sample, with columns of holds and of times from key to key."""
    steps = any(name.startswith((DOWN_DOWN, UP_DOWN)) for name in table.columns)
    return steps and len(_holds(table)) > 1


def read_latencies(table: FileTable, form: FileForm, anonymous: bool = False) -> AsRead:
    """Read the keystrokes of a table of holds and latencies; samples are numbered within their user.

    DD is the time from press to press. If there is only UD, from release to press, DD follows from UD and the
    hold. Any further times are compared with DD and the holds, which take precedence.
    """
    holds = _holds(table)
    keys = list(holds.values())
    hold = numbers_of(table, list(holds), form.decimal)
    unit = form.unit or unit_of_holds(hold)
    hold = milliseconds(hold, unit)
    given = {
        kind: None if names is None else milliseconds(numbers_of(table, names, form.decimal), unit)
        for kind, names in (
            (kind, _pairs(table, keys, kind)) for kind in (DOWN_DOWN, UP_DOWN, DOWN_UP, UP_UP)
        )
    }
    users = _users(table, form)
    step = _steps(table, keys, hold, given)
    press = np.round(np.pad(step, ((0, 0), (1, 0))).cumsum(axis=1), 6)
    release = np.round(press + hold, 6)
    order = np.argsort(press, axis=1, kind="stable")
    names: Any = np.tile(np.array(keys, dtype=object), (len(table), 1))
    names, press, release = (np.take_along_axis(values, order, axis=1) for values in (names, press, release))
    started = press[:, :1]
    press, release = press - started, release - started
    impossible: dict[str, Truths] = {
        "negative_intervals": np.any(step < 0, axis=1),
        "negative_holds": np.any(hold < 0, axis=1),
        "contradictions": np.any(contradicts(hold[:, :-1], hold[:, 1:], step, given), axis=1),
    }
    per_sample: dict[str, Any] = {"user": users, "session": users.groupby(users).cumcount()}
    per_sample |= {ours: labels(table, theirs) for theirs, ours in FURTHER.items() if theirs in table.columns}
    rows = np.repeat(np.arange(len(table)), len(keys))
    frame = pd.DataFrame(per_sample).loc[rows]
    frame["keyname"] = names.ravel()
    if form.by_command:
        frame["keyname"] = in_our_names(frame["keyname"])
    frame["timepress"] = press.ravel()
    frame["timerelease"] = np.where(release < press, np.nan, release).ravel()
    return AsRead(frame, rows, table, unit, impossible=count_by_user(users, impossible))


def contradicts(hold: Floats, next_hold: Floats, step: Floats, given: dict[str, Floats | None]) -> Truths:
    """Whether further times of two keys contradict their holds and the time from press to press."""
    derived = {UP_DOWN: step - hold, DOWN_UP: step + next_hold, UP_UP: step + next_hold - hold}
    wrong: Truths = np.zeros(step.shape, dtype=bool)
    for kind, value in derived.items():
        times = given.get(kind)
        if times is not None:
            wrong |= np.abs(times - value) > SLACK
    return wrong


def _users(table: FileTable, form: FileForm) -> pd.Series[Any]:
    column = form.columns.get("user") or next((name for name in USERS if name in table.columns), None)
    if form.user is None and column is None:
        raise ReadingError(
            "no column 'user' or 'subject'",
            Remedy("{} gives the file's own name of it", {"columns": ...}),
            Remedy("otherwise, give {}", {"user": "NAME"}),
        )
    return pd.Series(labels(table, str(column)) if form.user is None else [form.user] * len(table))


def _holds(table: FileTable) -> dict[str, str]:
    """The columns of holds in the order of the keys, with the key of each: H.KEY, or DU.KEY.KEY.

    A repeated key is followed by a number, as pandas writes it: H.l, H.l.1.
    """
    named = {name: name.removeprefix(HOLD) for name in table.columns if name.startswith(HOLD)}
    if not named:
        twice = re.compile(re.escape(DOWN_UP) + r"(?P<key>.+)\.(?P=key)(?P<number>\.\d+)?")
        found = {name: twice.fullmatch(name) for name in table.columns}
        named = {name: match["key"] + (match["number"] or "") for name, match in found.items() if match}
    bases: dict[str, str] = {}
    for name, key in named.items():
        again = re.fullmatch(r"(.+)\.\d+", key)
        bases[name] = again[1] if again and again[1] in bases.values() else key
    return bases


def _pairs(table: FileTable, keys: list[str], kind: str) -> list[str] | None:
    """The columns of a kind of time, one for each pair of keys; None if any is absent."""
    seen: Counter[str] = Counter()
    names = []
    for pair in (f"{kind}{key}.{after}" for key, after in pairwise(keys)):
        names.append(pair if seen[pair] == 0 else f"{pair}.{seen[pair]}")
        seen[pair] += 1
    return names if all(name in table.columns for name in names) else None


def _steps(table: FileTable, keys: list[str], hold: Floats, given: dict[str, Floats | None]) -> Floats:
    kind = DOWN_DOWN if any(name.startswith(DOWN_DOWN) for name in table.columns) else UP_DOWN
    times = given[kind]
    if times is None:
        pairs = [f"{kind}{key}.{after}" for key, after in pairwise(keys)]
        absent = [repr(pair) for pair in pairs if pair not in table.columns]
        absent = absent or [repr(pair) for pair, n in Counter(pairs).items() if n > 1]
        raise ReadingError(f"no column {', '.join(absent)}; the columns of holds give the order of the keys")
    return times if kind == DOWN_DOWN else times + hold[:, :-1]
