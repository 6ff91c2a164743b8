"""A copy of the tree in which a change is made and its tests run; the tree itself is never touched."""

from __future__ import annotations

import ast
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import event

from tests.mutation.changes import Change
from tests.mutation.covered import (
    SLOW,
    Covered,
    Run,
    Watching,
    files_of,
    kept_at,
    own_tests,
    read_runs,
    write_runs,
)

# What tests load from elsewhere: loaded once, and then there in every process that is forked from this one.
LOADED = """
    pandas scipy.stats scipy.optimize scipy.integrate scipy.special sklearn.base
    sklearn.utils.estimator_checks sklearn.linear_model pyarrow.parquet hypothesis.strategies
    hypothesis.extra.numpy _hypothesis_pytestplugin xdist fastapi uvicorn sqlalchemy alembic.command
    cryptography.fernet cryptography.hazmat.primitives.ciphers prometheus_client httpx msgspec
    websockets.sync.client typer.testing rich.console matplotlib.figure safetensors.numpy joblib
    pydantic psycopg fastapi_offline distributed
"""
# Seconds of processor time, and of any time, after which tests that do not end have noticed a change: many
# times what they take. The second of each is for all tests of some files and for what is compiled again.
PROCESSOR_LIMITS, LIMITS = (150, 600), (600.0, 900.0)
# Seconds of processor time after which a test is too slow to be asked, with the compiler and without, and how
# many of those a file may have.
LONGEST, FEW = (10.0, SLOW), 3


class Scratch:
    """The copy, its compiled code, and what is known about its tests when nothing is changed."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.tree = folder, folder / "tree"
        self.cache, self.own_cache = folder / "cache", folder / "cache-of-a-change"
        self.log, self.covered = folder / "last.log", Covered()
        # The tests that have noticed changes of a file are asked first about others.
        self.noticed: dict[str, set[str]] = {}
        _copy(root, self.tree)
        if not self.cache.exists():
            self._compile()
        for name in LOADED.split():
            with contextlib.suppress(ImportError):
                import_module(name)

    def _compile(self) -> None:
        """Compile what many tests use, for all changes that leave it valid."""
        half = self.folder / "half-compiled"
        half.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths = f"{self.tree / 'src'}{os.pathsep}{self.tree}"
        environment = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(half)}
        subprocess.run([sys.executable, "-m", "tests.compiled"], cwd=self.tree, env=environment, check=True)
        half.rename(self.cache)

    def learn(self, areas: list[str]) -> None:
        """Run the tests of some areas without a change, and note what they call; what is known is kept."""
        kept = self.folder / "covered"
        kept.mkdir(exist_ok=True)
        names = [(name, False) for name in files_of(self.tree / "tests", areas)]
        names += [(name, True) for name in files_of(self.tree / "tests", areas, without_compiler=True)]
        for place, (name, without_compiler) in enumerate(names, 1):
            path = kept_at(kept, self.tree / "tests" / name, without_compiler)
            if not path.exists():
                print(f"what the tests call: {place}/{len(names)} {name}", flush=True)
                listening = _Listening(self.folder / "failed", without_compiler, learned=path)
                self._ask([f"tests/{name}"], self.cache, listening)
                if not path.exists():
                    # They did not end: a test of threads may wait for ever if it is stopped for being slow.
                    write_runs(path, {})
            self.covered.runs[without_compiler] |= read_runs(path)

    def outcome(self, change: Change, thorough: bool = False) -> tuple[str, str]:
        """What becomes of a change: noticed, or survived; and the test that noticed it first.

        About compiled code those tests are asked that are quick without the compiler, and others only if
        there are none. If it is `thorough`, these others are asked in any case, and the whole file that bears
        the name of the changed one.
        """
        users = users_of(self.tree / "src", change.file)
        own = [own_tests(change.file)] if thorough and (self.tree / own_tests(change.file)).exists() else []
        stages = [(False, [*own, *self.covered.chosen(change, users)])]
        if change.compiled:
            interpreted = self.covered.chosen(change, users, without_compiler=True)
            stages = [(True, interpreted), *(stages if thorough or not interpreted else [])]
        if not any(tests for _, tests in stages):
            return "survived", "no test calls it"
        with self._changed(change, users):
            for without_compiler, tests in stages:
                if tests:
                    first = self.noticed.setdefault(change.file, set())
                    listening = _Listening(self.folder / "failed", without_compiler, tests, first)
                    is_long = thorough or change.compiled > without_compiler
                    said = self._ask(tests, self.own_cache, listening, is_long)
                    if said is not None:
                        first.add(said)
                        return "noticed", said
        return "survived", ""

    @contextlib.contextmanager
    def _changed(self, change: Change, users: frozenset[str]) -> Iterator[None]:
        """The change is made. The file keeps its time, so that all other compiled code remains valid."""
        path = self.tree / change.file
        source, times = path.read_bytes(), path.stat()
        _link(self.cache, self.own_cache)
        if change.compiled:
            _remove_compiled(self.own_cache, users)
        try:
            path.write_bytes(change.applied(source))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            _without_byte_code(path)
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            _without_byte_code(path)
            shutil.rmtree(self.own_cache, ignore_errors=True)

    def _ask(self, tests: list[str], cache: Path, listening: _Listening, is_long: bool = True) -> str | None:
        """Run tests in a process of its own; the first that failed, or None if none did."""
        listening.failed.unlink(missing_ok=True)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        code = _forked(lambda: _run_tests(self.tree, files, cache, listening), is_long, self.log)
        if code in (None, -signal.SIGXCPU):
            return "it took too long"
        if code == 0 or listening.learned is not None:
            return None
        return listening.failed.read_text() if listening.failed.exists() else f"pytest ended with {code}"


class _Compiling(event.Listener):
    """Seconds of processor time spent on compiling, which only the first test that needs it takes."""

    def __init__(self) -> None:
        self.depth, self.seconds, self._began = 0, 0.0, 0.0

    def on_start(self, _: object) -> None:
        if self.depth == 0:
            self._began = time.process_time()
        self.depth += 1

    def on_end(self, _: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.process_time() - self._began


class _Listening:
    """A plugin of pytest: it runs only these tests, some of them first, and notes what becomes of them."""

    def __init__(
        self,
        failed: Path,
        without_compiler: bool,
        tests: Collection[str] | None = None,
        first: Collection[str] = (),
        learned: Path | None = None,
    ) -> None:
        self.failed, self.without_compiler, self.learned = failed, without_compiler, learned
        self.tests, self.first = tests, first
        self.runs: dict[str, Run] = {}
        self.bad: set[str] = set()
        self.watching: Watching | None = None
        self.compiling = _Compiling()
        self.slow = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.tests is not None:
            order = {test: place for place, test in enumerate(self.tests)}
            last = len(order)
            places = {id(item): self._place(item.nodeid, order) for item in items}
            items[:] = [item for item in items if places[id(item)] < last]
            items.sort(key=lambda item: (item.nodeid not in self.first, places[id(item)]))

    def _place(self, test: str, order: dict[str, int]) -> int:
        """That of a test or of its file among those to be run; after them, if it is not to be run."""
        return order.get(test, order.get(test.partition("::")[0], len(order)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note what a test calls, and how long it takes."""
        if self.learned is None:
            return (yield)
        if self.watching is None:
            self.watching = Watching(Path.cwd())
            event.register("numba:compile", self.compiling)  # type: ignore[no-untyped-call]
        self.watching.called()
        began, compiling = time.process_time(), self.compiling.seconds
        threading.settrace(self.watching)
        sys.settrace(self.watching)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            seconds = time.process_time() - began - (self.compiling.seconds - compiling)
            self.runs[item.nodeid] = Run(seconds, self.watching.called())
            if self.slow > FEW:
                item.session.shouldstop = "the other tests of this file are slow, too"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """What a test shares with others may take its time, but not without the compiler."""
        with self._limited(self.without_compiler):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        with self._limited():
            return (yield)

    @contextlib.contextmanager
    def _limited(self, wanted: bool = True) -> Iterator[None]:
        """One that takes long fails, and is not chosen."""
        if self.learned is None or not wanted:
            yield
            return
        signal.signal(signal.SIGVTALRM, self._too_slow)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST[self.without_compiler])
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)

    def _too_slow(self, *_: object) -> None:
        if self.compiling.depth:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST[self.without_compiler])
            return
        self.slow += 1
        pytest.fail("too slow to be asked about changes")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.bad.add(report.nodeid)
        if report.failed:
            self.failed.write_text(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.write_text(f"{report.nodeid} as a whole")

    def pytest_sessionfinish(self) -> None:
        if self.learned is not None:
            write_runs(self.learned, {test: run for test, run in self.runs.items() if test not in self.bad})


def _run_tests(tree: Path, files: list[str], cache: Path, listening: _Listening) -> int:
    """In a process that has been forked: forget the tree that the program was started from, and run."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "keydyn")]:
        del sys.modules[name]
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    own: dict[str, Any] = {
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_DISABLE_JIT": str(int(listening.without_compiler)),
    }
    os.environ.update(own, PYTHONPATH=f"{tree / 'src'}{os.pathsep}{tree}", PYTHONDONTWRITEBYTECODE="")
    numba.config.CACHE_DIR, numba.config.DISABLE_JIT = str(cache), int(listening.without_compiler)
    # That of the changed file is removed, and all other spares each process a second.
    sys.dont_write_bytecode = False
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-m", "not slow"]
    # What is loaded already cannot be prepared for readable messages, which are not needed here.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-profile", "unshrunk"]
    # Where compiled code divides by zero without a word, NumPy's numbers warn.
    options += ["-W", "ignore::RuntimeWarning"] if listening.without_compiler else []
    options += [] if listening.learned else ["-x"]
    return int(pytest.main([*options, *files], plugins=[listening]))


def _forked(run: Callable[[], int], is_long: bool, log: Path) -> int | None:
    """Run in a process that has all modules of this one; its exit code, or None if it took too long."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_LIMITS[is_long], resource.RLIM_INFINITY))
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code = 70
        try:
            code = run()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + LIMITS[is_long]
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            _end_group(process)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _end_group(process)
    os.waitpid(process, 0)
    return None


def _end_group(process: int) -> None:
    """End what a process has started and left behind, and itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _copy(root: Path, tree: Path) -> None:
    """Make all files of the copy those of the working tree, also where a run was stopped amid a change."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        ours, copied = root / name, tree / name
        if ours.is_file() and not (copied.exists() and copied.read_bytes() == ours.read_bytes()):
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ours, copied)


def _link(folder: Path, other: Path) -> None:
    """The same files under other names: what is removed there stays here."""
    shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(folder, other, copy_function=os.link)


def _remove_compiled(folder: Path, files: frozenset[str]) -> None:
    """Remove the compiled functions of these files, by their names."""
    names = {Path(file).stem for file in files}
    for path in folder.rglob("*.nbc"):
        if path.name.partition(".")[0].split("-")[0] in names:
            path.unlink()


def _without_byte_code(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


@cache
def users_of(source: Path, file: str) -> frozenset[str]:
    """The files that import a file, directly or through others, and itself: they may contain its code."""
    imports: dict[str, set[str]] = {}
    files: dict[str, str] = {}
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        files[module] = path.relative_to(source.parent).as_posix()
        imports[module] = named = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
    found = {module for module, path in files.items() if path == file}
    while more := {module for module, named in imports.items() if named & found} - found:
        found |= more
    return frozenset(files[module] for module in found)
