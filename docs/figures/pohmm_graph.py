"""Draw the graph of a POHMM: event types, hidden states and emissions of three events.

Run from the project's root: python docs/figures/pohmm_graph.py
"""

from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

Point = tuple[float, float]

RADIUS = 0.3
OBSERVED, HIDDEN, EDGE = "#dfe6ee", "white", "#334455"
STEPS = ("n-1", "n", "n+1")
ROWS = {"event": 2.4, "state": 1.2, "emission": 0.0}
SYMBOLS = {"event": r"\Omega", "state": "z", "emission": "x"}
NAMES = {"event": "event type\n(observed)", "state": "hidden state", "emission": "emission\n(observed)"}


def draw_node(axes: Axes, x: float, row: str, step: str) -> None:
    colour = HIDDEN if row == "state" else OBSERVED
    axes.add_patch(Circle((x, ROWS[row]), RADIUS, facecolor=colour, edgecolor=EDGE, linewidth=1.2, zorder=3))
    axes.text(x, ROWS[row], f"${SYMBOLS[row]}_{{{step}}}$", ha="center", va="center", fontsize=11, zorder=4)


def draw_arrow(axes: Axes, start: Point, end: Point, bend: float = 0.0) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=11,
            shrinkA=0,
            shrinkB=0,
            color=EDGE,
            linewidth=1.1,
            zorder=2,
        )
    )


def between(a: Point, b: Point) -> tuple[Point, Point]:
    """The ends of a straight arrow that touches both circles."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = (dx**2 + dy**2) ** 0.5
    ux, uy = dx / length * RADIUS, dy / length * RADIUS
    return (a[0] + ux, a[1] + uy), (b[0] - ux, b[1] - uy)


def draw(path: Path) -> None:
    """The graph, as a small picture."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    places = [1.9 * n for n in range(len(STEPS))]
    for x, step in zip(places, STEPS, strict=True):
        for row in ROWS:
            draw_node(axes, x, row, step)
        draw_arrow(axes, *between((x, ROWS["event"]), (x, ROWS["state"])))
        draw_arrow(axes, *between((x, ROWS["state"]), (x, ROWS["emission"])))
        # The event type reaches the emission around the state.
        draw_arrow(axes, (x + 0.26, ROWS["event"] - 0.15), (x + 0.26, ROWS["emission"] + 0.15), bend=-0.3)
    for left, right in pairwise(places):
        draw_arrow(axes, *between((left, ROWS["event"]), (right, ROWS["event"])))
        draw_arrow(axes, *between((left, ROWS["state"]), (right, ROWS["state"])))
        draw_arrow(axes, *between((left, ROWS["event"]), (right, ROWS["state"])))
    for row, height in ROWS.items():
        axes.text(-0.55, height, NAMES[row], ha="right", va="center", fontsize=9, color=EDGE)
    for row in ("event", "state"):
        for x, side in ((-0.5, 1), (places[-1] + RADIUS, 1)):
            axes.plot([x, x + side * 0.2], [ROWS[row]] * 2, color=EDGE, linewidth=1.1, linestyle=":")
    axes.set_xlim(-1.65, places[-1] + 0.75)
    axes.set_ylim(-0.45, 2.85)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(path, dpi=110, bbox_inches="tight", pad_inches=0.05, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
