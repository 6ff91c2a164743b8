"""Draw how people differ most in the population that comes with keydyn: population_factors.png."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import FancyBboxPatch

from keydyn.datasets.simulated.keyboard import ROWS
from keydyn.population import PopulationModel

HERE = Path(__file__).parent
FACTORS = 3
STAGGER = (0.0, 0.5, 0.75, 1.25)
TITLES = ("interval before the key", "time the key is held")


def keyboard(ax: Axes, of_key: dict[str, float], norm: TwoSlopeNorm, title: str) -> None:
    """The letters and the space bar, each in the colour of its number."""
    colours = mpl.colormaps["RdBu_r"]

    def key(left: float, bottom: float, width: float, name: str, label: str) -> None:
        colour = colours(norm(of_key[name])) if name in of_key else "#f4f4f4"
        ax.add_patch(
            FancyBboxPatch(
                (left, bottom), width, 0.82, boxstyle="round,pad=0.02", fc=colour, ec="#8a8a8a", lw=0.6
            )
        )
        dark = name in of_key and abs(norm(of_key[name]) - 0.5) > 0.35
        ink = "white" if dark else "black"
        ax.text(left + width / 2, bottom + 0.4, label, ha="center", va="center", fontsize=8, color=ink)

    for row, letters in enumerate(ROWS[1:]):
        for column, letter in enumerate(letters):
            key(STAGGER[row + 1] + column, 2.0 - row, 0.82, letter, letter)
    key(3.0, -1.0, 5.0, "space", "space")
    ax.set_title(title, fontsize=9)
    ax.set(xlim=(0.2, 11.2), ylim=(-1.3, 3.1), aspect="equal")
    ax.axis("off")


def main() -> None:
    """The three directions in which most of what V explains lies."""
    known = PopulationModel.shipped().parameters
    cells, V = known.cells, known.loadings
    size, directions = np.linalg.eigh((V * known.support[:, None]).T @ V)
    turned = V @ directions[:, ::-1]
    shares = size[::-1] / size.sum()
    # A key's cells, weighted by how much was typed there.
    total = np.bincount(cells.key, known.support, cells.n_keys)
    figure, axes = plt.subplots(FACTORS, 2, figsize=(9.5, 6.0), layout="constrained")
    for factor in range(FACTORS):
        summed = np.bincount(cells.key, known.support * turned[:, factor], cells.n_keys)
        mean = np.divide(summed, total, out=np.full(cells.n_keys, np.nan), where=total > 0)
        mean *= np.sign(np.nansum(summed))
        norm = TwoSlopeNorm(0.0, *(np.nanmax(np.abs(mean)) * np.array([-1.0, 1.0])))
        for f in range(2):
            of_key = {
                str(name): mean[f * cells.n_codes + code]
                for code, name in enumerate(cells.vocabulary)
                if np.isfinite(mean[f * cells.n_codes + code])
            }
            keyboard(axes[factor, f], of_key, norm, TITLES[f])
        axes[factor, 0].text(
            -0.02, 0.5, f"factor {factor + 1}\n{shares[factor]:.0%}", transform=axes[factor, 0].transAxes,
            ha="right", va="center", fontsize=10,
        )  # fmt: skip
        bar = figure.colorbar(ScalarMappable(norm, "RdBu_r"), ax=axes[factor], shrink=0.8, aspect=14)
        bar.set_label("deviations of the key", fontsize=8)
        bar.ax.tick_params(labelsize=8)
    figure.savefig(HERE / "population_factors.png", dpi=130)


if __name__ == "__main__":
    main()
