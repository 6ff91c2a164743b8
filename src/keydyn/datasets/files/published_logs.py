"""Published logs of presses and releases: how they are recognised, and what only their authors' text says.

- Clarkson II: tabs, no header; ticks of 100 ns, 1 for a press and 0 for a release, and the key, by name or by
  the code of its virtual key. A file is a person, and is called by their number. Verified on the authors'
  page and on programs that read it: ticks are those of .NET, from the year 1, with two bits for the zone.
- Buffalo: spaces, no header; the key by its name in .NET, KeyDown or KeyUp, and milliseconds. The digits of a
  file's name are the person, the session, the keyboard and the task. Verified on programs that read it.
- BB-MAS: commas, with a header; a number, the key, 0 for a press and 1 for a release, and date and time. The
  number at the start of a file's name is the person. Verified on programs that read it.

No file of the three was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

# Bits of .NET's `DateTime.ToBinary` that hold the time; the two above them say in which zone it is.
TICK_BITS = (1 << 62) - 1
# Ticks of 100 ns since the year 1 are larger than this since the year 317; other counts are smaller.
FEWEST_TICKS = 10**17
NANOSECONDS_PER_TICK = 100


@dataclass(frozen=True)
class Log:
    """One kind of log."""

    columns: tuple[str, ...]  # of the header, or what the columns are called where there is none
    line: str = ""  # what every line is like if there is no header
    separator: str = ","
    types: Mapping[str, str] = field(default_factory=dict)  # what values mean, if not what they usually do
    codes: bool = False  # whether numbers in place of keys are codes of virtual keys
    file: str = ""  # what a file's name says: groups `user` and others
    session: str = ""  # the session, made of these groups


LOGS = {
    "clarkson2": Log(
        columns=("ticks", "action", "key"),
        line=r"-?[0-9]{17,19}\t[01]\t[^\t]+",
        separator="\t",
        codes=True,
        file=r"(?P<user>[0-9]+)(\.[a-z]+)?",
    ),
    "buffalo": Log(
        columns=("key", "type", "time"),
        line=r"\S+ Key(?:Down|Up) [0-9]+",
        separator=" ",
        file=r"(?P<user>[0-9]{3})(?P<session>[0-9])(?P<keyboard>[0-9])(?P<task>[0-9])\.txt",
        session="s{session}k{keyboard}t{task}",
    ),
    "bb-mas": Log(
        columns=("EID", "key", "direction", "time"),
        types={"0": "press", "1": "release"},
        file=r"(?P<user>[0-9]+)_(?P<device>[A-Za-z]+)_Keyboard.*\.csv",
        session="{device}",
    ),
}


def log_without_header(text: str) -> Log | None:
    """The log whose lines are like the first of a text."""
    first = re.match(r"[^\r\n]*", text)
    return next(
        (log for log in LOGS.values() if log.line and first and re.fullmatch(log.line, first[0])), None
    )


def log_with_columns(names: Collection[str]) -> Log | None:
    """The log that has these columns."""
    return next((log for log in LOGS.values() if set(log.columns) == set(names)), None)


def whose_file(log: Log | None, name: str) -> dict[str, str | int]:
    """The user and the session that a file's name gives away; whole numbers are numbers."""
    match = re.fullmatch(log.file, PurePath(name).name) if log is not None and log.file else None
    if match is None:
        return {}
    found: dict[str, str | int] = {"user": int(match["user"])}
    return found | ({"session": log.session.format(**match.groupdict())} if log and log.session else {})
