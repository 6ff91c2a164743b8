"""What each choice in the compiled loops gains over the plain way: `make bench-choices`.

Both ways must give the same numbers before they are timed. Times are processor time of one thread, the median
of alternating repeats. A second table has choices that save compile time; a third one shows which loops
became vector instructions.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kernel_choices import KERNEL_CHOICES
from model_choices import MODEL_CHOICES
from rebuilding import Made, rebuilt, seconds_to_compile
from running import shown

from keydyn.model.engine.online_step import update_many
from keydyn.model.fit.algorithm import climb, climb_in_lanes

REPEATS = 15
ARITHMETIC = re.compile(r"^\s*v?(?:add|sub|mul|div|min|max|fn?m(?:add|sub)\d*)(pd|sd)\s+(.*)$")


class Choice(NamedTuple):
    """Two ways of computing the same numbers, `count` of them per call."""

    name: str
    plain: Callable[[], Any]
    chosen: Callable[[], Any]
    count: int


def main() -> None:
    """Print the tables, and write them to the folder given."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/bench")
    out.mkdir(parents=True, exist_ok=True)
    lines = ["| choice | the plain way, ns | as it is, ns | gain |", "| --- | ---: | ---: | ---: |"]
    for make in (*KERNEL_CHOICES, *MODEL_CHOICES):
        choice = Choice(*make())
        print(f"  {choice.name}", file=sys.stderr, flush=True)
        before, after = compared(choice)
        lines.append(f"| {choice.name} | {shown(before)} | {shown(after)} | {before / after:.1f} |")
    lines += [
        "",
        "| compiling a fit | the plain way, s | as it is, s | gain |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, plain, chosen in compiling():
        lines.append(f"| {name} | {plain:.1f} | {chosen:.1f} | {plain / chosen:.1f} |")
    lines += ["", "| loop | vector operations | of 512, 256, 128 bits | single operations |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    for name, packed, scalar in vectorised():
        widths = ", ".join(str(packed[letter]) for letter in "zyx")
        lines.append(f"| {name} | {sum(packed.values())} | {widths} | {scalar} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (out / "choices.md").write_text(text, encoding="utf-8")


def compared(choice: Choice) -> tuple[float, float]:
    """Processor time of both ways in ns, after checking that their results agree."""
    np.testing.assert_allclose(choice.chosen(), choice.plain(), rtol=1e-9, err_msg=choice.name)
    times: dict[str, list[float]] = {"plain": [], "chosen": []}
    for _ in range(REPEATS):
        for way, run in (("plain", choice.plain), ("chosen", choice.chosen)):
            began = time.process_time_ns()
            run()
            times[way].append((time.process_time_ns() - began) / choice.count)
    return statistics.median(times["plain"]), statistics.median(times["chosen"])


def compiling() -> list[tuple[str, float, float]]:
    """Seconds in which a whole fit is compiled, in the plain way and as it is."""
    signature = climb.signatures[0]
    chosen = seconds_to_compile(climb, signature)
    ways = {
        "inner functions without a way in from Python": {"no_cpython_wrapper": False},
        "no function with a way in from C": {"no_cfunc_wrapper": False},
    }
    return [(name, seconds_to_compile(climb, signature, **way), chosen) for name, way in ways.items()]


def vectorised() -> list[tuple[str, dict[str, int], int]]:
    """Floating-point operations in whole fits and online updates: packed ones by width, and single ones.

    Code from the cache cannot be inspected, so each is compiled again. What it contains comes after it; the
    numbers of a function include those of the functions that it calls.
    """
    found = []
    for loop in (climb, climb_in_lanes, update_many):
        made: Made = {}
        rebuilt(loop, made=made).compile(loop.signatures[0])
        for name, part in made.items():
            for assembly in part.inspect_asm().values():
                packed, scalar = operations(assembly)
                if sum(packed.values()):
                    found.append((f"`{name}`", packed, scalar))
    return found


def operations(assembly: str) -> tuple[dict[str, int], int]:
    """Packed operations by the letter of their registers (z 512 bits, y 256, x 128), and single ones."""
    packed, scalar = dict.fromkeys("zyx", 0), 0
    for line in assembly.splitlines():
        operation = ARITHMETIC.match(line)
        if operation and operation[1] == "pd":
            packed[next(letter for letter in "zyx" if f"%{letter}mm" in operation[2])] += 1
        elif operation:
            scalar += 1
    return packed, scalar


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
