"""Draw the packages, their rooms and what they may import: architecture.png.

Rows come from the contract in pyproject.toml, rooms from the folders.
"""

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
PACKAGE = ROOT / "src" / "keydyn"
WIDTH, BESIDE, HEIGHT, BETWEEN = 9.0, 0.14, 0.5, 0.17
LAB_WIDTH = 1.9
CORE, LAB, EDGE, QUIET = "#eef3f8", "#fbf3e4", "#30506e", "#4a5a68"
ARROW = {"arrowstyle": "-|>", "color": EDGE, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
WHAT = {
    "cli": "one line per command",
    "commands": "the command line",
    "recording": "collecting typing on a page of this machine",
    "service": "",
    "client": "calls a service",
    "demo": "simulated people, from fitting to decisions",
    "figures": "of any fitted model",
    "decisions": "answers at stated error rates",
    "evaluation": "how good a detector is",
    "detectors": "the score of a sample against a person's template",
    "population": "what people share and how they differ",
    "datasets": "recordings in one schema",
    "keystrokes": "raw key events → keystrokes → sequences and feature vectors",
    "model": "the POHMM",
}
# Rooms of the model in the order of its own contract.
ORDER = ("data", "engine", "families", "theta", "fit", "ask", "watch", "check", "relatives")


def layers() -> list[list[str]]:
    """The packages of each layer, those that import nothing of ours first; single files are one layer."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["name"] == "Packages"]
    named = [[part.strip().removeprefix("keydyn.") for part in row.split("|")] for row in contract["layers"]]
    above = [row for row in named if set(row) <= {*WHAT, "lab"}]
    return [[name for row in named if row not in above for name in row], *above[::-1]]


def rooms(name: str) -> list[str]:
    """The folders inside a package."""
    found = [path.parent.name for path in (PACKAGE / name).glob("*/__init__.py")]
    return sorted(found, key=lambda room: (ORDER.index(room) if name == "model" else 0, room))


def box(ax: Axes, left: float, bottom: float, size: tuple[float, float], colour: str) -> None:
    """A rounded box."""
    style = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch((left, bottom), *size, boxstyle=style, fc=colour, ec=EDGE, lw=1.0))


def draw_row(ax: Axes, packages: list[str], bottom: float) -> None:
    """The packages of a layer side by side: what each is for, and its rooms."""
    each = (WIDTH - BESIDE * (len(packages) - 1)) / len(packages)
    middle = bottom + HEIGHT / 2
    for column, name in enumerate(packages):
        left = column * (each + BESIDE)
        box(ax, left, bottom, (each, HEIGHT), CORE)
        ax.text(left + 0.15, middle, name, ha="left", va="center", fontsize=10, weight="bold")
        ax.text(left + 1.45, middle, WHAT[name], ha="left", va="center", fontsize=8.5, color=QUIET)
        text = " · ".join(rooms(name))
        ax.text(left + each - 0.15, middle, text, ha="right", va="center", fontsize=8.5, color=EDGE)


def draw_laboratory(ax: Axes, bottom: float, top: float) -> None:
    """The laboratory beside the core, with a room for each study."""
    left = WIDTH + 0.45
    centre, middle = left + LAB_WIDTH / 2, (bottom + top) / 2
    box(ax, left, bottom, (LAB_WIDTH, top - bottom), LAB)
    ax.text(centre, top - 0.25, "lab", ha="center", va="center", fontsize=10, weight="bold")
    ax.text(
        centre,
        middle - 0.12,
        "\n".join(rooms("lab")),
        ha="center",
        va="center",
        fontsize=8.5,
        color=EDGE,
        linespacing=1.35,
    )
    ax.annotate("", (WIDTH, middle), (left, middle), arrowprops=ARROW)
    note = "The core never\nimports the laboratory."
    ax.text(centre, bottom - 0.4, note, ha="center", va="center", fontsize=8.5, color=QUIET)


def main() -> None:
    """Draw the core as a house and the laboratory beside it."""
    single, *packages = layers()
    packages = [row for row in packages if row != ["lab"]]
    step = HEIGHT + BETWEEN
    figure, ax = plt.subplots(figsize=(9.3, 0.53 * len(packages) + 0.7), layout="constrained")
    box(ax, 0, 0, (WIDTH, HEIGHT), "#f4f4f4")
    ax.text(WIDTH / 2, HEIGHT / 2, " · ".join(single), ha="center", va="center", fontsize=8.5, color=EDGE)
    for number, row in enumerate(packages, 1):
        draw_row(ax, row, number * step)
        ax.annotate("", (WIDTH / 2, number * step - BETWEEN), (WIDTH / 2, number * step), arrowprops=ARROW)
    where = {name: number for number, row in enumerate(packages, 1) for name in row}
    draw_laboratory(ax, where["decisions"] * step, where["commands"] * step + HEIGHT)
    ax.set_xlim(-0.05, WIDTH + 0.45 + LAB_WIDTH + 0.05)
    ax.set_ylim(-0.05, (len(packages) + 1) * step - BETWEEN + 0.05)
    ax.set_aspect("equal")
    ax.axis("off")
    figure.savefig(HERE / "architecture.png", dpi=120)


if __name__ == "__main__":
    main()
