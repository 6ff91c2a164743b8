"""One table at the end of `make test-all`: what ran, how many cases, how long, and what was left out.

Each run of pytest for which `KEYDYN_TESTS_SUMMARY` names a file leaves its counts there, and
`python -m tests.summary TITLE=FILE ...` shows them side by side.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VARIABLE = "KEYDYN_TESTS_SUMMARY"
NOTHING = {"cases": 0, "failed": 0, "left_out": 0, "seconds": 0.0}
Counts = dict[str, dict[str, float]]


def group_of(test: str) -> str:
    """The folder of a test below `tests/`; of those in no folder, `tests`."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "tests"


def counted(stats: dict[str, list[Any]]) -> Counts:
    """The cases, failures, cases left out and seconds of each group, from what a reporter of pytest has."""
    found: Counts = defaultdict(lambda: dict(NOTHING))
    columns = {"passed": "cases", "failed": "failed", "error": "failed", "skipped": "left_out"}
    for outcome, reports in stats.items():
        for report in reports:
            if not hasattr(report, "duration"):
                continue
            row = found[group_of(report.nodeid)]
            row["seconds"] += report.duration
            if outcome in columns:
                row[columns[outcome]] += 1
    return dict(found)


def keep(stats: dict[str, list[Any]], left_out: list[str]) -> None:
    """Write them to the file that the environment names, if it names one."""
    if path := os.environ.get(VARIABLE):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps({"groups": counted(stats), "left_out": left_out}))


def table_of(runs: dict[str, dict[str, Any]]) -> str:
    """The groups of all runs with their counts, a total, and a line per run about what was left out."""
    groups = sorted({group for run in runs.values() for group in run["groups"]})
    titles = [word for title in runs for word in (title, "", "", "")]
    rows = [["", *titles], ["", *["cases", "failed", "left out", "seconds"] * len(runs)]]
    rows += [
        [group, *_numbers(run["groups"].get(group, NOTHING) for run in runs.values())] for group in groups
    ]
    totals = [
        {name: sum(row[name] for row in run["groups"].values()) for name in NOTHING} for run in runs.values()
    ]
    rows.append(["all", *_numbers(totals)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    said = [
        f"{title}: {line}"
        for title, run in runs.items()
        for line in run["left_out"] or ["nothing was left out"]
    ]
    return "\n".join([*lines, *said])


def _numbers(counts: Iterable[dict[str, float]]) -> list[str]:
    return [f"{row[name]:,.0f}" for row in counts for name in NOTHING]


def main(arguments: list[str]) -> None:
    """Print the table of the runs whose files there are; say which there are not."""
    runs = {}
    for argument in arguments:
        title, _, path = argument.partition("=")
        if Path(path).exists():
            runs[title] = json.loads(Path(path).read_text())
        else:
            print(f"{title}: did not end")
    print(table_of(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
