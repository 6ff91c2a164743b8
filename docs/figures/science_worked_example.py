"""Draw the worked example of docs/science/model.md, α at two states and three events: science_paths.png.

Run from the project's root: python docs/figures/science_worked_example.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from keydyn.figures.style import COLOURS, GREY, drawing

EVENTS = ("letter, short", "space, long", "letter, short")
STATES = ("active", "passive")
START = np.array([0.8, 0.2])
STEPS = np.array([[[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.6, 0.4]]])
EMITTED = np.array([[0.9, 0.3], [0.2, 0.9], [0.9, 0.3]])
ACROSS, DOWN, RADIUS = 3.4, 1.7, 0.42


def forward() -> np.ndarray:
    """(3, 2) α of each event and state."""
    alpha = [START * EMITTED[0]]
    for step, emitted in zip(STEPS, EMITTED[1:], strict=True):
        alpha.append(alpha[-1] @ step * emitted)
    return np.array(alpha)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], label: str, share: float) -> None:
    """An arrow between two circles, its label a share of the way along it."""
    line = np.subtract(end, start)
    reach = line / np.hypot(*line) * RADIUS
    axes.add_patch(
        FancyArrowPatch(
            tuple(start + reach), tuple(end - reach), arrowstyle="-|>", mutation_scale=10,
            shrinkA=0, shrinkB=0, color=GREY, linewidth=0.9,
        )
    )  # fmt: skip
    x, y = start + share * line
    patch = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(x, y, label, ha="center", va="center", fontsize=8, color=GREY, bbox=patch)


def main(folder: Path = Path(__file__).parent) -> None:
    """Nodes have α, arrows the probability of the step; under each node, the probability of what is seen."""
    alpha = forward()
    with drawing(7.6, 2.3, folder / "science_paths.png") as figure:
        axes = figure.subplots()
        for n, event in enumerate(EVENTS):
            axes.text(n * ACROSS, 0.85, event, ha="center", fontsize=9)
            for j, state in enumerate(STATES):
                at = (n * ACROSS, -j * DOWN)
                axes.add_patch(
                    Circle(at, RADIUS, facecolor="white", edgecolor=COLOURS[j], linewidth=1.6, zorder=3)
                )
                axes.text(
                    *at, f"{alpha[n, j]:.4f}".rstrip("0"), ha="center", va="center", fontsize=8.5, zorder=4
                )
                seen = f"emits it with {EMITTED[n, j]:.1f}"
                axes.text(at[0], at[1] - 0.6, seen, ha="center", va="center", fontsize=7.5, color=COLOURS[j])
                if n == 0:
                    arrow(axes, (-2.0, at[1]), at, f"{START[j]:.1f}", 0.4)
                    axes.text(-2.1, at[1], state, ha="right", va="center", fontsize=9, color=COLOURS[j])
        for n, step in enumerate(STEPS):
            for i, j in np.ndindex(2, 2):
                ends = (n * ACROSS, -i * DOWN), ((n + 1) * ACROSS, -j * DOWN)
                arrow(axes, *ends, f"{step[i, j]:.1f}", 0.5 if i == j else 0.33)
        total = f"together\n{alpha[-1].sum():.6f}"
        axes.text(2 * ACROSS + 1.1, -DOWN / 2, total, va="center", fontsize=9)
        axes.set(xlim=(-3.2, 2 * ACROSS + 2.6), ylim=(-2.5, 1.15), aspect="equal")
        axes.axis("off")


if __name__ == "__main__":
    main()
