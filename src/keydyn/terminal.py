"""Output that commands share: tables, JSON and warnings on a terminal."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

# Characters that a column takes in addition to its texts.
BORDER = 3
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@contextmanager
def being_quiet(quiet: bool) -> Iterator[None]:
    """Print only warnings, errors and JSON within the block, if `quiet`."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """Whether only warnings, errors and JSON are printed."""
    return _QUIET.get()


def say(text: str) -> None:
    """Print a line, unless asked to be quiet."""
    if not is_quiet():
        typer.echo(text)


def show(what: Any) -> None:
    """Print one of rich's tables or texts, unless asked to be quiet."""
    from rich.console import Console

    if not is_quiet():
        Console().print(what)


def warn(message: str) -> None:
    """Print a warning in yellow on standard error."""
    typer.secho(f"keydyn: {message}", err=True, fg="yellow")


def own_command() -> str:
    """The command that runs this program, such as `.venv/bin/keydyn`, for commands that can be pasted."""
    program, on_path = Path(sys.argv[0]), shutil.which("keydyn")
    named = program.name == "keydyn" and (on_path is None or Path(on_path).resolve() != program.resolve())
    return shlex.quote(str(program)) if named else "keydyn"


def print_json(value: Any) -> None:
    """Print strict JSON; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False))


def heading(key: str) -> str:
    """The heading in a table for a key of a row, which is in snake_case."""
    return key.replace("_", " ").replace("log likelihood", "log-likelihood")


def show_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table with numbers aligned right, or row by row if the terminal is too narrow."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if is_quiet():
        return
    console = Console()
    # As Text, because in a plain string a user called "[/b]" would be markup.
    if least_width(rows) > console.width:
        console.print(Text(title, style="italic"))
        widest = max(len(heading(name)) for name in rows[0])
        for row in rows:
            console.print()
            for name, value in row.items():
                line = Text(f"{heading(name):<{widest}}  {_cell(value)}", style=_style(row) or "")
                console.print(line, soft_wrap=True)
        return
    table = Table(title=Text(title), title_justify="left")
    widths = column_widths(_columns(rows), console.width)
    for name, width in zip(rows[0] if rows else [], widths, strict=True):
        numeric = any(isinstance(row[name], (int, float)) for row in rows)
        table.add_column(heading(name), justify="right" if numeric else "left", width=width)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()), style=_style(row))
    console.print(table)


def terminal_width() -> int:
    """The number of characters in a line."""
    from rich.console import Console

    return Console().width


def least_width(rows: list[dict[str, Any]]) -> int:
    """The least width of a table in which no word is broken."""
    return sum(_longest_word(texts) + BORDER for texts in _columns(rows)) + 1


def column_widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """The widths of the columns of a table that is `room` wide, given the texts of each column.

    No word is broken as long as there is room. Space left over goes to the columns that need most.
    """
    widths = [_longest_word(texts) for texts in columns]
    wanted = [max((len(line) for text in texts for line in text.split("\n")), default=0) for texts in columns]
    for _ in range(max(room - 1 - sum(width + BORDER for width in widths), 0)):
        needed = [want - width for want, width in zip(wanted, widths, strict=True)]
        if max(needed, default=0) <= 0:
            break
        widths[needed.index(max(needed))] += 1
    return widths


def _columns(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The texts of each column, the heading first."""
    return [[heading(name), *(_cell(row[name]) for row in rows)] for name in (rows[0] if rows else [])]


def _longest_word(texts: Sequence[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _style(row: dict[str, Any]) -> str | None:
    if row.get("verdict") == "rejected" or row.get("rejected_at_key") is not None:
        return "red"
    return {"accepted": "green", "unsure": "yellow"}.get(row.get("verdict", ""))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
