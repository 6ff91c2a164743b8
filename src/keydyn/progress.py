"""Progress of long work: a bar on a terminal, and a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from keydyn.terminal import is_quiet

# The time between two lines where standard error is no terminal.
SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_bar(
    what: str, total: int, hidden: bool = False, every_s: float = SECONDS_BETWEEN_LINES
) -> Iterator[Callable[[int], object]]:
    """Show progress of countable work; the function that it yields is called with the number done."""
    with _display(what, hidden, every_s) as show:
        yield lambda done: show(what, done / max(total, 1), f"{done} of {total}")


@contextmanager
def share_bar(
    hidden: bool = False, every_s: float = SECONDS_BETWEEN_LINES
) -> Iterator[Callable[[str, float], object]]:
    """Show progress of work of many kinds; call the yielded function with the current work and share done."""
    with _display("starting", hidden, every_s) as show:
        yield lambda what, share: show(what, share, f"{share:.0%}")


@contextmanager
def working(what: str, hidden: bool = False, every_s: float = SECONDS_BETWEEN_LINES) -> Iterator[None]:
    """Show that work goes on whose progress cannot be counted."""
    with _display(what, hidden, every_s):
        yield


Show = Callable[[str, float | None, str], object]


@contextmanager
def _display(what: str, hidden: bool, every_s: float) -> Iterator[Show]:
    """Yield a function that shows the current work, the share done, and a text for the share."""
    if hidden or is_quiet():
        yield lambda *_: None
    elif sys.stderr.isatty():
        with _bar(what) as show:
            yield show
    else:
        with _lines(what, every_s) as show:
            yield show


@contextmanager
def _bar(what: str) -> Iterator[Show]:
    """Show a bar with an estimate of the time left, in which something always moves."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    texts = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
    columns = (SpinnerColumn(), texts[0], BarColumn(), texts[1], TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, words="")

        def show(what: str, share: float | None, words: str) -> None:
            bar.update(task, description=what, total=1.0, completed=share, words=words)

        yield show


@contextmanager
def _lines(what: str, every_s: float) -> Iterator[Show]:
    """Print a line every `every_s` seconds, from a thread, because the work may be silent for long."""
    began, ended = time.monotonic(), threading.Event()
    now: dict[str, Any] = {"what": what, "words": ""}

    def show(what: str, _: float | None, words: str) -> None:
        now.update(what=what, words=words)

    def report() -> None:
        while not ended.wait(every_s):
            words = f", {now['words']}" if now["words"] else ""
            print(f"keydyn: {now['what']}{words}, {time.monotonic() - began:.0f} s", file=stream, flush=True)

    # Lines go to the present stream, even if sys.stderr is replaced meanwhile.
    stream = sys.stderr
    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield show
    finally:
        ended.set()
        reporter.join()
