"""Map and reduce over groups of people: on threads of this machine, or on the engine that is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from keydyn import parallel

Progress = Callable[[float], object]
Task = TypeVar("Task")
Result = TypeVar("Result")


class Passes:
    """Applies functions to all groups in turn; `progress` is called with the share of passes done."""

    def __init__(self, n_jobs: int | None = None, progress: Progress | None = None) -> None:
        self._n_jobs = n_jobs
        self._progress = progress
        self._done = 0
        # How many there will be.
        self.total = 1

    def each(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, in the order of the tasks."""
        tasks = list(tasks)
        if len(tasks) == 1:
            yield function(tasks[0])
        else:
            yield from parallel.each(function, tasks, n_jobs=self._n_jobs, names=[""] * len(tasks))
        self._done += 1
        if self._progress is not None:
            self._progress(self._done / self.total)

    def sums(self, function: Callable[[Task], tuple[Any, ...]], tasks: Iterable[Task]) -> tuple[Any, ...]:
        """The results, which are tuples of numbers and arrays, added up."""
        total: tuple[Any, ...] | None = None
        for result in self.each(function, tasks):
            total = result if total is None else tuple(a + b for a, b in zip(total, result, strict=True))
        if total is None:
            raise ValueError("there are no people to learn from")
        return total
