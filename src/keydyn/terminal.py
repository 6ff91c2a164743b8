"""What commands have in common on a terminal: tables, JSON, progress."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def warn(message: str) -> None:
    """Report what the user should know, in yellow on standard error."""
    typer.secho(f"keydyn: {message}", err=True, fg="yellow")


def print_json(value: Any) -> None:
    """Print strict JSON; numbers that are not finite become null."""
    typer.echo(json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False))


def show_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table, numbers aligned to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # As Text: a user may be called "[/b]", which is markup in a plain string.
    table = Table(title=Text(title), title_justify="left")
    for name in rows[0] if rows else []:
        numeric = any(isinstance(row[name], (int, float)) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()), style=_style(row))
    Console().print(table)


@contextmanager
def progress_bar(what: str, total: int, hidden: bool = False) -> Iterator[Callable[[int], object]]:
    """A bar with an estimate of the time left; what it yields is called with the number done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def share_bar(hidden: bool = False) -> Iterator[Callable[[str, float], object]]:
    """A bar for work of many kinds; what it yields is called with the current work and the share done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _style(row: dict[str, Any]) -> str | None:
    if row.get("verdict") == "rejected" or row.get("rejected at key") is not None:
        return "red"
    return {"accepted": "green", "unsure": "yellow"}.get(row.get("verdict", ""))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
