"""Where long work runs: on this machine's cores, or on a Dask cluster that is there already.

One function for population fits, studies and surrogates. What it returns does not depend on where it ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from joblib import Parallel, delayed

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int], object]


_ENGINE: ContextVar[str | None] = ContextVar("engine", default=None)


@contextmanager
def using(engine: str | None) -> Iterator[None]:
    """All work inside runs on this engine unless it names another; None is this machine."""
    before = _ENGINE.set(engine or None)
    try:
        yield
    finally:
        _ENGINE.reset(before)


def mapped(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    n_jobs: int | None = None,
    engine: str | None = None,
    threads: bool = True,
    progress: Progress | None = None,
    names: Sequence[object] | None = None,
) -> list[Result]:
    """`function` of each task, in the order of the tasks.

    `n_jobs` workers of this machine run at once (None for one, −1 for all cores): threads, which suit
    compiled loops, or with `threads=False` processes. `engine="dask://HOST:PORT"` sends the tasks to a Dask
    cluster instead, to all its workers, and runs those of a worker that dies again on another; function,
    tasks and results must then be picklable, and a task must give the same result when it is run twice.

    `progress` is called with the number of tasks done. An error names its task: its number, or its entry in
    `names`, nothing where that is empty.
    """
    results: list[Result] = []
    for result in each(function, tasks, n_jobs=n_jobs, engine=engine, threads=threads, names=names):
        results.append(result)
        if progress is not None:
            progress(len(results))
    return results


def each(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    n_jobs: int | None = None,
    engine: str | None = None,
    threads: bool = True,
    names: Sequence[object] | None = None,
) -> Iterator[Result]:
    """The same one by one, each as soon as it and all before it are done."""
    work = list(tasks)
    called = [f"task {number}" for number in range(len(work))] if names is None else [str(n) for n in names]
    if len(called) != len(work):
        raise ValueError(f"names has {len(called)} entries for {len(work)} tasks")
    if not work:
        return
    with _where(engine or _ENGINE.get(), n_jobs, threads) as parallel:
        # One tuple an item: joblib would keep a large argument on one worker of a cluster only, and it
        # would be lost with that worker. Tuples travel with the task.
        yield from parallel(
            delayed(_run)((function, task, name)) for task, name in zip(work, called, strict=True)
        )


def _run(item: tuple[Callable[[Any], Any], Any, str]) -> Any:
    function, task, name = item
    try:
        return function(task)
    except ValueError as error:
        if not name:
            raise
        raise ValueError(f"{name}: {error}") from error
    except Exception as error:
        error.add_note(name)
        raise


@contextmanager
def _where(engine: str | None, n_jobs: int | None, threads: bool) -> Iterator[Any]:
    if engine is None:
        yield Parallel(n_jobs=n_jobs, prefer="threads" if threads else "processes", return_as="generator")
        return
    # Dask is an extra, imported only when it is asked for.
    from keydyn.dask_engine import on_cluster

    with on_cluster(engine):
        yield Parallel(n_jobs=-1, return_as="generator")
