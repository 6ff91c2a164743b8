"""Parallel execution of long work, on this machine's cores or on a running Dask cluster.

Population fits, studies and surrogates use it. Results do not depend on where the work ran.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[int], object]

_ENGINE: ContextVar[str | None] = ContextVar("engine", default=None)
ADDRESS = re.compile(r"dask://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5})/?")
BACKEND = "keydyn-dask"
# Seconds to wait for a scheduler to answer, and for a first worker.
PATIENCE = 10


class EngineError(OSError):
    """Raised when the cluster cannot be used; the message says why.

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
    """Return a progress function that counts on from the number done `before`."""
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
    """Yield the results of `mapped` one by one, each as soon as it and all before it are done.

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
    from joblib import delayed

    with _workers(engine or _ENGINE.get(), n_jobs, threads) as parallel:
        # All arguments are in one tuple, which travels with its task: joblib would keep a large argument on a
        # single worker of a cluster, and it would be lost with that worker.
        yield from parallel(
            delayed(_run)((function, task, label)) for task, label in zip(tasks, labels, strict=True)
        )


def _run(item: tuple[Callable[[Any], Any], Any, str]) -> Any:
    """Run a task; errors are labelled with the task they come from."""
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
    """Yield joblib's `Parallel` for this machine's cores or for the cluster."""
    from joblib import Parallel

    if engine is None:
        yield Parallel(n_jobs=n_jobs, prefer="threads" if threads else "processes", return_as="generator")
        return
    with on_cluster(engine):
        yield Parallel(n_jobs=-1, return_as="generator")


@contextmanager
def on_cluster(engine: str) -> Iterator[None]:
    """Make `Parallel` run on the cluster of the scheduler at `engine`, dask://HOST:PORT.

    An `EngineError` says why it cannot, or why the work had to stop.
    """
    from joblib import parallel_config, register_parallel_backend

    address = ADDRESS.fullmatch(engine)
    if address is None:
        raise ValueError(f"engine must be dask://HOST:PORT, not {engine!r}")
    try:
        # An optional dependency, imported only if it is used.
        distributed = import_module("distributed")
    except ImportError:
        raise EngineError(
            f"{engine} needs Dask, an extra: pip install 'keydyn[distributed]', here and on every worker"
        ) from None
    try:
        client = distributed.Client(
            f"tcp://{address[1]}:{address[2]}", timeout=PATIENCE, set_as_default=False
        )
    except (OSError, TimeoutError) as error:
        raise EngineError(f"no Dask scheduler answers at {engine}: {error}") from error
    with client:
        _check_workers(client, engine, PATIENCE)
        register_parallel_backend(BACKEND, _backend())
        try:
            with parallel_config(backend=BACKEND, client=client), warnings.catch_warnings():
                # Tasks carry their data on purpose: data stored on a worker is lost with it.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                yield
        except distributed.KilledWorker as error:
            raise EngineError(
                f"{engine}: a task was given up, because every worker that ran it died (of memory?): {error}"
            ) from error
        except CancelledError as error:
            raise EngineError(f"{engine}: the connection to the scheduler was lost: {error}") from error


def version() -> str:
    """The version of this package; also called on workers."""
    from keydyn import __version__

    return __version__


def _check_workers(client: Any, engine: str, seconds: float) -> None:
    """Raise an `EngineError` unless workers appear in time and all have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        raise EngineError(f"{engine}: the scheduler has no workers") from None
    answers = client.run(version, on_error="return")
    for worker, answer in answers.items():
        if answer != version():
            raise EngineError(
                f"{engine}: worker {worker} must have keydyn {version()} installed, but answers {answer!r}"
            )


def _backend() -> type[Any]:
    """Make the class of the backend; it is defined here because joblib's module needs Dask."""
    from joblib._dask import DaskDistributedBackend

    class ClusterBackend(DaskDistributedBackend):  # type: ignore[misc]
        """joblib's backend for Dask, with two differences.

        joblib is notified of results only, and would wait for ever for a task that fails without one. With a
        single worker, joblib would run everything on this machine; here it goes to that worker.
        """

        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
            future = super().submit(func, callback)

            def report_failure(done: Future[Any]) -> None:
                if callback is not None and done.exception() is not None:
                    callback(done)

            future.add_done_callback(report_failure)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            return out.result() if isinstance(out, Future) else super().retrieve_result_callback(out)

        def get_nested_backend(self) -> Any:
            return ClusterBackend(client=self.client), -1

    return ClusterBackend
