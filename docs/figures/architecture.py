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
WIDTH, HEIGHT, BESIDE, BETWEEN = 1.5, 0.34, 0.16, 0.26


def layers_of(name: str) -> list[list[str]]:
    """The layers of a contract, those that import nothing of ours first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [c for c in contracts if c["name"] == name]
    named = [[part.strip(" ()") for part in layer.split("|")] for layer in contract["layers"]]
    return named[::-1]


def draw(ax: Axes, layers: list[list[str]], title: str) -> None:
    """Boxes in rows, an arrow from each row down to the next."""
    widest = max(len(layer) for layer in layers) * (WIDTH + BESIDE) - BESIDE
    for row, layer in enumerate(layers):
        bottom, free = row * (HEIGHT + BETWEEN), widest - len(layer) * (WIDTH + BESIDE) + BESIDE
        for column, name in enumerate(layer):
            left = free / 2 + column * (WIDTH + BESIDE)
            box = FancyBboxPatch(
                (left, bottom), WIDTH, HEIGHT, boxstyle="round,pad=0.02", fc="#eef3f8", ec="#30506e"
            )
            ax.add_patch(box)
            label = name.removeprefix("keydyn.model.").removeprefix("keydyn.")
            ax.text(left + WIDTH / 2, bottom + HEIGHT / 2, label, ha="center", va="center", fontsize=9)
        if row:
            ax.annotate(
                "",
                (widest / 2, bottom - BETWEEN + 0.02),
                (widest / 2, bottom - 0.02),
                arrowprops={"arrowstyle": "->", "color": "#30506e"},
            )
    ax.set_xlim(-0.1, widest + 0.1)
    ax.set_ylim(-0.1, len(layers) * (HEIGHT + BETWEEN))
    ax.set_title(title, fontsize=10)
    ax.set_aspect("equal", anchor="S")
    ax.axis("off")


def main() -> None:
    """Draw both contracts, side by side and on one scale."""
    pictures = [
        (layers_of("Packages"), "keydyn: each imports only from below"),
        (layers_of("Inside the model"), "keydyn.model: likewise"),
    ]
    widths = [max(len(layer) for layer in layers) for layers, _ in pictures]
    figure, axes = plt.subplots(
        1, 2, figsize=(8.6, 9.0), layout="constrained", gridspec_kw={"width_ratios": widths}
    )
    for ax, (layers, title) in zip(axes, pictures, strict=True):
        draw(ax, layers, title)
    figure.savefig(HERE / "architecture.png", dpi=110)


if __name__ == "__main__":
    main()
