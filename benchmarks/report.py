"""The benchmark's numbers as a table on the terminal, CSV, Markdown and a figure."""

from __future__ import annotations

import csv
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.ticker import StrMethodFormatter
from rich.console import Console
from rich.table import Table
from start_up import Line, cells, markdown

from keydyn.figures.style import COLOURS, GREY, drawing

COLUMNS = {
    "workload": "workload",
    "library": "library",
    "ns": "ns",
    "ratio": "best peer / this",
    "target": "target",
    "target_ratio": "target / this",
    "peak_mb": "peak MB",
    "two_threads": "2 threads",
    "first_call_s": "first call, s",
}
UNIT = "nanoseconds per observation (fits: and iteration)"
HUNDRED_MILLION = 100_000_000
Rows = list[dict[str, Any]]
Numbers = dict[str, float]
Lines = list[tuple[str, str]]


def show(
    rows: Rows, start_up: list[Line] | None, stream: Numbers | None, people: Numbers | None, out: Path
) -> None:
    """Print everything, and write tables, texts and a figure into `out`."""
    for row in rows:
        row["target_ratio"] = row["target"] / row["ns"] if row.get("target") else None
    lines = [*_machine(), *_stream_lines(stream), *_people_lines(people)]
    # Wide enough for one line per row, whatever the terminal.
    console = Console(width=150)
    if rows:
        table = Table(title=f"{UNIT}, one thread", title_justify="left")
        for name, title in COLUMNS.items():
            left = name in ("workload", "library")
            table.add_column(title, justify="left" if left else "right", no_wrap=left)
        for row in rows:
            table.add_row(*(cell(row, name) for name in COLUMNS))
        console.print(table)
    if start_up:
        _show_start_up(start_up, console, out)
    for what, value in lines:
        console.print(f"{what}: {value}", highlight=False)
    _write_csv(out / "speed.csv", list(COLUMNS), [[row.get(name) for name in COLUMNS] for row in rows])
    _write_csv(out / "summary.csv", ["what", "value"], [list(line) for line in lines])
    if stream:
        _write_csv(out / "stream.csv", list(stream), [list(stream.values())])
    if people:
        _write_csv(out / "people.csv", list(people), [list(people.values())])
    (out / "speed.md").write_text(_markdown(rows, lines), encoding="utf-8")
    if rows:
        _draw(rows, out / "speed.png")
    console.print(f"Results are in {out}")


def _show_start_up(lines: list[Line], console: Console, out: Path) -> None:
    """Print the parts of start-up, and write `start_up.csv` and `start_up.md`."""
    table = Table(title="start-up, seconds", title_justify="left")
    for name in ("what", "processor time", "by the clock", "target"):
        table.add_column(name, justify="left" if name == "what" else "right", no_wrap=True)
    for line in lines:
        table.add_row(*cells(line))
    console.print(table)
    _write_csv(out / "start_up.csv", list(Line._fields), [list(line) for line in lines])
    (out / "start_up.md").write_text(markdown(lines), encoding="utf-8")


def _machine() -> Lines:
    """The machine and the versions."""
    names = Path("/proc/cpuinfo")
    found = names.read_text(encoding="utf-8").splitlines() if names.exists() else []
    model = next((line.split(":")[1].strip() for line in found if line.startswith("model name")), "")
    parts = ("keydyn", "numpy", "numba", "hmmlearn", "dynamax", "jax")
    return [
        ("processor", f"{model or platform.machine()}, {os.cpu_count()} cores"),
        ("versions", ", ".join([f"Python {platform.python_version()}", *filter(None, map(_version, parts))])),
    ]


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except ImportError:
        return ""


def _stream_lines(stream: Numbers | None) -> Lines:
    if not stream:
        return []
    rate = stream["models_a_second"]
    hours = HUNDRED_MILLION / rate / 3600
    first, end = stream["memory_first_chunk_mb"], stream["memory_end_mb"]
    return [
        ("population stream", f"{stream['users']:,.0f} users, 8 samples of 11 keys, 20 iterations"),
        *(
            (f"population stream, {what}", f"{stream[f'{what}_us']:,.0f} µs per user")
            for what in ("simulate", "prepare", "fit", "score")
        ),
        ("population stream, fit and score", f"{rate:,.0f} models per second and core"),
        ("the same for 100 million users, on paper", f"{hours:,.1f} hours on one core"),
        ("population stream, memory", f"{first:,.0f} MB after the first chunk, {end:,.0f} MB at the end"),
    ]


def _people_lines(people: Numbers | None) -> Lines:
    if not people:
        return []
    return [
        ("population model, compiling", f"{people['compiling_s']:.1f} s (target 12)"),
        ("population model, learning from 500 people", f"{people['fit_us']:,.0f} µs per person"),
        (
            "population model, enrolment",
            f"{people['enrol_us']:,.0f} µs from 10 samples of 36 keys, {people['enrol_long_us']:,.0f} µs "
            f"from 6 of 500 keys (target 2,000); a POHMM {people['pohmm_fit_us']:,.0f} µs from 10 of 36 keys",
        ),
        (
            "population model, 36 keys against one template",
            f"{people['compare_without_us']:.2f} µs without hidden states (target 2), "
            f"{people['compare_with_us']:.2f} with (target 7); a POHMM {people['pohmm_compare_us']:.2f} µs",
        ),
        (
            "population model, ln P per key of strangers",
            f"{people['half_nats']:.4f} with 250 people, {people['added_nats']:.4f} with 250 more by "
            f"`partial_fit`, {people['all_nats']:.4f} with all 500 from the start",
        ),
        (
            "population model, a large population",
            f"{people['people']:,.0f} people in {people['large_s']:,.0f} s by the clock on all cores (target "
            f"120 for 10,000), {people['large_mb']:,.0f} MB",
        ),
    ]


def cell(row: dict[str, Any], name: str) -> str:
    """A number to three figures, seconds and megabytes to a tenth; a dash where there is none."""
    value = row.get(name)
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value >= 100 or name in ("peak_mb", "first_call_s"):
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:.3g}"


def _write_csv(path: Path, head: list[str], lines: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(lines)


def _markdown(rows: Rows, lines: Lines) -> str:
    head = f"| {' | '.join(COLUMNS.values())} |\n| --- | --- |{' ---: |' * (len(COLUMNS) - 2)}\n"
    body = "".join(f"| {' | '.join(cell(row, name) for name in COLUMNS)} |\n" for row in rows)
    return (head + body + "\n" if rows else "") + "".join(f"- {what}: {value}\n" for what, value in lines)


def _draw(rows: Rows, path: Path) -> None:
    """Draw every measurement as a point on one logarithmic axis, one line per workload; a bar is a target."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))[::-1]
    libraries = list(dict.fromkeys(row["library"] for row in rows))
    with drawing(7.0, 0.8 + 0.32 * len(workloads), path) as figure:
        axes = figure.subplots()
        for n, library in enumerate(libraries):
            own = [row for row in rows if row["library"] == library]
            axes.scatter(
                [row["ns"] for row in own],
                [workloads.index(row["workload"]) for row in own],
                color=COLOURS[n],
                s=42 if library == "keydyn" else 22,
                label=library,
                zorder=3,
            )
        aimed = [row for row in rows if row.get("target")]
        axes.scatter(
            [row["target"] for row in aimed],
            [workloads.index(row["workload"]) for row in aimed],
            color=GREY,
            marker="|",
            s=90,
            label="target",
            zorder=2,
        )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set_yticks(range(len(workloads)), workloads)
        axes.grid(axis="y", color=GREY, alpha=0.2, linewidth=0.6)
        axes.set(title="Processor time of one thread", xlabel=UNIT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
