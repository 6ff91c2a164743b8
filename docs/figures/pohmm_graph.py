"""Draw the graphs of the POHMM, what it comes from and its relatives: what depends on what in three events.

Run from the project's root: python docs/figures/pohmm_graph.py
"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

Point = tuple[float, float]

RADIUS, DISTANCE = 0.3, 1.9
OBSERVED, HIDDEN, EDGE = "#dfe6ee", "white", "#334455"
STEPS = ("n-1", "n", "n+1")
BEFORE = ("n-2", "n-1", "n")


@dataclass(frozen=True)
class Row:
    """One variable: its symbol, its position, what it is, and how its circle looks."""

    symbol: str
    height: float
    name: str
    colour: str = OBSERVED
    outline: str = "-"
    steps: tuple[str, ...] = STEPS


@dataclass(frozen=True)
class Graph:
    """Variables, top first, and the arrows between them.

    `within` are arrows within an event, `across` from one event to the next, each from row to row; `around`
    are arrows within an event that go around the row in between; `dotted` are rows that continue on both
    sides.
    """

    rows: dict[str, Row]
    within: list[tuple[str, str]]
    across: list[tuple[str, str]]
    around: list[tuple[str, str]] = field(default_factory=list)
    dotted: tuple[str, ...] = ("state",)


STATE = Row("z", 1.2, "hidden state", HIDDEN)
EMISSION = Row("x", 0.0, "emission\n(observed)")
GRAPHS = {
    "markov_chain_graph": Graph({"state": Row("z", 0.0, "state\n(observed)")}, [], [("state", "state")]),
    "hmm_graph": Graph(
        {"state": STATE, "emission": EMISSION}, within=[("state", "emission")], across=[("state", "state")]
    ),
    "pohmm_graph": Graph(
        {"event": Row(r"\Omega", 2.4, "event type\n(observed)"), "state": STATE, "emission": EMISSION},
        within=[("event", "state"), ("state", "emission")],
        across=[("event", "event"), ("state", "state"), ("event", "state")],
        around=[("event", "emission")],
        dotted=("event", "state"),
    ),
    "context_hmm_graph": Graph(
        {
            "context": Row("r,s", 2.4, "contexts\n(from past\nemissions)", outline="--", steps=BEFORE),
            "state": STATE,
            "emission": EMISSION,
        },
        within=[("context", "state"), ("state", "emission")],
        across=[("context", "context"), ("state", "state"), ("emission", "context")],
        around=[("context", "emission")],
        dotted=("context", "state"),
    ),
    "partly_hmm_graph": Graph(
        {"state": STATE, "emission": EMISSION},
        within=[("state", "emission")],
        across=[("state", "state"), ("emission", "emission"), ("emission", "state")],
        dotted=("state", "emission"),
    ),
    "partially_hmm_graph": Graph(
        {
            "label": Row(r"\ell", 2.4, "label\n(seen at some\nevents)", outline="--"),
            "state": STATE,
            "emission": EMISSION,
        },
        within=[("state", "label"), ("state", "emission")],
        across=[("state", "state")],
    ),
}


def draw_node(axes: Axes, x: float, row: Row, step: str) -> None:
    circle = Circle((x, row.height), RADIUS, facecolor=row.colour, edgecolor=EDGE, linewidth=1.2, zorder=3)
    circle.set_linestyle(row.outline)
    axes.add_patch(circle)
    two = "," in row.symbol
    text = f"${row.symbol}$\n${step}$" if two else f"${row.symbol}_{{{step}}}$"
    axes.text(x, row.height, text, ha="center", va="center", fontsize=8 if two else 11, zorder=4)


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


def draw(graph: Graph, path: Path) -> None:
    """Draw the graph as a small picture."""
    heights = {name: row.height for name, row in graph.rows.items()}
    top = max(heights.values())
    figure, axes = plt.subplots(figsize=(6.4, 3.4 * (top + 0.9) / 3.3))
    places = [DISTANCE * n for n in range(len(STEPS))]
    for n, x in enumerate(places):
        for row in graph.rows.values():
            draw_node(axes, x, row, row.steps[n])
        for a, b in graph.within:
            draw_arrow(axes, *between((x, heights[a]), (x, heights[b])))
        for a, b in graph.around:
            draw_arrow(axes, (x + 0.26, heights[a] - 0.15), (x + 0.26, heights[b] + 0.15), bend=-0.3)
    for left, right in pairwise(places):
        for a, b in graph.across:
            draw_arrow(axes, *between((left, heights[a]), (right, heights[b])))
    for row in graph.rows.values():
        axes.text(-0.55, row.height, row.name, ha="right", va="center", fontsize=9, color=EDGE)
    for name in graph.dotted:
        for x in (-0.5, places[-1] + RADIUS):
            axes.plot([x, x + 0.2], [heights[name]] * 2, color=EDGE, linewidth=1.1, linestyle=":")
    axes.set_xlim(-1.65, places[-1] + 0.75)
    axes.set_ylim(-0.45, top + 0.45)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(path, dpi=110, bbox_inches="tight", pad_inches=0.05, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    for name, graph in GRAPHS.items():
        draw(graph, Path(__file__).with_name(f"{name}.png"))
