"""Reliability diagram: likelihood ratios that were stated against those that were observed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keydyn.figures.style import COLOURS, GREY, house_style
from keydyn.lab.drawing.panels import grid_of_panels, label_outer

TEN = np.log(10.0)


def reliability_figure(panels: Mapping[str, pd.DataFrame]) -> Figure:
    """A panel per dataset; each has the columns of `keydyn.evaluation.rates.likelihood_ratios.reliability`.

    On the thin line, ratios are what they say. Axes are powers of ten.
    """
    both = np.concatenate([table[["stated", "observed"]].to_numpy().ravel() for table in panels.values()])
    reach = float(np.ceil(np.abs(both / TEN).max() * 2) / 2)
    with house_style():
        figure, grid = grid_of_panels(list(panels), height=2.6, sharex=True, sharey=True)
        for axes, table in zip(grid, panels.values(), strict=True):
            axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.7, zorder=1)
            axes.plot(
                table["stated"] / TEN,
                table["observed"] / TEN,
                "o-",
                color=COLOURS[0],
                markersize=4,
                linewidth=1,
            )
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        label_outer(grid, "stated, log₁₀ ratio", "observed, log₁₀ ratio")
        return figure
