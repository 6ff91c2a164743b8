"""Keystrokes as a caller has them, turned into what the service takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from keydyn.service.wire.requests import KeyEvent
from keydyn.service.wire.requests import Keystroke as SentKeystroke


@runtime_checkable
class DataFrame(Protocol):
    """The part of a pandas data frame that is used; pandas need not be installed."""

    columns: Any

    def __getitem__(self, columns: Any) -> Any:
        """Some of the columns."""

    def itertuples(self, index: bool = ..., name: str | None = ...) -> Iterable[tuple[Any, ...]]:
        """The rows."""


# A key, when it was pressed and when it was released, milliseconds; None if the release was not seen.
Keystroke: TypeAlias = tuple[str, float, float | None]
# Tuples, or mappings with `keyname`, `timepress` and `timerelease`, or a data frame with these columns; raw
# events are mappings with `type`, `key` and `time`.
Keystrokes: TypeAlias = Iterable[Keystroke] | Iterable[Mapping[str, Any]] | DataFrame
COLUMNS = ("keyname", "timepress", "timerelease")


def keystrokes(given: Keystrokes) -> list[Keystroke]:
    """One tuple per keystroke."""
    rows = _rows(given)
    if any(isinstance(row, Mapping) and "type" in row for row in rows):
        raise ValueError("keystrokes are needed here, not raw events")
    return [_keystroke(row) for row in rows]


def sample(given: Keystrokes) -> dict[str, Any]:
    """The fields of a request that hold a sample: keystrokes, or raw events if these were given."""
    rows = _rows(given)
    if rows and all(isinstance(row, Mapping) and "type" in row for row in rows):
        return {"events": [KeyEvent(**row) for row in rows]}
    return {"keystrokes": [SentKeystroke(*row) for row in keystrokes(rows)]}


def _rows(given: Keystrokes) -> list[Any]:
    if not isinstance(given, DataFrame):
        return list(given)
    missing = [name for name in COLUMNS if name not in given.columns]
    if missing:
        raise ValueError(f"the data frame has no column {missing[0]}")
    return list(given[list(COLUMNS)].itertuples(index=False, name=None))


def _keystroke(row: Any) -> Keystroke:
    if isinstance(row, Mapping):
        row = row["keyname"], row["timepress"], row.get("timerelease")
    key, press, release = row
    press = float(press)
    # A release that was not seen is NaN in a data frame.
    release = None if release is None or release != release else float(release)
    return str(key), press, release
