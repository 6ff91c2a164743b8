"""Whether another revision decides the same: `python benchmarks/same_decisions.py fable --against REVISION`.

The people of a published dataset enrol with the first half of their samples. Each later sample is verified in
its typist's name and in the next person's, and identified, and the suspicion of one of each person's is
followed key by key.
Both revisions do so in a process of their own, on the same recordings, with the shipped population. It fails
if an answer or a reason differs, or a number by more than `LARGEST`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from against import worktree
from running import SOURCES, Bench, say

# Sums are taken in other orders; an llr is of the size of 10.
LARGEST = 1e-9


def decisions(dataset: str) -> dict[str, Any]:
    """What this process's code decides: the answers as texts, and all numbers."""
    from keydyn.datasets import load_dataset
    from keydyn.decisions import Verifier
    from keydyn.keystrokes import Samples

    typed = Samples.without_vectors(load_dataset(dataset).keystrokes)
    verifier, halves = Verifier.shipped(), {}
    for user in dict.fromkeys(typed.users.tolist()):
        own = typed[typed.users == user]
        halves[str(user)] = own[: len(own) // 2], own[len(own) // 2 :]
    verifier.enrol_many({user: before for user, (before, _) in halves.items()})
    users, said, numbers = list(halves), [], []
    for n, user in enumerate(users):
        later = halves[user][1]
        for claimed in (user, users[(n + 1) % len(users)]):
            for one in verifier.verify_many(claimed, later):
                said.append([one.claimed, one.answer, one.typed.answer, *one.reasons])
                numbers += [one.llr, one.false_match_rate, *one.interval, one.score, one.typed.llr]
                for spoke in (*one.spoke_for, *one.spoke_against):
                    said[-1] += [spoke.key, spoke.feature]
                    numbers.append(spoke.nats)
        for found in verifier.identify_many(later):
            said.append([found.nobody, found.candidates[0].user, *found.reasons])
            numbers += [found.nobody_probability, *(one.llr for one in found.candidates)]
        numbers += verifier.suspicion(user, later[:1]).tolist()
    return {"said": said, "numbers": numbers}


def difference(before: dict[str, Any], now: dict[str, Any]) -> float:
    """The largest difference between two numbers; a `SystemExit` names the first answer that differs."""
    for n, (then, after) in enumerate(zip(before["said"], now["said"], strict=True)):
        if then != after:
            raise SystemExit(f"decision {n} was {then} and is {after}")
    first, second = np.array(before["numbers"]), np.array(now["numbers"])
    if first.shape != second.shape or (np.isnan(first) != np.isnan(second)).any():
        raise SystemExit(f"there were {len(first)} numbers and are {len(second)}, or others are missing")
    # Equal infinities do not differ, nor do two that are missing.
    same = (first == second) | np.isnan(first)
    return float(np.max(np.abs(first[~same] - second[~same]), initial=0.0))


def main() -> None:
    """Decide with both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dataset", help="a published dataset")
    parser.add_argument("--against", metavar="REVISION", help="the other revision; without it, only decide")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder of compiled code")
    options = parser.parse_args()
    if options.against is None:
        print(json.dumps(decisions(options.dataset)))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    with worktree(options.against) as old:
        found = []
        for side, sources in (("before", old / "src"), ("now", SOURCES)):
            say(side)
            bench = Bench(options.out / f"numba-cache-{side}", sources)
            command = [sys.executable, __file__, options.dataset]
            found.append(json.loads(bench.output(command, pinned=False).splitlines()[-1]))
    largest = difference(*found)
    print(f"{len(found[1]['said']):,} decisions, {len(found[1]['numbers']):,} numbers: ", end="")
    print(f"the same answers and reasons; the largest difference of a number is {largest:.2g}")
    if largest > LARGEST:
        raise SystemExit(f"a number differs by {largest:.2g}, more than {LARGEST}")


if __name__ == "__main__":
    main()
