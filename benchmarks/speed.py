"""Speed and memory, side by side with other libraries: `make bench`.

Every figure of the table is from one run on one machine; compare ratios, not runs. Before anything is timed
all libraries must reach the same log-likelihood from the same start. Each measurement is the median of
repeats by processor time, in a process of its own that is held to one core; where two threads are compared
with one, it is by the clock on two.
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
from pathlib import Path
from typing import Any

import numpy as np
import report

HERE = Path(__file__).parent
OUT = Path("out") / "bench"
CACHE = OUT / "numba-cache"
LIBRARIES = {"hmmlearn": ("hmmlearn", "hmmlearn scaling"), "dynamax": ("dynamax",)}
THREADED = {"c", "e", "score population"}

TITLES = {
    "a": "A: one sequence of 100,000",
    "b": "B: 5,000 sequences of 11",
    "c": "C: 200 models of 20 × 11",
    "d": "D: score each of 20,000 × 11",
    "e": "E: 4,096 models, same events",
    "f": "F: 3,000 events of 70 types",
    "score population": "score 200 models",
    "encoding": "encode labels and values",
    "online": "online, one event",
    "online batched": "online, 5,000 sessions",
    "online population": "online, 200 × 200 models",
}

# What a process that does nothing with them pays for the dependencies.
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
TELL = "\nimport time\nprint(time.process_time())\n"


def main() -> None:
    """Measure everything, print the table, write CSV and figure."""
    options = _options()
    OUT.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(CACHE, ignore_errors=True)
    libraries = [case for name, cases in LIBRARIES.items() if _installed(name) for case in cases]
    start_up = measure_start_up()
    check_agreement(libraries)
    rows = []
    for name in options.cases or TITLES:
        rows.append({"workload": TITLES[name], "library": "keydyn", **case(name)})
        others = libraries if name in "abcd" else []
        rows += [{"workload": TITLES[name], **case(f"peer {name}", library)} for library in others]
    rows += [
        {
            "workload": f"1,000,000 events, {int(n_types):,} types",
            "library": "keydyn",
            **case("growth", n_types),
        }
        for n_types in ([] if options.cases else ["50", "20000"])
    ]
    stream = {} if options.cases else case("population stream", str(options.users))
    report.show(rows, start_up, stream, OUT)


def case(name: str, *arguments: str) -> dict[str, Any]:
    """The numbers of one case, from a process of its own."""
    print(f"  {name} {' '.join(arguments)} …", file=sys.stderr, flush=True)
    code = [sys.executable, str(HERE / "measuring.py"), name, *arguments]
    numbers: dict[str, Any] = json.loads(_run(code, pinned=name not in THREADED).splitlines()[-1])
    return numbers


def measure_start_up() -> dict[str, float]:
    """Seconds of processor time: imports of the dependencies, a first fit that compiles, and a later one."""

    def seconds(code: str) -> float:
        return float(_run([sys.executable, "-c", code + TELL]))

    bare = statistics.median(seconds(BARE) for _ in range(5))
    compiling = seconds(FIRST_FIT)
    return {
        "bare": bare,
        "compiling": compiling,
        "cached": statistics.median(seconds(FIRST_FIT) for _ in range(5)),
    }


def check_agreement(libraries: list[str]) -> None:
    """All libraries reach the same log-likelihood from the same start, or nothing is timed."""
    for kind, reached in case("agreement", *libraries).items():
        for library, found in reached.items():
            if not np.allclose(found, reached["keydyn"], rtol=1e-9):
                raise SystemExit(f"{kind}: keydyn reaches {reached['keydyn']}, {library} {found}")
        print(f"{kind}: {', '.join(reached)} reach the same log-likelihood", file=sys.stderr)


def _installed(name: str) -> bool:
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed and left out", file=sys.stderr)
        return False
    return True


def _run(command: list[str], pinned: bool = True) -> str:
    """What it prints; held to one core and one thread if `pinned`."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(CACHE.resolve()), "JAX_PLATFORMS": "cpu"}
    if pinned:
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if pinned and before:
        os.sched_setaffinity(0, {max(before)})
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    finally:
        if before:
            os.sched_setaffinity(0, before)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000, help="users of the population stream")
    parser.add_argument("--cases", nargs="*", choices=list(TITLES), help="only these rows of the table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
