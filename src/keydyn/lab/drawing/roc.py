"""The paper's ROC figure: a panel per dataset, a line per detector with its 95 % band."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keydyn.figures.style import GREY, house_style
from keydyn.lab.drawing.panels import (
    Panels,
    detectors_of,
    draw_curves,
    grid_of_panels,
    label_outer,
    legend_below,
    pens_of,
)

STEPS = (1, 2, 2.5, 5, 10)


def roc_figure(panels: Panels, upper: float = 0.4) -> Figure:
    """True match rate against false match rate, for each dataset and detector.

    Drawn up to a false match rate of `upper`. Where a line crosses the thin one both errors are equal.
    """
    if not 0.0 < upper <= 1.0:
        raise ValueError(f"upper must be above 0 and at most 1, not {upper}")
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), sharex=True, sharey=True)
        for axes, curves in zip(grid, panels.values(), strict=True):
            axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=0.5, zorder=1)
            draw_curves(axes, curves, pens)
            axes.set(xlim=(0.0, upper), ylim=(0.0, 1.0))
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.xaxis.set_major_formatter("{x:g}")
        place = (0.98 * upper, 1.0 - 1.02 * upper)
        grid[0].text(*place, "equal errors", ha="right", va="top", color=GREY, size=7)
        label_outer(grid, "false match rate", "true match rate")
        legend_below(figure, pens)
        return figure
