"""Detection error trade-off: both errors on axes of normal deviates, where good detectors lie apart."""

from __future__ import annotations

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator
from scipy.special import ndtri

from keydyn.arrays import Floats
from keydyn.figures.style import GREY, house_style
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

TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0007, 0.55


def det_figure(panels: Panels) -> Figure:
    """False non-match rate (`y` of the curves) against false match rate, in per cent.

    Rates below 0.07 % lie outside: the line leaves the panel at its edge. The thin line is where both
    errors are equal.
    """
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), height=2.7, sharex=True, sharey=True)
        edges = deviates(np.array([LOWEST, HIGHEST]))
        for axes, curves in zip(grid, panels.values(), strict=True):
            axes.plot(edges, edges, color=GREY, linewidth=0.5, zorder=1)
            draw_curves(axes, {name: _on_deviates(curve) for name, curve in curves.items()}, pens)
            axes.set(xlim=edges, ylim=edges, aspect="equal")
            for axis in (axes.xaxis, axes.yaxis):
                _label_rates(axis)
        label_outer(grid, "false match rate (%)", "false non-match rate (%)")
        legend_below(figure, pens)
        return figure


def deviates(rates: Floats) -> Floats:
    """Φ⁻¹ of rates; 0 and 1, which have none, are taken far outside of the panel."""
    return np.asarray(ndtri(np.clip(rates, 1e-12, 1.0 - 1e-12)))


def _on_deviates(curve: Curve) -> Curve:
    ends = [None if values is None else deviates(values) for values in (curve.low, curve.high)]
    return Curve(deviates(curve.x), deviates(curve.y), *ends)


def _label_rates(axis: Axis) -> None:
    axis.set_major_locator(FixedLocator(deviates(np.array(TICKS)).tolist()))
    axis.set_major_formatter(FixedFormatter([f"{100 * rate:g}" for rate in TICKS]))
