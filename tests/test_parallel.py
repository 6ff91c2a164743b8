"""Work that runs here or on a cluster: complete, in order, and the same."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from keydyn import parallel
from keydyn.detectors import fit_population
from keydyn.parallel import EngineError, mapped, using
from tests.detectors.test_detectors import typed
from tests.parallel_tasks import (
    break_at_three,
    die_at_three,
    die_once,
    fit_and_score,
    refuse_three,
    slow_square,
    square,
    total,
    users,
)
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[1]
SQUARES = [n * n for n in range(50)]


class Cluster:
    """A Dask scheduler and its workers on loopback, each a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.processes = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    @property
    def engine(self):
        return f"dask://127.0.0.1:{self.port}"

    def start(self, kind, *arguments):
        number = len(self.processes)
        with (self.folder / f"{kind}-{number}.log").open("w") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # The workers must find the tasks of these tests.
                    env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
                    cwd=self.folder,
                    start_new_session=True,
                )
            )
        return self.processes[-1]

    def start_worker(self, *arguments):
        return self.start(
            "worker", f"tcp://127.0.0.1:{self.port}", "--host", "127.0.0.1", "--nthreads", "1", *arguments
        )

    def stop(self):
        for process in reversed(self.processes):
            # A worker's children belong to its session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill_scheduler(self):
        self.processes[0].kill()


@contextlib.contextmanager
def cluster_in(folder, n_workers=2, nanny=False):
    cluster = Cluster(folder)
    # Whatever goes wrong ends: without its scheduler a client gives up.
    watch = threading.Timer(600, cluster.kill_scheduler)
    watch.daemon = True
    watch.start()
    try:
        for _ in range(n_workers):
            cluster.start_worker("--nanny" if nanny else "--no-nanny")
        with pytest.MonkeyPatch.context() as patch:
            # A busy machine takes long to start them.
            patch.setattr(parallel, "PATIENCE", PATIENCE)
            yield cluster
    finally:
        watch.cancel()
        cluster.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp("dask")) as running:
        yield running


@pytest.mark.parametrize(
    "where", [{}, {"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": 2, "threads": False}], ids=str
)
def test_here(where):
    done = []
    assert mapped(square, range(50), progress=done.append, **where) == SQUARES
    assert done == list(range(1, 51))
    assert mapped(square, [], **where) == []
    assert mapped(square, (n for n in range(3)), **where) == [0, 1, 4]


@pytest.mark.parametrize("where", [{}, {"n_jobs": 2}, {"n_jobs": 2, "threads": False}], ids=str)
def test_an_error_names_its_task(where):
    with pytest.raises(ValueError, match=r"^task 3: three is refused"):
        mapped(refuse_three, range(6), **where)
    with pytest.raises(ValueError, match=r"^user d: three is refused"):
        mapped(refuse_three, range(6), names=[f"user {letter}" for letter in "abcdef"], **where)
    with pytest.raises(KeyError) as raised:
        mapped(break_at_three, range(6), **where)
    assert raised.value.__notes__ == ["task 3"]


def test_names_must_fit():
    with pytest.raises(ValueError, match="names has 1 entries for 2 tasks"):
        mapped(square, [1, 2], names=["a"])


def test_on_a_cluster(cluster):
    done = []
    assert mapped(square, range(50), engine=cluster.engine, progress=done.append) == SQUARES
    assert done == list(range(1, 51))
    with pytest.raises(ValueError, match=r"^task 3: three is refused"):
        mapped(refuse_three, range(6), engine=cluster.engine)
    with pytest.raises(KeyError) as raised:
        mapped(break_at_three, range(6), engine=cluster.engine, names=list("abcdef"))
    assert "d" in raised.value.__notes__


def test_models_are_the_same_everywhere(cluster):
    people = users(6)
    here = mapped(fit_and_score, people)
    for where in ({"n_jobs": 2}, {"engine": cluster.engine}):
        for ours, theirs in zip(here, mapped(fit_and_score, people, **where), strict=True):
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_population_is_the_same_everywhere(cluster):
    """A batch of users is a task; progress, and the user that an error names, are as at home."""
    samples = typed(users=tuple(range(20)), n_samples=4, step=0.01)
    here = fit_population("pohmm", samples)
    seen = []
    with using(cluster.engine):
        away = fit_population("pohmm", samples, progress=seen.append)
        with pytest.raises(ValueError, match=r"^user 19: a covariance needs at least 2 samples"):
            fit_population("mahalanobis", samples[:77])
    assert away.users.tolist() == here.users.tolist()
    np.testing.assert_array_equal(away.score(samples), here.score(samples))
    assert len(seen) > 1
    assert seen[-1] == 20


def test_large_tasks_are_sent_without_a_warning(cluster):
    """Warnings are errors here, also in the thread that sends."""
    arrays = [np.full(2_000_000, n, dtype=np.float64) for n in range(4)]
    assert mapped(total, arrays, engine=cluster.engine) == [2e6 * n for n in range(4)]


def test_a_worker_that_dies_midway(cluster, tmp_path):
    """Its tasks, and the results that it held, are done again by the others."""
    # One more: the one that dies is not missed by other tests.
    cluster.start_worker("--no-nanny")
    mark = str(tmp_path / "killed")
    tasks = [(n, mark if n == 20 else os.devnull) for n in range(50)]
    assert mapped(die_once, tasks, engine=cluster.engine) == SQUARES
    assert Path(mark).exists()
    # It has closed its connections, and may still be ending.
    wait_until(lambda: any(process.poll() for process in cluster.processes), "no worker has died")
    assert [process.poll() for process in cluster.processes].count(-signal.SIGKILL) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside(tmp_path):
    with cluster_in(tmp_path) as cluster:
        worker = cluster.processes[1]

        def kill(done):
            if done == 5:
                worker.kill()

        squares = mapped(slow_square, range(50), engine=cluster.engine, progress=kill)
        assert squares == SQUARES
        assert worker.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up(tmp_path):
    """Nannies start a worker again and again; Dask gives up after some."""
    with (
        cluster_in(tmp_path, nanny=True) as cluster,
        pytest.raises(EngineError, match="every worker that ran it died"),
    ):
        mapped(die_at_three, range(6), engine=cluster.engine)


def test_a_scheduler_that_dies_is_reported(tmp_path):
    with cluster_in(tmp_path, n_workers=1) as cluster:

        def kill(done):
            if done == 5:
                cluster.kill_scheduler()

        with pytest.raises(EngineError, match="connection to the scheduler was lost"):
            mapped(slow_square, range(500), engine=cluster.engine, progress=kill)


def test_what_cannot_be_used_is_reported(monkeypatch, tmp_path):
    for wrong in ("dask://nowhere", "tcp://127.0.0.1:1", "dask://:1", "dask", "dask://a:1/b"):
        with pytest.raises(ValueError, match="engine must be dask://HOST:PORT"):
            mapped(square, [1], engine=wrong)
    monkeypatch.setattr(parallel, "PATIENCE", 0.5)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at dask://127\.0\.0\.1"):
        mapped(square, [1], engine=f"dask://127.0.0.1:{free_port()}")
    with cluster_in(tmp_path, n_workers=0) as empty:
        address = empty.engine.replace("dask://", "tcp://")
        with (
            Client(address, timeout=PATIENCE, set_as_default=False) as client,
            pytest.raises(EngineError, match="the scheduler has no workers"),
        ):
            parallel._check_workers(client, empty.engine, 0.1)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'keydyn\[distributed\]'"):
        mapped(square, [1], engine="dask://127.0.0.1:8786")


def test_another_version_on_a_worker_is_reported(cluster, monkeypatch):
    monkeypatch.setattr("keydyn.__version__", "9.9.9")
    with pytest.raises(EngineError, match=r"must have keydyn 9\.9\.9 installed, but answers '0"):
        mapped(square, [1], engine=cluster.engine)


def test_the_engine_is_light():
    """Every part of the package may use it, so it imports none of them."""
    code = "import sys, keydyn.parallel; print(sorted(m for m in sys.modules if m.startswith('keydyn')))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "['keydyn', 'keydyn.on_demand', 'keydyn.parallel']"
