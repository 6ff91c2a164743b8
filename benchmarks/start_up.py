"""What a process pays before it can work, part by part: with an empty cache and with a full one.

`python benchmarks/start_up.py BEGAN PART …` is one such process. It prints, as a line of JSON, the seconds of
each part by processor time and by the clock; `BEGAN` is when it was started, in seconds since the epoch.
"""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from running import Bench, say

REPEATS = 5
# Models that share their event sequences, enough to go side by side in lanes.
N_IN_LANES = 128
USUAL = ("dependencies", "import", "fit", "score", "predict")
TARGET, GOAL = 15.0, 10.0
TARGET_LANES, TARGET_LATER, TARGET_DEMO = 12.0, 0.5, 30.0
DEPENDENCIES = (
    "joblib",
    "numba",
    "numpy",
    "pandas",
    "safetensors.numpy",
    "scipy.optimize",
    "scipy.sparse.csgraph",
    "scipy.special",
    "sklearn.base",
    "sklearn.utils.validation",
)
DEMO = "from keydyn.cli import main; main()"


class Line(NamedTuple):
    """Seconds by processor time and by the clock; the target, where there is one."""

    what: str
    processor_s: float
    clock_s: float
    target_s: float | None = None


def start_up(bench: Bench, with_demo: bool = True) -> list[Line]:
    """All parts of start-up, beginning with an empty folder of compiled code."""
    say("start-up: the first process compiles, which takes about a minute")
    bench.forget()
    first = _process(bench, *USUAL, "lanes", "online")
    later = [_process(bench, *USUAL, "online") for _ in range(REPEATS)]
    lines = [Line(TITLES[part], *first[part]) for part in USUAL]
    lines.append(Line(f"together (goal {GOAL:g} s)", *_sum(first, USUAL), TARGET))
    lines.append(Line(TITLES["lanes"], *first["lanes"], TARGET_LANES))
    lines.append(Line(TITLES["online"], *first["online"]))
    over = [part for part in (*USUAL, "online") if part != "dependencies"]
    for what, parts, target in (
        ("a later process: the dependencies", USUAL[:1], None),
        ("a later process: all else but lanes", over, TARGET_LATER),
    ):
        sums = [_sum(numbers, parts) for numbers in later]
        processor, clock = (statistics.median(times) for times in zip(*sums, strict=True))
        lines.append(Line(what, processor, clock, target))
    return [*lines, _demo(bench)] if with_demo else lines


def markdown(lines: list[Line]) -> str:
    """The parts as a table."""
    head = "| start-up | processor time, s | by the clock, s | target, s |\n| --- | ---: | ---: | ---: |\n"
    return head + "".join(f"| {' | '.join(cells(line))} |\n" for line in lines)


def cells(line: Line) -> list[str]:
    """A line as texts."""
    target = f"{line.target_s:g}" if line.target_s is not None else "–"
    return [line.what, f"{line.processor_s:.2f}", f"{line.clock_s:.2f}", target]


def _process(bench: Bench, *parts: str) -> dict[str, tuple[float, float]]:
    # The interpreter's own start is part of the first part.
    command = [sys.executable, __file__, repr(time.time()), *parts]
    numbers: dict[str, tuple[float, float]] = json.loads(bench.output(command).splitlines()[-1])
    return numbers


def _sum(numbers: dict[str, tuple[float, float]], parts: Any) -> tuple[float, float]:
    return sum(numbers[part][0] for part in parts), sum(numbers[part][1] for part in parts)


def _demo(bench: Bench) -> Line:
    """`keydyn demo` as a user runs it the first time: on all cores, in a folder that is then removed."""
    say("start-up: keydyn demo with an empty cache")
    bench.forget()
    before, began = _children(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        bench.output([sys.executable, "-c", DEMO, "demo"], pinned=False, folder=Path(folder))
    clock = time.perf_counter() - began
    return Line("`keydyn demo` with an empty cache", _children() - before, clock, TARGET_DEMO)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _dependencies(known: dict[str, Any]) -> None:
    for name in DEPENDENCIES:
        importlib.import_module(name)
    import numpy as np

    known["X"] = np.exp(np.random.default_rng(0).normal(5.0, 0.3, (60, 2)))


def _import(known: dict[str, Any]) -> None:
    from keydyn import POHMM, Sequences, fit_many

    known |= {"POHMM": POHMM, "Sequences": Sequences, "fit_many": fit_many}


def _fit(known: dict[str, Any]) -> None:
    known["model"] = known["POHMM"](max_iter=3).fit(known["X"], events=list("abc" * 20), lengths=[30, 30])


def _score(known: dict[str, Any]) -> None:
    known["model"].score(known["X"], events=list("abc" * 20))


def _predict(known: dict[str, Any]) -> None:
    known["model"].predict(known["X"], events=list("abc" * 20))


def _online(known: dict[str, Any]) -> None:
    known["model"].online().update(known["X"][0], "a")


def _lanes(known: dict[str, Any]) -> None:
    X, events = known["X"], list("abc" * 20)
    data = [known["Sequences"].from_arrays(X + k, events, [30, 30]) for k in range(N_IN_LANES)]
    known["fit_many"](known["POHMM"](max_iter=3), data)


PARTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "dependencies": _dependencies,
    "import": _import,
    "fit": _fit,
    "score": _score,
    "predict": _predict,
    "online": _online,
    "lanes": _lanes,
}
TITLES = {
    "dependencies": "importing the dependencies",
    "import": "importing keydyn",
    "fit": "first `fit`",
    "score": "first `score`",
    "predict": "first `predict`",
    "online": "first online `update`",
    "lanes": f"first `fit_many` of {N_IN_LANES} models over the same events",
}


def main() -> None:
    """One process: the parts named, one after the other."""
    warnings.simplefilter("ignore")
    processor, clock = 0.0, float(sys.argv[1])
    known: dict[str, Any] = {}
    found = {}
    for part in sys.argv[2:]:
        PARTS[part](known)
        now, on_clock = time.process_time(), time.time()
        found[part] = (now - processor, on_clock - clock)
        processor, clock = now, on_clock
    print(json.dumps(found))


if __name__ == "__main__":
    main()
