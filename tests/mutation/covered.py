"""Which tests are asked about a change: those that call the changed function, the quickest first.

Each file of tests runs once without any change, and it is noted which functions of the source each test calls
and how long it takes. What is compiled cannot be watched: tests that are quick enough without the compiler
run without it, too. To ask those about a change of compiled code spares compiling it again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.changes import Change

# Of each area of the source, the files and folders of tests that may notice a change.
MODEL = (
    "model/engine",
    "model/ask",
    "model/fit",
    "model/watch",
    "model/theta",
    "model/families",
    "model/check",
    "model/relatives/test_enumeration.py",
    "model/relatives/test_reduction.py",
    "model/data",
    "model/test_missing.py",
    "model/test_degenerate.py",
    "model/test_model_files.py",
    "model/test_summary.py",
)
SERVICE = (
    "service/people",
    "service/http",
    "service/wire",
    "service/attacks",
    "service/jobs",
    "service/live/test_socket_protocol.py",
    "service/live/test_watching_over_sockets.py",
    "service/storage/test_audit.py",
    "service/test_accounts.py",
    "service/test_metrics.py",
)
AREAS: dict[str, tuple[str, ...]] = {
    "model/engine": MODEL,
    "model/fit": MODEL,
    "population": ("population",),
    "decisions": ("decisions",),
    "service/people": SERVICE,
    "service/http": (*SERVICE, "service/pages/test_served_files.py"),
}
# Those that may notice a change of compiled code without the compiler, as far as they are quick then.
WITHOUT_COMPILER: dict[str, tuple[str, ...]] = {
    "model/engine": MODEL,
    "model/fit": MODEL,
    "population": (
        "population/score",
        "population/stream/test_stream.py",
        "population/person/test_person.py",
        "population/learn/test_components.py",
    ),
    "decisions": ("decisions/liveness", "decisions/calibration/test_sequential.py"),
}
# Seconds of processor time that the tests asked about one change may take without it, and after which a test
# is slow: those are asked last.
BUDGET, SLOW = 35.0, 1.5


@dataclass(frozen=True)
class Run:
    """What one test did when nothing was changed: its seconds, and the functions it called, by first line."""

    seconds: float
    called: dict[str, list[int]]


@dataclass
class Covered:
    """What is known about tests, with the compiler and without."""

    runs: dict[bool, dict[str, Run]] = field(default_factory=lambda: {False: {}, True: {}})

    def chosen(
        self,
        change: Change,
        users: frozenset[str],
        without_compiler: bool = False,
    ) -> list[str]:
        """The quickest tests that call what was changed; for compiled code, that call a module using it.

        Those of the file that bears the name of the changed one come first, then those of its folder, then
        others, and the slow ones last.
        """
        runs = self.runs[without_compiler]
        if change.compiled and not without_compiler:
            fitting = {test: run for test, run in runs.items() if not users.isdisjoint(run.called)}
        elif change.function is None:
            fitting = {test: run for test, run in runs.items() if change.file in run.called}
        else:
            fitting = {
                test: run for test, run in runs.items() if change.function in run.called.get(change.file, ())
            }
            # What is called when a module is imported is called by no test.
            fitting = fitting or {test: run for test, run in runs.items() if change.file in run.called}
        own, total = own_tests(change.file), 0.0
        found: list[str] = []
        folder = own.rpartition("/")[0] + "/"
        for test, run in sorted(
            fitting.items(),
            key=lambda item: (
                item[1].seconds > SLOW,
                not item[0].startswith(own + "::"),
                not item[0].startswith(folder),
                item[1].seconds,
            ),
        ):
            total += run.seconds
            if found and total > BUDGET:
                break
            found.append(test)
        return found


def own_tests(file: str) -> str:
    """The file of tests that bears the name of a file of the source, whether there is one or not."""
    path = Path("tests", *Path(file).parts[2:])
    return path.with_name(f"test_{path.name}").as_posix()


def files_of(tests: Path, areas: list[str], without_compiler: bool = False) -> list[str]:
    """The files of tests of some areas, below the folder of tests."""
    folders, found = WITHOUT_COMPILER if without_compiler else AREAS, dict[str, None]()
    for name in dict.fromkeys(name for area in areas for name in folders.get(area, ())):
        path = tests / name
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            found[file.relative_to(tests).as_posix()] = None
    return list(found)


def kept_at(folder: Path, test_file: Path, without_compiler: bool) -> Path:
    """Where it is kept what the tests of a file did; elsewhere when the file changes."""
    digest = hashlib.sha256(test_file.read_bytes()).hexdigest()[:16]
    return folder / f"{test_file.stem}-{digest}{'-without-compiler' * without_compiler}.json"


def write_runs(path: Path, runs: dict[str, Run]) -> None:
    """To JSON, complete or not at all."""
    half = path.with_suffix(".half")
    half.write_text(json.dumps({test: [run.seconds, run.called] for test, run in runs.items()}))
    half.rename(path)


def read_runs(path: Path) -> dict[str, Run]:
    """What `write_runs` wrote."""
    return {test: Run(*values) for test, values in json.loads(path.read_text()).items()}


class Watching:
    """Notes which functions of a folder are called, in all threads (for `sys.settrace`)."""

    def __init__(self, tree: Path) -> None:
        self._source, self._start = str(tree / "src") + "/", len(str(tree)) + 1
        self._codes: dict[int, object] = {}

    def __call__(self, frame: object, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code  # type: ignore[attr-defined]
            self._codes[id(code)] = code

    def called(self) -> dict[str, list[int]]:
        """The functions called since the last time, by file."""
        codes, self._codes = self._codes, {}
        found: dict[str, list[int]] = defaultdict(list)
        for code in codes.values():
            name: str = code.co_filename  # type: ignore[attr-defined]
            if name.startswith(self._source):
                found[name[self._start :]].append(code.co_firstlineno)  # type: ignore[attr-defined]
        return dict(found)
