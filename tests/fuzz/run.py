"""Fuzz for a while and count: `python -m tests.fuzz.run --seconds 3600`.

Each case is known by its number, from which it is drawn: `--only NAME --first NUMBER --cases 1` repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from tests.fuzz.targets import Target, makers


def run(
    target: Target, numbers: range, folder: Path, until: float = np.inf
) -> tuple[Counter[str], list[str]]:
    """Judge the cases of these numbers; what became of them, and what was found."""
    counts: Counter[str] = Counter()
    findings: list[str] = []
    for number in numbers:
        if time.monotonic() > until:
            break
        case = target.case(np.random.default_rng([number, len(target.name)]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                counts[target.judge(case, folder)] += 1
        except Exception:
            counts["FOUND"] += 1
            findings.append(f"{target.name}, case {number}:\n{traceback.format_exc(limit=-4)}")
    return counts, findings


def main() -> int:
    """All kinds of input in turns, until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10**12)
    parser.add_argument("--only", help="the name of one kind of input")
    options = parser.parse_args()
    everything = [maker() for maker in makers()]
    chosen = [target for target in everything if options.only in (None, target.name)]
    counts: dict[str, Counter[str]] = {target.name: Counter() for target in chosen}
    found: list[str] = []
    until = time.monotonic() + options.seconds
    number, last, turn = options.first, options.first + options.cases, 100
    with tempfile.TemporaryDirectory() as folder:
        while number < last and time.monotonic() < until:
            for target in chosen:
                more, findings = run(target, range(number, min(number + turn, last)), Path(folder), until)
                counts[target.name] += more
                found += findings
                for finding in findings:
                    print(finding, file=sys.stderr, flush=True)
            number += turn
    for name, outcomes in counts.items():
        print(f"{name}: {sum(outcomes.values()):,} cases")
        for outcome, count in sorted(outcomes.items()):
            print(f"{count:12,}  {outcome}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
