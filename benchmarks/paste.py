"""Put measured figures into the documentation: `make bench-page`, or `python benchmarks/paste.py out/bench`.

What a user may expect goes between the markers of `docs/performance.md`; the table and start-up go between
those of `docs/performance-details.md`. The models per second of the population stream go into the arithmetic
of `docs/guide/cluster.md`, whose table is then recomputed.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from in_short import blocks

DOCS = Path(__file__).parents[1] / "docs"
RATE = re.compile(r"^models_a_second = [\d_]+", re.MULTILINE)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# The names of markers, and what goes between them.
PASTED = {"measured table": "speed.md", "measured start-up": "start_up.md"}
MACHINES = (1, 10, 100)


def main() -> None:
    """Put in whatever is in the folder, and report what is not there."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "out/bench")
    if not results.is_dir():
        raise SystemExit(f"there is no folder {results}: run make bench first")
    details, cluster = DOCS / "performance-details.md", DOCS / "guide" / "cluster.md"
    for name, text in blocks(results).items():
        put(DOCS / "performance.md", name, text)
    for name, file in PASTED.items():
        if (results / file).exists():
            put(details, name, (results / file).read_text(encoding="utf-8"))
        else:
            print(f"{results / file} is not there: {name} left as it is")
    if (results / "stream.csv").exists():
        with (results / "stream.csv").open(newline="", encoding="utf-8") as file:
            put_rate(cluster, float(next(csv.DictReader(file))["models_a_second"]))
    else:
        print(f"{results / 'stream.csv'} is not there: {cluster.name} left as it is")


def put(page: Path, name: str, text: str) -> None:
    """Put the text between the markers with this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1:
        raise SystemExit(f"{page.name} must have {begin} and {end} once each")
    head, rest = old.split(begin)
    tail = rest.split(end)[1]
    page.write_text(f"{head}{begin}\n{text.strip()}\n{end}{tail}", encoding="utf-8")
    print(f"{name}: {page.name}")


def put_rate(page: Path, models_a_second: float) -> None:
    """Put in the measured rate, to two figures, and the table of hours as the page's own code computes it."""
    digits = len(f"{models_a_second:.0f}")
    rate = f"models_a_second = {round(models_a_second, 2 - digits):_.0f}"
    text, times = RATE.subn(rate, page.read_text(encoding="utf-8"))
    if times != 1:
        raise SystemExit(f"{page.name} must have one line that begins with models_a_second =")
    page.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        exec(next(block for block in BLOCK.findall(text) if "def hours" in block), names)
    rows = [f"| {n} | {names['hours'](n, 2.1):.2g} h | {names['hours'](n, 0.001):.2g} h |" for n in MACHINES]
    head = "| machines of 16 cores | data sent with the tasks | tasks read their own data |"
    put(page, "hours", "\n".join([head, "| ---: | ---: | ---: |", *rows]))


if __name__ == "__main__":
    main()
