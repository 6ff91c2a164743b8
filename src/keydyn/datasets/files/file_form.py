"""How a file is to be read, and what a reader of one layout hands back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from keydyn.arrays import Integers
from keydyn.datasets.files.tables import Table
from keydyn.keystrokes.quality import nothing_impossible

# The user of samples in a file that does not say who typed, and the session of a single sample.
UNKNOWN, ONLY = "unknown", 0


@dataclass(frozen=True)
class FileForm:
    """How a file is to be read; the attributes are the arguments of `load_recordings`."""

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
    # As the commands read: a column of numbers and other things is text, and no error; keys get keydyn's
    # names, whatever the file calls them; and a clock that stood still is refused.
    by_command: bool = False


@dataclass(frozen=True, eq=False)
class AsRead:
    """Keystrokes as a file has them, not checked yet; `rows` is the row of the table that each comes from."""

    frame: pd.DataFrame
    rows: Integers
    table: Table
    unit: str
    names_users: bool = True
    has_sessions: bool = True
    # What the file's clock or order makes impossible, as `count_by_user` gives it.
    impossible: pd.DataFrame = field(default_factory=nothing_impossible)
