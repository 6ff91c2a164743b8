"""Independent pieces of work, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from keydyn.engine import each

Result = TypeVar("Result")


def results(
    function: Callable[..., Result], pieces: Iterable[dict[str, Any]], n_jobs: int | None = None
) -> Iterator[Result]:
    """What the function makes of each piece's arguments, in order, as they are done.

    In processes, or on the cluster that `keydyn.engine.using` names: around the compiled fits much is
    Python's own work, of which threads do one at a time.
    """
    yield from each(partial(_called, function), pieces, n_jobs=n_jobs, threads=False)


def _called(function: Callable[..., Result], piece: dict[str, Any]) -> Result:
    return function(**piece)
