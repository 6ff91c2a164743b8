"""Draw the service: who talks to it, its processes, and what they share: service.png.

Run from the project's root: python docs/figures/service.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
FILL, EDGE, INNER = "#eef3f8", "#30506e", "white"
Box = tuple[float, float, float, float]


def box(ax: Axes, at: Box, title: str, lines: str = "", fill: str = FILL) -> None:
    """A box (left, bottom, width, height) with a title and small text below it."""
    left, bottom, width, height = at
    shape = {"boxstyle": "round,pad=0.02", "ec": EDGE, "lw": 0.9}
    ax.add_patch(FancyBboxPatch((left, bottom), width, height, fc=fill, **shape))
    middle, top = left + width / 2, bottom + height
    if lines:
        ax.text(middle, top - 0.12, title, ha="center", va="top", fontsize=8.5, weight="bold")
        ax.text(middle, top - 0.37, lines, ha="center", va="top", fontsize=7, linespacing=1.35)
    else:
        ax.text(middle, bottom + height / 2, title, ha="center", va="center", fontsize=8.5, weight="bold")


def arrow(
    ax: Axes, begin: tuple[float, float], end: tuple[float, float], label: str = "", both: bool = False
) -> None:
    """An arrow with a label above its middle."""
    style = {"arrowstyle": "<->" if both else "->", "color": EDGE, "lw": 0.9}
    ax.annotate("", end, begin, arrowprops=style)
    middle = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
    ax.text(middle[0], middle[1] + 0.07, label, ha="center", va="bottom", fontsize=6.5, color="#334455")


def main() -> None:
    """Draw it."""
    figure, ax = plt.subplots(figsize=(9.4, 4.1), layout="constrained")
    box(ax, (0.0, 3.35, 1.75, 0.85), "your server", "keydyn.client, curl\nholds an API key")
    box(ax, (0.0, 2.1, 1.75, 0.85), "a browser", "holds a token: one person,\none purpose, an hour at most")
    box(ax, (0.0, 0.75, 1.75, 0.85), "your receiver", "of webhooks;\nchecks signatures")

    box(ax, (2.55, 2.1, 0.95, 2.1), "nginx", "TLS\nlimits\nWebSockets")

    for back in (0.24, 0.12):
        box(ax, (4.35 + back, 0.6 + back, 3.0, 3.9), "")
    box(ax, (4.35, 0.6, 3.0, 3.9), "")
    ax.text(5.85, 4.33, "keydyn serve, worker 1 … N", ha="center", va="center", fontsize=8.5, weight="bold")
    inner = [
        ("the gate", "name, size, time, rate, headers, log line"),
        ("routes, in threads", "enrol · verify · identify · export · erase\nnumbers from keydyn.decisions"),
        (
            "live sessions, in ticks of 20 ms",
            "all frames that wait: one call of the model\nstates saved about once per second",
        ),
        ("jobs, leased", "templates · populations · webhooks · expiry"),
    ]
    heights = (0.62, 0.8, 0.8, 0.62)
    top = 4.1
    for (title, lines), height in zip(inner, heights, strict=True):
        box(ax, (4.5, top - height, 2.7, height), title, lines, INNER)
        top -= height + 0.15

    sealed = "sealed: templates,\nsamples, states"
    held = f"SQLite or PostgreSQL\n\n{sealed}\n\naudit log: hash-chained"
    box(ax, (8.35, 2.45, 1.75, 1.75), "the database", held)
    box(ax, (8.35, 0.75, 1.75, 0.85), "master key", "a file, not in the database;\nnot in backups")

    arrow(ax, (1.79, 3.78), (2.51, 3.78), "HTTPS")
    arrow(ax, (1.79, 2.52), (2.51, 2.52), "HTTPS, WSS", both=True)
    arrow(ax, (3.54, 3.15), (4.31, 3.15), "loopback", both=True)
    arrow(ax, (4.31, 1.0), (1.79, 1.0), "signed reports, sent again until received")
    arrow(ax, (7.63, 3.15), (8.31, 3.15), "", both=True)
    ax.text(7.98, 3.2, "commit,\nthen answer", ha="center", va="bottom", fontsize=6.5, color="#334455")
    arrow(ax, (8.31, 1.17), (7.63, 1.17), "unwraps")
    ax.set_xlim(-0.1, 10.2)
    ax.set_ylim(0.5, 4.85)
    ax.set_aspect("equal")
    ax.axis("off")
    figure.savefig(HERE / "service.png", dpi=110)


if __name__ == "__main__":
    main()
