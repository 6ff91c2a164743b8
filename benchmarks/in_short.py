"""What a user may expect, from the CSV files of `make bench`: times of whole tasks instead of nanoseconds."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

ITERATIONS = 20
NS, US = 1e-9, 1e-6
# The beginning of a workload's name: what is done, with how much, and keys × iterations.
TASKS = {
    "A:": ("fit a POHMM to a long recording", "100,000 keys, 20 iterations", 100_000 * ITERATIONS),
    "F:": ("fit a POHMM to one person's text", "3,000 keys of 70 kinds, 20 iterations", 3_000 * ITERATIONS),
    "C:": ("fit a POHMM to one person of many", "20 samples of 11 keys, 20 iterations", 220 * ITERATIONS),
    "D:": ("score one sample of many", "11 keys", 11),
    "online, one event": ("follow a live session, from Python", "one event", 1),
    "online, 5,000 sessions, list": ("follow 5,000 live sessions in one call", "one event of each", 5_000),
}
COMPARED = {
    "A:": "fit one sequence of 100,000",
    "B:": "fit one model to 5,000 sequences of 11",
    "C:": "fit 200 models to 20 sequences of 11 each",
    "D:": "score 20,000 sequences of 11",
}
LARGE = {
    "A:": ("fit a POHMM", "100,000 events of 12 kinds"),
    "1,000,000 events, 50 types": ("fit a POHMM", "1,000,000 events of 50 kinds"),
    "1,000,000 events, 20,000 types": ("fit a POHMM", "1,000,000 events of 20,000 kinds"),
    "D:": ("score", "20,000 samples of 11 keys"),
}
Rows = list[dict[str, str]]


def blocks(results: Path) -> dict[str, str]:
    """The tables by the names of their markers, as far as the folder has what they need."""
    start_up, speed, people, stream = (
        rows_of(results / f"{name}.csv") for name in ("start_up", "speed", "people", "stream")
    )
    tables = {
        "measured in short": (
            ["what you do", "how much", "time"],
            [*_start_up(start_up), *_tasks(speed), *_people(people)],
        ),
        "measured memory": (["what you do", "how much", "memory"], [*_memory(speed, people, stream)]),
        "measured beside others": (
            ["ns per event (fits: and iteration)", "keydyn", "hmmlearn", "dynamax"],
            _compared(speed),
        ),
    }
    return {name: _table(head, lines) for name, (head, lines) in tables.items() if lines}


def rows_of(path: Path) -> Rows:
    """The rows of a CSV file; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def duration(seconds: float) -> str:
    """A time to two figures, in the unit that fits: 2.2 ms."""
    units = {"s": 1.0, "ms": 1e-3, "µs": US}
    unit, size = next((pair for pair in units.items() if seconds >= pair[1]), ("µs", US))
    value = seconds / size
    # The unit stays with its number.
    return (f"{value:.0f}" if value >= 10 else f"{value:.2g}") + f"\u00a0{unit}"


def _start_up(rows: Rows) -> list[list[str]]:
    clock = {row["what"]: float(row["clock_s"]) for row in rows}
    first = [seconds for what, seconds in clock.items() if what.startswith("together")]
    later = [seconds for what, seconds in clock.items() if what.startswith("a later process")]
    what = "import, fit, score and find states"
    return [
        *([f"{what} for the first time", "once per installation", duration(s)] for s in first),
        *([[f"{what} for the first time", "in every later process", duration(sum(later))]] if later else []),
    ]


def _tasks(rows: Rows) -> list[list[str]]:
    ours = {row["workload"]: float(row["ns"]) for row in rows if row["library"] == "keydyn"}
    return [
        [what, size, duration(ns * NS * count)]
        for start, (what, size, count) in TASKS.items()
        for workload, ns in ours.items()
        if workload.startswith(start)
    ]


def _people(rows: Rows) -> list[list[str]]:
    if not rows:
        return []
    us = {name: float(value) * US for name, value in rows[0].items() if name.endswith("_us")}
    learnt, seconds = float(rows[0]["people"]), float(rows[0]["large_s"])
    return [
        ["enrol a person with the population model", "10 samples of 36 keys", duration(us["enrol_us"])],
        ["enrol a person with the population model", "6 samples of 500 keys", duration(us["enrol_long_us"])],
        ["compare a sample with one template", "36 keys", duration(us["compare_with_us"])],
        ["learn a population, on both cores", f"{learnt:,.0f} people", duration(seconds)],
    ]


def _memory(speed: Rows, people: Rows, stream: Rows) -> Iterator[list[str]]:
    """What a call takes beyond its data, and what whole processes take."""
    for row in speed:
        for start, (what, size) in LARGE.items():
            if row["library"] == "keydyn" and row["workload"].startswith(start):
                yield [what, size, f"{float(row['peak_mb']):.3g} MB"]
    for row in people:
        size = f"{float(row['people']):,.0f} people"
        yield ["learn a population", size, f"{float(row['large_mb']):.3g} MB"]
    for row in stream:
        size = f"{float(row['users']):,.0f} people, 500 at a time"
        yield ["fit a POHMM to each and score, whole process", size, f"{float(row['memory_end_mb']):.3g} MB"]


def _compared(rows: Rows) -> list[list[str]]:
    lines = []
    for start, what in COMPARED.items():
        fastest: dict[str, float] = {}
        for row in rows:
            if row["workload"].startswith(start):
                library, ns = row["library"].split()[0], float(row["ns"])
                fastest[library] = min(ns, fastest.get(library, ns))
        if len(fastest) > 1:
            lines.append([what, *(_ns(fastest.get(one)) for one in ("keydyn", "hmmlearn", "dynamax"))])
    return lines


def _ns(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] + ["---" if name == "how much" else "---:" for name in head[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))
