"""The figures of the transfer study: stated rates against what was found, and what more samples gain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from keydyn.figures.style import GREY, house_style, label_log_axis
from keydyn.lab.drawing.panels import (
    Curve,
    detectors_of,
    draw_curves,
    grid_of_panels,
    label_outer,
    legend_below,
    pens_of,
)
from keydyn.lab.frame.names import dataset_name

# The amount of which stated rates are drawn, and the lowest share that has a place.
ENROLLED, LEAST = 5, 1e-4

Panels = Mapping[str, Mapping[str, Curve]]


def stated_figure(frame: pd.DataFrame) -> Figure:
    """A panel per place tried on, a line per place learnt from; on the thin line, rates are what they say."""
    with house_style():
        panels = stated_panels(frame)
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), height=2.7, sharex=True, sharey=True)
        stated = sorted(frame["stated"].unique())
        for axes, curves in zip(grid, panels.values(), strict=True):
            ends = [100 * stated[0], 100 * stated[-1]]
            axes.plot(ends, ends, color=GREY, linewidth=0.7, zorder=1)
            draw_curves(axes, curves, pens)
            for name, curve in curves.items():
                axes.plot(curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=4)
            axes.set(xscale="log", yscale="log")
            label_log_axis(axes.yaxis, wide=True)
            axes.set_xticks([100 * one for one in stated], [f"{100 * one:g}" for one in stated])
            axes.xaxis.set_minor_locator(NullLocator())
        label_outer(grid, "stated false-match rate (%)", "strangers accepted (%)")
        legend_below(figure, pens, markers=True)
        return figure


def stated_panels(frame: pd.DataFrame) -> Panels:
    """Place tried on → place learnt from → strangers accepted by stated rate, in per cent, five enrolled."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["enrolled"] == ENROLLED]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        columns = [rows[name].to_numpy(dtype=np.float64) for name in ("stated", *_ENDS)]
        percent = [100 * np.maximum(column, LEAST) for column in columns]
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(*percent)
    return panels


_ENDS = ("strangers", "strangers_low", "strangers_high")


def genuine_figure(frame: pd.DataFrame) -> Figure:
    """Genuine samples accepted at the true rate, by samples enrolled; a panel per place tried on."""
    with house_style():
        panels = genuine_panels(frame)
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), sharex=True, sharey=True)
        amounts = sorted(frame["enrolled"].unique())
        for axes, curves in zip(grid, panels.values(), strict=True):
            draw_curves(axes, curves, pens)
            for name, curve in curves.items():
                axes.plot(curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=4)
            axes.set(xscale="log", ylim=(0.0, 100.0))
            axes.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
            axes.xaxis.set_minor_locator(NullLocator())
        label_outer(grid, "samples enrolled", "genuine accepted (%)")
        legend_below(figure, pens, markers=True)
        return figure


def genuine_panels(frame: pd.DataFrame) -> Panels:
    """Place tried on → place learnt from → genuine samples accepted by samples enrolled, in per cent."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["stated"] == frame["stated"].max()]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        x, y = (rows[name].to_numpy(dtype=np.float64) for name in ("enrolled", "genuine_true"))
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(x, 100 * y)
    return panels
