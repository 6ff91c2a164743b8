"""What columns are called: the file's own names for those of the schema, and what they are likely to be."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from keydyn.datasets.files.table_files import Table
from keydyn.keystrokes.schema import COLUMNS, SAMPLE

# Words in the name of a column that is likely to be the schema's; the first ones are the likeliest. Times
# come first, since "keydown" is not the name of a key.
LIKELY = {
    "timepress": ("timepress", "press", "pressed", "down", "keydown"),
    "timerelease": ("timerelease", "release", "released", "up", "keyup"),
    "user": ("user", "userid", "username", "subject", "participant", "person", "typist"),
    "session": ("session", "sessionid", "sessionindex", "sample", "trial", "attempt", "repetition", "rep"),
    "keyname": ("keyname", "key", "keycode", "code", "character", "char", "letter"),
}


RELEASE = "timerelease"


def renamed(table: Table, columns: Mapping[str, str], others: Collection[str] | None) -> Table:
    """The columns under the schema's names, and the other columns that are wanted."""
    there = table.columns
    for ours, theirs in columns.items():
        if theirs not in there:
            raise ValueError(f"no column {theirs!r} for {ours}; {_there_are(there)}")
    chosen = {ours: there[theirs] for ours, theirs in columns.items()}
    rest = [name for name in there if name not in columns.values()]
    for name in others or ():
        if name not in rest and name not in chosen:
            raise ValueError(f"no column {name!r}, which is in `others`; {_there_are(there)}")
    for name in rest:
        if others is not None and name not in others and (name not in COLUMNS or name in chosen):
            continue
        if name in chosen:
            raise ValueError(
                f"the file has a column {name!r} as well as {columns[name]!r}, which is to become {name}; "
                "name the columns to keep with `others=`"
            )
        chosen[name] = there[name]
    return Table(chosen, table.records)


def refuse_absent(table: Table, constants: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    """A `ValueError` that lists the columns that are absent, and a suggestion that provides all of them."""
    absent = [name for name in COLUMNS if name not in table.columns and constants.get(name) is None]
    if not absent:
        return
    likely = likely_names(table.columns, absent)
    problem = f"no column {', '.join(map(repr, absent))}; {_there_are(table.columns)}"
    if any(name not in likely and name not in SAMPLE for name in absent):
        needed = "; without releases there are no hold times to learn from" if absent == [RELEASE] else ""
        raise ValueError(f"{problem}; `columns` gives the file's own names{needed}")
    arguments = [f"columns={dict(columns) | likely}"] if likely else []
    # One value for all rows: the file of a single person, or a single sample of each.
    constant = {"user": "'NAME'", "session": "0"}
    arguments += [f"{name}={constant[name]}" for name in SAMPLE if name in absent and name not in likely]
    condition = " if that is what they are called" if likely else ""
    raise ValueError(f"{problem}: give `{', '.join(arguments)}`{condition}")


def likely_names(there: Collection[str], absent: Collection[str]) -> dict[str, str]:
    """Which of the columns are likely to be those that are absent, in the schema's order."""
    free = [name for name in there if name not in COLUMNS]
    found: dict[str, str] = {}
    for ours, words in LIKELY.items():
        if ours not in absent:
            continue
        places = {name: _place(name, words) for name in free if name not in found.values()}
        best = min(places, key=places.__getitem__, default=None)
        if best is not None and places[best] < len(words):
            found[ours] = best
    return {name: found[name] for name in COLUMNS if name in found}


def _place(name: str, words: tuple[str, ...]) -> int:
    """The first of the words that the name has, alone or among others; the number of words if none is."""
    parts = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    parts += ["".join(parts)]
    return next((n for n, word in enumerate(words) if word in parts), len(words))


def _there_are(columns: Collection[str]) -> str:
    return f"there are {', '.join(map(repr, columns))}"
