"""Where a verification's time goes, as a flame graph.

`python benchmarks/flame.py docs/figures/verification.png` prints it in words, too. The stack is noted at
equal steps of processor time while one sample of 60 keys is verified again and again, as `make bench` does
it ("verify 60 keys, arrays"). What compiled functions call is part of them. A bar is as wide as the share of
time in which its function ran, and stands on its caller's.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from decision_cases import ENROLLED, KEYS

# Seconds of processor time between two looks, and of all. Linux usually counts in steps of 4 ms.
STEP, SECONDS = 0.004, 8.0
# The smallest share that is drawn, and named.
DRAWN, NAMED = 0.004, 0.035


@dataclass
class Part:
    """A function at its place: the looks that found it there, and what it called."""

    looks: int = 0
    called: dict[str, Part] = field(default_factory=dict)

    def add(self, names: list[str]) -> None:
        """Another look at a stack, the outermost function first."""
        self.looks += 1
        if names:
            self.called.setdefault(names[0], Part()).add(names[1:])


def sampled(verify: Any, seconds: float = SECONDS) -> Part:
    """The stacks below `verify`, which is called until the seconds are over."""
    whole, room = Part(), [round(seconds / STEP)]

    def look(_: int, frame: FrameType | None) -> None:
        names: list[str] = []
        while frame is not None and frame.f_code is not verify.__code__:
            names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        if frame is not None:
            whole.add(names[::-1])
        room[0] -= 1

    for _ in range(50):
        verify()
    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, STEP, STEP)
    try:
        while room[0] > 0:
            verify()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    return whole


def draw(whole: Part, file: Path) -> None:
    """The graph, and the parts in words."""
    from keydyn.figures.style import COLOURS, drawing

    with drawing(9.0, 4.6, file) as figure:
        axes = figure.subplots()

        def bar(part: Part, name: str, left: float, depth: int) -> None:
            share = part.looks / whole.looks
            if share < DRAWN:
                return
            axes.barh(
                depth,
                share,
                1.0,
                left,
                linewidth=0.6,
                color=COLOURS[depth % 3],
                alpha=0.75,
                edgecolor="white",
            )
            if share >= NAMED:
                most = max(3, int(150 * share))
                short = name.rpartition(".")[2]
                text = short if len(short) <= most else short[: most - 1] + "…"
                axes.text(left + 0.003, depth, text, va="center", fontsize=6, clip_on=True)
            for called, one in sorted(part.called.items(), key=lambda each: -each[1].looks):
                bar(one, called, left, depth + 1)
                left += one.looks / whole.looks

        bar(whole, "a verification", 0.0, 0)
        axes.set_xlim(0.0, 1.0)
        axes.set_yticks([])
        axes.set_xlabel("share of a verification's processor time; what a function calls stands on it")
        for side in ("left", "top", "right"):
            axes.spines[side].set_visible(False)


def said(part: Part, whole: Part, depth: int = 0) -> list[str]:
    """Parts with 2 % or more, one per line."""
    lines = []
    for name, one in sorted(part.called.items(), key=lambda each: -each[1].looks):
        if one.looks >= 0.02 * whole.looks:
            lines += [f"{100.0 * one.looks / whole.looks:5.1f} %  {'  ' * depth}{name}"]
            lines += said(one, whole, depth + 1)
    return lines


def main() -> None:
    """Sample, print and draw."""
    from keydyn.datasets import make_typists
    from keydyn.decisions import Verifier
    from keydyn.keystrokes import one_sample

    typing = make_typists(1, ENROLLED + 1, "free", KEYS)
    asked = typing[ENROLLED * KEYS :]
    verifier = Verifier.shipped()
    verifier.enrol("ada", typing[: ENROLLED * KEYS])
    keys, press, release = asked["keyname"].tolist(), *(asked[name].to_numpy() for name in asked.columns[-2:])

    def verify() -> None:
        verifier.verify("ada", one_sample(keys, press, release))

    whole = sampled(verify)
    print("\n".join(said(whole, whole)))
    draw(whole, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
