"""Make small changes to a copy of the source, one at a time, and see whether a test notices.

`python -m tests.mutation.run --changes 300 --seed 1`; what was done already is kept in a CSV file and not
done again. `--again FILE` tries the survivors of another such file once more, with all tests of the
files that cover them: after tests have been added, or to see what the slower ones notice.
"""

from __future__ import annotations

import argparse
import csv
import random
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from tests.mutation.changes import Change, changes_in
from tests.mutation.covered import AREAS
from tests.mutation.report import report
from tests.mutation.scratch import Scratch

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("revision", "seed", "area", "kind", "change", "before", "outcome", "by", "seconds")


def drawn(area: str, seed: int, number: int) -> list[Change]:
    """Changes of an area; each kind is as likely as the others, and so is each place of a kind."""
    found = _by_kind(area)
    generator = random.Random(f"{area} {seed}")
    chosen: dict[str, Change] = {}
    while len(chosen) < number:
        change = generator.choice(found[generator.choice(sorted(found))])
        chosen[change.name] = change
    return list(chosen.values())


@cache
def _by_kind(area: str) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for path in sorted((ROOT / "src" / "keydyn" / area).rglob("*.py")):
        for change in changes_in(path.relative_to(ROOT).as_posix(), path.read_bytes()):
            found.setdefault(change.kind, []).append(change)
    return found


def main() -> int:
    """Draw, apply, run, write a row; at the end, the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=300, help="how many, over all areas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--areas", nargs="+", default=list(AREAS), choices=list(AREAS))
    parser.add_argument("--results", type=Path, default=Path("out/mutation/changes.csv"))
    parser.add_argument("--scratch", type=Path, default=Path("out/mutation/scratch"), help="for the copy")
    parser.add_argument(
        "--again", type=Path, help="those that survived in these results, instead of new ones"
    )
    options = parser.parse_args()
    results = options.results.resolve()
    results.parent.mkdir(parents=True, exist_ok=True)
    done = {row["change"] for row in _rows(results)}
    todo = (
        _survivors(options.again) if options.again else _turns(options.areas, options.seed, options.changes)
    )
    todo = [(area, change) for area, change in todo if change.name not in done]
    scratch = Scratch(options.scratch.resolve(), ROOT)
    scratch.learn(sorted({area for area, _ in todo}))
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    for place, (area, change) in enumerate(todo, 1):
        began = time.monotonic()
        outcome, by = scratch.outcome(change, thorough=options.again is not None)
        seconds = time.monotonic() - began
        row = (
            said.stdout.strip(),
            options.seed,
            area,
            change.kind,
            change.name,
            change.before,
            outcome,
            by,
            f"{seconds:.1f}",
        )
        _write(results, [dict(zip(COLUMNS, row, strict=True))])
        print(f"{place}/{len(todo)} {outcome:8} {seconds:5.1f} s  {change.name}  [{by}]", flush=True)
    print(report(_rows(results)))
    return 0


def _turns(areas: list[str], seed: int, number: int) -> list[tuple[str, Change]]:
    """The areas take turns, so that a run that is stopped has some of each."""
    each = -(-number // len(areas))
    columns = [[(area, change) for change in drawn(area, seed, each)] for area in areas]
    return [pair for turn in zip(*columns, strict=True) for pair in turn]


def _survivors(path: Path) -> list[tuple[str, Change]]:
    """The changes that survived, as far as their files have them still."""
    found = []
    for row in _rows(path):
        if row["outcome"] == "survived":
            file = row["change"].partition(":")[0]
            same = [one for one in changes_in(file, (ROOT / file).read_bytes()) if one.name == row["change"]]
            found += [(row["area"], change) for change in same]
            if not same:
                print(f"no longer there: {row['change']}")
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
