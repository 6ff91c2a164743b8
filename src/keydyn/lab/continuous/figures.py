"""Continuous verification: how soon impostors are detected."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keydyn.arrays import Floats
from keydyn.figures.style import house_style
from keydyn.lab.drawing.panels import (
    Curve,
    detectors_of,
    draw_curves,
    grid_of_panels,
    label_outer,
    legend_below,
    pens_of,
)

LEAST = 5.0  # keys, the shortest axis


def rejection_figure(panels: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """The share of impostor sessions rejected after at most so many keys.

    `panels`: dataset → detector → (R,) keys until rejection, one per impostor session; infinite where the
    impostor was never rejected, so that the line ends below 1.
    """
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), sharey=True)
        for axes, times in zip(grid, panels.values(), strict=True):
            ends = [float(t[np.isfinite(t)].max()) for t in times.values() if np.isfinite(t).any()]
            end = max([*ends, LEAST])
            curves = {name: shares(t, 1.04 * end) for name, t in times.items()}
            draw_curves(axes, curves, pens, drawstyle="steps-post")
            axes.set(ylim=(0.0, 1.02), xlim=(-0.02 * end, 1.04 * end))
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        label_outer(grid, "keys until rejection", "share of impostors rejected")
        legend_below(figure, pens)
        return figure


def shares(times: Floats, end: float) -> Curve:
    """The empirical distribution function, from 0 to `end`."""
    if len(times) == 0:
        raise ValueError("there are no rejection times")
    if np.isnan(times).any() or (times < 0).any():
        raise ValueError("rejection times must be 0 or more, infinite where there was none")
    at, count = np.unique(times[np.isfinite(times)], return_counts=True)
    reached = np.cumsum(count) / len(times)
    last = reached[-1] if len(reached) else 0.0
    return Curve(np.concatenate([[0.0], at, [end]]), np.concatenate([[0.0], reached, [last]]))
