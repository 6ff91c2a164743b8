"""Draw the packages and what they may import, from the contracts in pyproject.toml: architecture.png."""

from __future__ import annotations

import tomllib
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WIDTH, HEIGHT, GAP = 1.62, 0.62, 0.42


def layers_of(name: str) -> list[list[str]]:
    """The layers of a contract, those that import nothing of ours first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [c for c in contracts if c["name"] == name]
    named = [[part.strip(" ()") for part in layer.split("|")] for layer in contract["layers"]]
    return named[::-1]


def draw(ax: Axes, layers: list[list[str]], title: str) -> None:
    """Boxes in columns, an arrow from each column to the one before it."""
    tallest = max(len(layer) for layer in layers)
    for column, layer in enumerate(layers):
        left = column * (WIDTH + GAP)
        for row, name in enumerate(layer):
            bottom = (tallest - len(layer)) * 0.5 * (HEIGHT + 0.2) + row * (HEIGHT + 0.2)
            box = FancyBboxPatch(
                (left, bottom), WIDTH, HEIGHT, boxstyle="round,pad=0.02", fc="#eef3f8", ec="#30506e"
            )
            ax.add_patch(box)
            label = name.removeprefix("keydyn.model.").removeprefix("keydyn.")
            ax.text(left + WIDTH / 2, bottom + HEIGHT / 2, label, ha="center", va="center", fontsize=9)
        if column:
            middle = (tallest * (HEIGHT + 0.2) - 0.2) / 2
            ax.annotate(
                "",
                (left - GAP + 0.06, middle),
                (left - 0.06, middle),
                arrowprops={"arrowstyle": "->", "color": "#30506e"},
            )
    ax.set_xlim(-0.1, len(layers) * (WIDTH + GAP) - GAP + 0.1)
    ax.set_ylim(-0.1, tallest * (HEIGHT + 0.2))
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_aspect("equal")
    ax.axis("off")


def main() -> None:
    """Draw both contracts."""
    figure, axes = plt.subplots(2, 1, figsize=(11.0, 2.9), layout="constrained")
    draw(axes[0], layers_of("Packages"), "keydyn: each imports only from its left")
    draw(axes[1], layers_of("Inside the model"), "keydyn.model: likewise")
    figure.savefig(HERE / "architecture.png", dpi=110)


if __name__ == "__main__":
    main()
