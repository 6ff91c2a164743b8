"""Runs measurements in processes of their own, which share a folder of compiled code."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src"
THREADS = "threads"
# Cases that compare two threads with one, or take all cores for a part of what they do.
TWO_CORES = (THREADS, "people")
BEGAN = time.monotonic()


class Bench:
    """Runs each case in a process of its own, with the code in `sources` and a folder of compiled code."""

    def __init__(self, cache: Path, sources: Path = SOURCES) -> None:
        self._cache, self._sources = cache.resolve(), sources.resolve()

    def forget(self) -> None:
        """Empty the folder of compiled code."""
        shutil.rmtree(self._cache, ignore_errors=True)

    def case(self, name: str, *arguments: str) -> dict[str, Any]:
        """The numbers of one case of `cases.py`."""
        command = [sys.executable, str(HERE / "measuring.py"), name, *arguments]
        numbers: dict[str, Any] = json.loads(self.output(command, name not in TWO_CORES).splitlines()[-1])
        return numbers

    def output(self, command: list[str], pinned: bool = True, folder: Path | None = None) -> str:
        """What a command prints; it is limited to one core and one thread if `pinned`."""
        environment = os.environ | {"NUMBA_CACHE_DIR": str(self._cache), "JAX_PLATFORMS": "cpu"}
        others = filter(None, [os.environ.get("PYTHONPATH")])
        environment["PYTHONPATH"] = os.pathsep.join([str(self._sources), *others])
        # Python's own cache is on, as it is by default.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if pinned:
            environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with _on_one_core() if pinned else contextlib.nullcontext():
            # Its progress and error messages go to our own standard error.
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, env=environment, check=False, cwd=folder
            )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        return done.stdout


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    """Processes started meanwhile are limited to the last core, where the system can do that."""
    if not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def say(text: str) -> None:
    """A line of progress, with the minutes and seconds since the beginning."""
    minutes, seconds = divmod(int(time.monotonic() - BEGAN), 60)
    print(f"  {minutes}:{seconds:02} {text}", file=sys.stderr, flush=True)


def shown(ns: float) -> str:
    """To three figures, without an exponent."""
    return f"{ns:,.0f}" if ns >= 100 else f"{ns:.3g}"
