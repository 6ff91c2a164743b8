"""Where long work runs: on this machine's cores, or on a Dask cluster that is already running.

Population fits, studies and surrogates all use it. Results do not depend on where the work ran.
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


class EngineError(OSError):
    """The cluster cannot be used: the message says why.

    Examples
    --------
    >>> from keydyn.parallel import EngineError, mapped
    >>> try:
    ...     mapped(len, ["a"], engine="dask://127.0.0.1:9")
    ... except EngineError as error:
    ...     print("127.0.0.1:9" in str(error))
    True
    """


@contextmanager
def using(engine: str | None) -> Iterator[None]:
    """Run all work inside the block on this engine, unless a call names another; None is this machine.

    Examples
    --------
    >>> from keydyn.parallel import mapped, using
    >>> with using(None):  # or "dask://HOST:PORT", the address of a cluster's scheduler
    ...     print(mapped(len, ["a", "bc"]))
    [1, 2]
    """
    before = _ENGINE.set(engine or None)
    try:
        yield
    finally:
        _ENGINE.reset(before)


def counting_on(progress: Progress | None, before: int) -> Progress | None:
    """Progress that counts on from what was done `before`."""
    return None if progress is None else lambda done: progress(before + done)


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
    """Apply `function` to each task and return the results in the order of the tasks.

    `n_jobs` workers of this machine run at once (None for one, −1 for all cores): threads, which suit
    compiled loops, or processes with `threads=False`. `engine="dask://HOST:PORT"` sends the tasks to all
    workers of a Dask cluster instead. If a worker dies, its tasks run again on another, so a task must give
    the same result when it is run twice. Function, tasks and results must be picklable then.

    `progress` is called with the number of tasks done. An error names its task by its number or by its entry
    in `names`; where that entry is empty, the error is left as it is.

    Examples
    --------
    >>> from keydyn.parallel import mapped
    >>> mapped(len, ["a", "bc", "def"], n_jobs=2)
    [1, 2, 3]
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
    """The results of `mapped` one by one, each as soon as it and all before it are done.

    Examples
    --------
    >>> from keydyn.parallel import each
    >>> for length in each(len, ["a", "bc"]):
    ...     print(length)
    1
    2
    """
    tasks = list(tasks)
    labels = [f"task {number}" for number in range(len(tasks))] if names is None else [*map(str, names)]
    if len(labels) != len(tasks):
        raise ValueError(f"names has {len(labels)} entries for {len(tasks)} tasks")
    if not tasks:
        return
    with _workers(engine or _ENGINE.get(), n_jobs, threads) as parallel:
        # All in one tuple: joblib would keep a large argument on a single worker of a cluster, and it would
        # be lost with that worker. A tuple travels with its task.
        yield from parallel(
            delayed(_run)((function, task, label)) for task, label in zip(tasks, labels, strict=True)
        )


def _run(item: tuple[Callable[[Any], Any], Any, str]) -> Any:
    """The task's result; an error is labelled with the task it comes from."""
    function, task, label = item
    try:
        return function(task)
    except ValueError as error:
        if not label:
            raise
        raise ValueError(f"{label}: {error}") from error
    except Exception as error:
        error.add_note(label)
        raise


@contextmanager
def _workers(engine: str | None, n_jobs: int | None, threads: bool) -> Iterator[Any]:
    """joblib's `Parallel` over this machine's cores or over the cluster."""
    if engine is None:
        yield Parallel(n_jobs=n_jobs, prefer="threads" if threads else "processes", return_as="generator")
        return
    # Dask is an extra, imported only when it is asked for.
    from keydyn.dask_cluster import on_cluster

    with on_cluster(engine):
        yield Parallel(n_jobs=-1, return_as="generator")
