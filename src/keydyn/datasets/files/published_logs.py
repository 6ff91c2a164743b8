"""Published logs of presses and releases: how to recognise them, and facts that only their authors state.

- Clarkson II: tabs, no header; ticks of 100 ns, 1 for a press and 0 for a release, and the key, by name or by
  its virtual key code. Each file belongs to one person and is named by their number. Verified with the
  authors' page and programs that read it: ticks are those of .NET, from the year 1, with two bits for the
  time zone.
- Buffalo: spaces, no header; the key by its name in .NET, KeyDown or KeyUp, and milliseconds. The digits of a
  file's name are the person, the session, the keyboard and the task. Verified with programs that read it.
- BB-MAS: commas, with a header; a number, the key, 0 for a press and 1 for a release, and date and time. The
  number at the start of a file's name is the person. Verified with programs that read it.

None was checked against a file of the set itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

# Bits of .NET's `DateTime.ToBinary` that hold the time; the two bits above them hold the time zone.
TICK_BITS = (1 << 62) - 1
# Ticks of 100 ns since the year 1 have exceeded this number since the year 317; other counts are smaller.
FEWEST_TICKS = 10**17
NANOSECONDS_PER_TICK = 100


@dataclass(frozen=True)
class Log:
    """The format of one kind of log."""

    columns: tuple[str, ...]  # names in the header, or names to use if there is none
    line: str = ""  # pattern of every line if there is no header
    separator: str = ","
    types: Mapping[str, str] = field(default_factory=dict)  # unusual meanings of event types
    codes: bool = False  # whether numbers in place of keys are virtual key codes
    file: str = ""  # pattern of a file's name, with groups `user` and others
    session: str = ""  # template of the session, filled with these groups


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
    """The log whose line pattern matches the first line of a text."""
    first = re.match(r"[^\r\n]*", text)
    return next(
        (log for log in LOGS.values() if log.line and first and re.fullmatch(log.line, first[0])), None
    )


def log_with_columns(names: Collection[str]) -> Log | None:
    """The log with exactly these columns."""
    return next((log for log in LOGS.values() if set(log.columns) == set(names)), None)


def whose_file(log: Log | None, name: str) -> dict[str, str | int]:
    """The user and the session encoded in a file's name; whole numbers are converted."""
    match = re.fullmatch(log.file, PurePath(name).name) if log is not None and log.file else None
    if match is None:
        return {}
    found: dict[str, str | int] = {"user": int(match["user"])}
    return found | ({"session": log.session.format(**match.groupdict())} if log and log.session else {})
