"""Decisions as programs ask for them: ns per call, and what a process pays before its first one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import measured

KEYS, ENROLLED = 60, 5
PROCESSES = 5
IMPORT = "from keydyn.decisions import Verifier"
COMMAND = "from keydyn.cli import main; main()"
FIRST_USE = """
from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
typing, verifier = make_typists(1, 6, "free", 60), Verifier.shipped()
verifier.enrol("ada", typing[:300])
verifier.verify("ada", typing[300:])
"""
# The largest amount of memory of a process is in kilobytes, but in bytes on macOS.
PER_MEGABYTE = 1024.0**2 if sys.platform == "darwin" else 1024.0


def decide(what: str) -> dict[str, float]:
    """One of the rows, by its name."""
    if what in PROCESS:
        return PROCESS[what]()
    from keydyn.datasets import make_typists
    from keydyn.decisions import Verifier

    typing = make_typists(1, ENROLLED + 1, "free", KEYS)
    before, asked = typing[: ENROLLED * KEYS], typing[ENROLLED * KEYS :].reset_index(drop=True)
    verifier = Verifier.shipped()
    verifier.enrol("ada", before)
    return CALLS[what](verifier, before, asked)


def _verify_frame(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
    return measured(lambda: verifier.verify("ada", asked), 1)


def _verify_samples(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
    from keydyn.keystrokes import one_sample

    keys, press, release = asked["keyname"].tolist(), *(asked[name].to_numpy() for name in asked.columns[-2:])
    # A sample keeps what was found about it, so that each call has a new one.
    return measured(lambda: verifier.verify("ada", one_sample(keys, press, release)), 1)


def _enrol_frame(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
    return measured(lambda: verifier.enrolled(before), 1)


def _enrol_samples(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
    from keydyn.decisions import recorded_samples

    samples = recorded_samples(before)
    return measured(lambda: verifier.enrolled(samples), 1)


def _identify(n_people: int) -> Callable[[Any, Any, Any], dict[str, float]]:
    def run(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
        from keydyn.decisions import Enrolled, Fingerprints, Verifier

        templates = map(verifier.pattern.carrying, verifier.background.population.draw(n_people, 0))
        people = {str(n): Enrolled(one, 5, 300, Fingerprints.none()) for n, one in enumerate(templates)}
        many = Verifier.of(verifier.background, people=people, learning=False)
        return measured(lambda: many.identify(asked), 1)

    return run


def _watch(verifier: Any, before: Any, asked: Any) -> dict[str, float]:
    keys, press = asked["keyname"].tolist(), asked["timepress"].to_numpy()
    values = np.column_stack([np.diff(press, prepend=np.nan), asked["timerelease"].to_numpy() - press])
    watch = verifier.watch("ada")

    def run() -> None:
        watch.restart()
        for n in range(KEYS):
            watch.update_values(values[n : n + 1], keys[n : n + 1])

    return measured(run, KEYS)


def _import() -> dict[str, float]:
    return _process([IMPORT])


def _first_use() -> dict[str, float]:
    """With nothing compiled: whole processes, each with an empty cache, the lesser of two."""
    times = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            times.append(_child([FIRST_USE], {**os.environ, "NUMBA_CACHE_DIR": folder})[0])
    return {"ns": min(times) * 1e9}


def _command() -> dict[str, float]:
    from keydyn.datasets import make_typists
    from keydyn.decisions import Verifier

    typing = make_typists(1, ENROLLED + 1, "free", KEYS).assign(user="ada")
    with tempfile.TemporaryDirectory() as folder:
        verifier = Verifier.shipped()
        verifier.enrol("ada", typing[: ENROLLED * KEYS])
        verifier.save(Path(folder) / "people")
        typing[ENROLLED * KEYS :].to_csv(Path(folder) / "asked.csv", index=False)
        models = ["--models", f"{folder}/people", "--user", "ada"]
        return _process([COMMAND, "verify", f"{folder}/asked.csv", *models])


def _process(arguments: list[str]) -> dict[str, float]:
    """Processor time and memory of whole processes, the least of several; the first one fills the caches."""
    first, *later = (_child(arguments) for _ in range(1 + PROCESSES))
    time, memory = (min(each) for each in zip(*later, strict=True))
    return {"ns": time * 1e9, "first_call_s": max(0.0, first[0] - time), "peak_mb": memory}


def _child(arguments: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Processor time (s) and largest memory (MB) of one process that runs this program."""
    command = [sys.executable, "-c", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / PER_MEGABYTE


CALLS: dict[str, Callable[[Any, Any, Any], dict[str, float]]] = {
    "verify frame": _verify_frame,
    "verify samples": _verify_samples,
    "enrol frame": _enrol_frame,
    "enrol samples": _enrol_samples,
    "identify 1000": _identify(1_000),
    "identify 10000": _identify(10_000),
    "watch": _watch,
}
PROCESS: dict[str, Callable[[], dict[str, float]]] = {
    "import": _import,
    "first use": _first_use,
    "command": _command,
}
