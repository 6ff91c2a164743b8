"""Independent pieces of work, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from joblib import Parallel, delayed

Result = TypeVar("Result")


def results(
    function: Callable[..., Result], pieces: Iterable[dict[str, Any]], n_jobs: int | None = None
) -> Iterator[Result]:
    """What the function makes of each piece's arguments, in order, as they are done.

    In processes, or wherever joblib's backend puts them: around the compiled fits much is Python's own work,
    of which threads do one at a time.
    """
    yield from Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(**piece) for piece in pieces)
