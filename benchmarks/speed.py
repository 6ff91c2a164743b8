"""Speed and memory, side by side with other libraries: `make bench`.

All figures in the table come from one run on one machine; compare ratios, not runs. Before anything is timed,
all libraries must reach the same log-likelihood from the same start. Each measurement is the median processor
time of repeats, in a process of its own that is pinned to one core; where two threads are compared with one,
it is the elapsed time on two cores. With `--against REVISION` keydyn's own rows are measured with the code of
that revision and with that of the working tree, in turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import report
from against import TURNS, compare
from running import THREADS, Bench, say
from start_up import start_up
from targets import target_of

LIBRARIES = {"hmmlearn": ("hmmlearn", "hmmlearn scaling"), "dynamax": ("dynamax",)}
THREADED = {"c", "e", "scoring"}

TITLES = {
    "a": "A: one sequence of 100,000",
    "b": "B: 5,000 sequences of 11",
    "c": "C: 200 models of 20 × 11",
    "d": "D: score each of 20,000 × 11",
    "e": "E: 4,096 models, same events",
    "f": "F: 3,000 events of 70 types",
    "family gamma": "A with gamma features",
    "family exponential": "A with exponential features",
    "family logstudent": "A with log-Student features",
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
    "decide import": "import of the verifier, a process",
    "decide first use": "first enrolment and verification, nothing compiled",
    "decide command": "`keydyn verify`, a process",
    "decide verify frame": "verify 60 keys, a data frame",
    "decide verify samples": "verify 60 keys, arrays",
    "decide enrol frame": "enrol 300 keys, a data frame",
    "decide enrol samples": "enrol 300 keys, `Samples`",
    "decide identify 1000": "identify among 1,000",
    "decide identify 10000": "identify among 10,000",
    "decide watch": "watch, one key",
    "read keystrokes": "read a CSV file, a keystroke",
    "read latencies": "read holds and latencies, a keystroke",
    "read pairs": "read pairs of keys, a keystroke",
    "read log": "read and pair a log, a keystroke",
    "read tables": "read the Aalto mobile tables, a keystroke",
}
START_UP, STREAM, PEOPLE = "start-up", "stream", "people"


def main() -> None:
    """Measure everything, print the table, write CSV and figure."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = options.cases or [START_UP, *TITLES, STREAM, PEOPLE]
    rows_wanted = [name for name in TITLES if name in wanted]
    if options.against:
        # Rows that older revisions have as well.
        both = {name: TITLES[name] for name in rows_wanted if not name.startswith("family")}
        compare(options.against, both, options.out, options.turns)
        return
    bench = Bench(options.out / "numba-cache")
    bench.forget()
    libraries = [case for name, cases in LIBRARIES.items() if _installed(name) for case in cases]
    parts = start_up(bench) if START_UP in wanted else None
    if any(name in "abcd" for name in rows_wanted):
        say("agreement")
        check_agreement(bench.case("agreement", *libraries))
    rows, ours = [], {}
    for name in rows_wanted:
        found = rows_of(bench, name, libraries)
        ours[name] = found[0]["ns"]
        found[0]["target"] = target_of(name, ours | {row["library"]: row["ns"] for row in found[1:]})
        rows += found
    stream = None
    if STREAM in wanted:
        say(f"{STREAM} of {options.users:,} users")
        stream = bench.case(STREAM, str(options.users))
    people = None
    if PEOPLE in wanted:
        say(f"{PEOPLE}: a population of {options.people:,}")
        people = bench.case(PEOPLE, str(options.people))
    report.show(rows, parts, stream, people, options.out)


def rows_of(bench: Bench, name: str, libraries: list[str]) -> list[dict[str, Any]]:
    """The rows of one workload: ours first, then those of other libraries that can do it."""
    say(name)
    rows = [{"workload": TITLES[name], "library": "keydyn", **bench.case(*name.split(maxsplit=1))}]
    if name in THREADED:
        rows[0] |= bench.case(THREADS, name)
    for library in libraries if name in "abcd" else ():
        say(f"{name}, {library}")
        rows.append({"workload": TITLES[name], **bench.case(f"peer {name}", library)})
    rows[0]["ratio"] = min(row["ns"] for row in rows[1:]) / rows[0]["ns"] if len(rows) > 1 else None
    return rows


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
    parser.add_argument("--people", type=int, default=10_000, help="people of the large population")
    parser.add_argument(
        "--cases", nargs="*", choices=[START_UP, *TITLES, STREAM, PEOPLE], help="only these; all by default"
    )
    parser.add_argument("--against", metavar="REVISION", help="a git revision to compare keydyn's rows with")
    parser.add_argument("--turns", type=int, default=TURNS, help="measurements of each row with --against")
    parser.add_argument("--out", type=Path, default=Path("out") / "bench", help="folder of the results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
