"""Runs joblib's tasks on a Dask cluster."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from joblib import parallel_config, register_parallel_backend

from keydyn.parallel import EngineError

ADDRESS = re.compile(r"dask://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5})/?")
BACKEND = "keydyn-dask"
# Seconds to wait for a scheduler to answer, and for a first worker.
PATIENCE = 10


@contextmanager
def on_cluster(engine: str) -> Iterator[None]:
    """`Parallel` runs on the cluster of the scheduler at `engine`, dask://HOST:PORT.

    An `EngineError` says why it cannot, or why the work had to stop.
    """
    address = ADDRESS.fullmatch(engine)
    if address is None:
        raise ValueError(f"engine must be dask://HOST:PORT, not {engine!r}")
    try:
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
        _check_workers(client, engine)
        register_parallel_backend(BACKEND, _backend())
        try:
            with parallel_config(backend=BACKEND, client=client), warnings.catch_warnings():
                # Tasks carry their data on purpose: what lies on a worker is lost with it.
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                yield
        except distributed.KilledWorker as error:
            raise EngineError(
                f"{engine}: a task was given up, because every worker that ran it died (of memory?): {error}"
            ) from error
        except CancelledError as error:
            raise EngineError(f"{engine}: the connection to the scheduler was lost: {error}") from error


def version() -> str:
    """The version of this package; workers are asked for theirs."""
    from keydyn import __version__

    return __version__


def _check_workers(client: Any, engine: str) -> None:
    """An `EngineError` unless there are workers and all have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise EngineError(f"{engine}: the scheduler has no workers") from None
    answers = client.run(version, on_error="return")
    for worker, answer in answers.items():
        if answer != version():
            raise EngineError(
                f"{engine}: worker {worker} must have keydyn {version()} installed, but answers {answer!r}"
            )


def _backend() -> type[Any]:
    """The class of the backend; it is made here because joblib's module needs Dask."""
    from joblib._dask import DaskDistributedBackend

    class ClusterBackend(DaskDistributedBackend):  # type: ignore[misc]
        """joblib's backend for Dask, with two differences.

        joblib is notified of results only, and would wait for ever for a task that fails without one. And
        with a single worker joblib would run everything on this machine; here it goes to that worker.
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
