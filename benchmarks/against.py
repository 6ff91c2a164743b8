"""Another revision's code beside that of the working tree: `make bench BENCH_OPTIONS="--against REVISION"`.

Both run the same benchmark files in the same environment, in turns, each with a folder of compiled code of
its own. What differs between the turns is the machine; what differs between the two beyond that is the code.
"""

from __future__ import annotations

import contextlib
import csv
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from running import HERE, SOURCES, Bench, say, shown

# Turns that count; there is one more before them, which compiles.
TURNS = 5
# With fewer, chance alone may set the two apart.
FEWEST = 3
HEAD = ("workload", "before, ns", "spread", "now, ns", "spread", "now / before", "verdict")


class Compared(NamedTuple):
    """Nanoseconds of one row at each turn, with the revision's code and with the working tree's."""

    workload: str
    before: list[float]
    now: list[float]

    @property
    def ratio(self) -> float:
        """Time now over time before: above one is slower."""
        return statistics.median(self.now) / statistics.median(self.before)

    @property
    def verdict(self) -> str:
        """Slower or faster only if no turn of the one lies among those of the other."""
        if len(self.now) < FEWEST:
            return "too few turns"
        if min(self.now) > max(self.before):
            return "slower"
        return "faster" if max(self.now) < min(self.before) else "within the spread"

    def cells(self) -> list[str]:
        """The row as texts."""
        sides = [
            text
            for times in (self.before, self.now)
            for text in (shown(statistics.median(times)), f"±{100.0 * spread(times):.1f} %")
        ]
        return [self.workload, *sides, f"{self.ratio:.3f}", self.verdict]


def spread(times: Sequence[float]) -> float:
    """Half of the range, as a share of the median."""
    return 0.5 * (max(times) - min(times)) / statistics.median(times)


def compare(revision: str, titles: dict[str, str], out: Path, turns: int = TURNS) -> list[Compared]:
    """Measure the rows in `titles` with both, print them and write `against.csv` and `against.md`."""
    with worktree(revision) as old:
        sides = {
            "before": Bench(out / "numba-cache-before", old / "src"),
            "now": Bench(out / "numba-cache", SOURCES),
        }
        for side, sources in (("before", old / "src"), ("now", SOURCES)):
            sides[side].forget()
            _check(sides[side], sources)
        rows = [_row(sides, name, title, turns) for name, title in titles.items()]
    _show(revision, rows, out)
    return rows


def _row(sides: dict[str, Bench], name: str, title: str, turns: int) -> Compared:
    times: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(turns + 1):
        say(f"{name}, {'compiling' if turn == 0 else f'turn {turn} of {turns}'}")
        # Neither always goes first.
        for side in sorted(sides, reverse=bool(turn % 2)):
            times[side].append(sides[side].case(*name.split(maxsplit=1))["ns"])
    return Compared(title, times["before"][1:], times["now"][1:])


@contextlib.contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The revision's files in a folder of their own, which is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "revision"
        _git("worktree", "add", "--detach", "--quiet", str(path), revision)
        try:
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path))


def _git(*arguments: str) -> None:
    done = subprocess.run(
        ["git", "-C", str(HERE.parent), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.strip()}")


def _check(bench: Bench, sources: Path) -> None:
    """Stop if another keydyn than that of these sources would be measured."""
    found = bench.output([sys.executable, "-c", "import keydyn; print(keydyn.__file__)"]).strip()
    if not Path(found).resolve().is_relative_to(sources.resolve()):
        raise SystemExit(f"keydyn is imported from {found} and not from {sources}")


def _show(revision: str, rows: list[Compared], out: Path) -> None:
    console = Console(width=150)
    title = f"Nanoseconds per observation (fits: and iteration), {revision} and the working tree in turns"
    table = Table(title=title, title_justify="left")
    for n, name in enumerate(HEAD):
        table.add_column(name, justify="right" if 0 < n < len(HEAD) - 1 else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row.cells())
    console.print(table)
    lines = [HEAD, ["---", *["---:"] * (len(HEAD) - 2), "---"], *(row.cells() for row in rows)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (out / "against.md").write_text(text, encoding="utf-8")
    with (out / "against.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["workload", "turn", "before", "now"])
        for row in rows:
            for turn, (before, now) in enumerate(zip(row.before, row.now, strict=True), 1):
                writer.writerow([row.workload, turn, before, now])
    console.print(f"Results are in {out / 'against.csv'} and {out / 'against.md'}")
