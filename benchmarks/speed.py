"""Speed and memory, side by side with other libraries: `make bench`.

All figures in the table come from one run on one machine; compare ratios, not runs. Before anything is timed,
all libraries must reach the same log-likelihood from the same start. Each measurement is the median processor
time of repeats, in a process of its own that is pinned to one core; where two threads are compared with one,
it is the elapsed time on two cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import report
from targets import target_of

HERE = Path(__file__).parent
LIBRARIES = {"hmmlearn": ("hmmlearn", "hmmlearn scaling"), "dynamax": ("dynamax",)}
THREADED = {"c", "e", "scoring"}

TITLES = {
    "a": "A: one sequence of 100,000",
    "b": "B: 5,000 sequences of 11",
    "c": "C: 200 models of 20 × 11",
    "d": "D: score each of 20,000 × 11",
    "e": "E: 4,096 models, same events",
    "f": "F: 3,000 events of 70 types",
    "growth 50": "1,000,000 events, 50 types",
    "growth 20000": "1,000,000 events, 20,000 types",
    "scoring": "score 200 models",
    "encoding": "encode labels and values",
    "online": "online, one event",
    "online codes": "online, 5,000 sessions, codes",
    "online texts": "online, 5,000 sessions, texts",
    "online list": "online, 5,000 sessions, list",
    "online objects": "online, 5,000 sessions, objects",
    "online population": "online, 200 × 200 models",
}
START_UP, STREAM = "start-up", "stream"

# What importing the dependencies costs a process that does nothing with them.
BARE = """
import joblib, numba, numpy, pandas, safetensors.numpy, scipy.optimize, scipy.sparse.csgraph, scipy.special
import sklearn.base, sklearn.utils.validation
"""
FIRST_FIT = """
import warnings
import numpy as np
from keydyn import POHMM
warnings.simplefilter("ignore")
X = np.exp(np.random.default_rng(0).normal(5.0, 0.3, (60, 2)))
model = POHMM(max_iter=3).fit(X, events=list("abc" * 20), lengths=[30, 30])
model.score(X, events=list("abc" * 20))
model.online().update(X[0], "a")
"""
PRINT_TIME = "\nimport time\nprint(time.process_time())\n"


def main() -> None:
    """Measure everything, print the table, write CSV and figure."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.out / "numba-cache")
    wanted = options.cases or [START_UP, *TITLES, STREAM]
    rows_wanted = [name for name in TITLES if name in wanted]
    libraries = [case for name, cases in LIBRARIES.items() if _installed(name) for case in cases]
    start_up = bench.start_up() if START_UP in wanted else None
    if any(name in "abcd" for name in rows_wanted):
        check_agreement(bench.case("agreement", *libraries))
    rows, ours = [], {}
    for name in rows_wanted:
        found = rows_of(bench, name, libraries)
        ours[name] = found[0]["ns"]
        found[0]["target"] = target_of(name, ours | {row["library"]: row["ns"] for row in found[1:]})
        rows += found
    stream = bench.case(STREAM, str(options.users)) if STREAM in wanted else None
    report.show(rows, start_up, stream, options.out)


def rows_of(bench: Bench, name: str, libraries: list[str]) -> list[dict[str, Any]]:
    """The rows of one workload: ours first, then those of other libraries that can do it."""
    rows = [{"workload": TITLES[name], "library": "keydyn", **bench.case(*name.split(maxsplit=1))}]
    if name in "abcd":
        rows += [{"workload": TITLES[name], **bench.case(f"peer {name}", library)} for library in libraries]
    rows[0]["ratio"] = min(row["ns"] for row in rows[1:]) / rows[0]["ns"] if len(rows) > 1 else None
    return rows


class Bench:
    """Runs each case in a process of its own; all share a folder of compiled code, empty at first."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache.resolve()
        self._began = time.monotonic()
        shutil.rmtree(cache, ignore_errors=True)

    def case(self, name: str, *arguments: str) -> dict[str, Any]:
        """The numbers of one case."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"  {minutes}:{seconds:02} {name} {' '.join(arguments)}", file=sys.stderr, flush=True)
        code = [sys.executable, str(HERE / "measuring.py"), name, *arguments]
        pinned = name not in THREADED
        numbers: dict[str, Any] = json.loads(self._run(code, pinned).splitlines()[-1])
        return numbers

    def start_up(self) -> dict[str, float]:
        """Seconds of processor time: imports of the dependencies, a first fit that compiles, a later one."""
        print(
            "  0:00 start-up: the first process compiles, which takes about a minute",
            file=sys.stderr,
            flush=True,
        )
        bare = statistics.median(self._seconds(BARE) for _ in range(5))
        compiling = self._seconds(FIRST_FIT)
        cached = statistics.median(self._seconds(FIRST_FIT) for _ in range(5))
        return {"bare": bare, "compiling": compiling, "cached": cached}

    def _seconds(self, code: str) -> float:
        return float(self._run([sys.executable, "-c", code + PRINT_TIME], pinned=True))

    def _run(self, command: list[str], pinned: bool) -> str:
        """What the command prints; it is limited to one core and one thread if `pinned`."""
        environment = os.environ | {"NUMBA_CACHE_DIR": str(self._cache), "JAX_PLATFORMS": "cpu"}
        # Python's own cache is on, as it is by default.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if pinned:
            environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        if pinned and before:
            os.sched_setaffinity(0, {max(before)})
        try:
            # Its progress and error messages go to our own standard error.
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
        finally:
            if before:
                os.sched_setaffinity(0, before)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        return done.stdout


def check_agreement(found: dict[str, dict[str, list[float]]]) -> None:
    """Stop unless all libraries reach the same log-likelihood from the same start."""
    for kind, reached in found.items():
        for library, values in reached.items():
            if not np.allclose(values, reached["keydyn"], rtol=1e-9):
                raise SystemExit(f"{kind}: keydyn reaches {reached['keydyn']}, {library} {values}")
        print(f"       {kind}: {', '.join(reached)} reach the same log-likelihood", file=sys.stderr)


def _installed(name: str) -> bool:
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed and is left out", file=sys.stderr)
        return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000, help="users of the population stream")
    parser.add_argument(
        "--cases", nargs="*", choices=[START_UP, *TITLES, STREAM], help="only these; all by default"
    )
    parser.add_argument("--out", type=Path, default=Path("out") / "bench", help="folder of the results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
