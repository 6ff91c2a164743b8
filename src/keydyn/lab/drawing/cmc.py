"""Cumulative match characteristic: how often the owner is among the n best candidates."""

from __future__ import annotations

from matplotlib.figure import Figure

from keydyn.figures.style import house_style
from keydyn.lab.drawing.panels import (
    Curve,
    Panels,
    detectors_of,
    draw_curves,
    grid_of_panels,
    label_outer,
    legend_below,
    pens_of,
)

RANKS = 10


def cmc_figure(panels: Panels, ranks: int = RANKS) -> Figure:
    """Identification rate against rank (`x` of the curves: 1, 2, …), up to `ranks`."""
    if ranks < 1:
        raise ValueError(f"ranks must be 1 or more, not {ranks}")
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), sharey=True)
        for axes, curves in zip(grid, panels.values(), strict=True):
            first = {name: _up_to(curve, ranks) for name, curve in curves.items()}
            draw_curves(axes, first, pens)
            for name, curve in first.items():
                axes.plot(
                    curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=3.2, linestyle=""
                )
            axes.set(ylim=(0.0, 1.02))
            axes.margins(x=0.04)
            last = int(max(curve.x.max() for curve in first.values()))
            step = -(-last // 6)
            axes.set_xticks(sorted({1, *range(step, last + 1, step)}))
        label_outer(grid, "rank", "identification rate")
        legend_below(figure, pens, markers=True)
        return figure


def _up_to(curve: Curve, ranks: int) -> Curve:
    here = curve.x <= ranks
    if not here.any():
        raise ValueError(f"no rank up to {ranks}: ranks begin at 1, not {curve.x.min():g}")
    band = [None if values is None else values[here] for values in (curve.low, curve.high)]
    return Curve(curve.x[here], curve.y[here], *band)
