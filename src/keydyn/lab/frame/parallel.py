"""Independent pieces of work, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from keydyn.parallel import each

Result = TypeVar("Result")


def results(
    function: Callable[..., Result], pieces: Iterable[dict[str, Any]], n_jobs: int | None = None
) -> Iterator[Result]:
    """The function's result for the arguments of each piece, in order, as soon as they are done.

    The pieces run in processes, or on the cluster that `keydyn.parallel.using` names. Threads would wait for
    one another, because much of the work around the compiled fits is done by the interpreter.
    """
    yield from each(partial(_called, function), pieces, n_jobs=n_jobs, threads=False)


def _called(function: Callable[..., Result], piece: dict[str, Any]) -> Result:
    return function(**piece)
