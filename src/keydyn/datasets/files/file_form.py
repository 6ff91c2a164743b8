"""The options for reading a file, and the result of a reader of one layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from keydyn.arrays import Integers
from keydyn.datasets.files.file_tables import FileTable
from keydyn.keystrokes.quality import nothing_impossible

# The user of samples in a file without users, and the session of a single sample.
UNKNOWN, ONLY = "unknown", 0


@dataclass(frozen=True)
class FileForm:
    """The options for reading a file; the attributes are the arguments of `load_recordings`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    user: str | int | None = None
    session: str | int | None = None
    others: Collection[str] | None = None
    sort: bool = False
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    # Read as for the commands: a column that mixes numbers with other values is text instead of an error;
    # keys get keydyn's names, whatever the file calls them; and a clock that stood still is refused.
    by_command: bool = False


@dataclass(frozen=True, eq=False)
class AsRead:
    """Keystrokes as stored in a file, not yet checked; `rows` is each keystroke's row in the table."""

    frame: pd.DataFrame
    rows: Integers
    table: FileTable
    unit: str
    names_users: bool = True
    has_sessions: bool = True
    # Counts of impossible times due to the file's clock or order, as returned by `count_by_user`.
    impossible: pd.DataFrame = field(default_factory=nothing_impossible)
