"""The figures of the transfer study: stated rates against what was found, and what more samples gain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from keydyn.figures.style import GREY, label_log_axis
from keydyn.lab.drawing.panels import Curve, Panels, Pen, curves_figure, draw_curves
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.tables import with_interval

# The amount of which stated rates are drawn, and the lowest share that has a place.
ENROLLED, LEAST = 5, 1e-4


def stated_figure(frame: pd.DataFrame) -> Figure:
    """A panel per place tried on, a line per place learnt from; on the thin line, rates are what they say."""
    stated = [100 * one for one in sorted(frame["stated"].unique())]

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        ends = [stated[0], stated[-1]]
        axes.plot(ends, ends, color=GREY, linewidth=0.7, zorder=1)
        draw_curves(axes, curves, pens, 4)
        axes.set(xscale="log", yscale="log")
        label_log_axis(axes.yaxis, wide=True)
        axes.set_xticks(stated, [f"{one:g}" for one in stated])
        axes.xaxis.set_minor_locator(NullLocator())

    labels = ("stated false-match rate (%)", "strangers accepted (%)")
    return curves_figure(
        stated_panels(frame), labels, draw, markers=True, height=2.7, sharex=True, sharey=True
    )


def stated_panels(frame: pd.DataFrame) -> Panels:
    """Place tried on → place learnt from → strangers accepted by stated rate, in per cent, five enrolled."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["enrolled"] == ENROLLED]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        columns = [rows[name].to_numpy(dtype=np.float64) for name in ("stated", *with_interval("strangers"))]
        percent = [100 * np.maximum(column, LEAST) for column in columns]
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(*percent)
    return panels


def genuine_figure(frame: pd.DataFrame) -> Figure:
    """Genuine samples accepted at the true rate, by samples enrolled; a panel per place tried on."""
    amounts = sorted(frame["enrolled"].unique())

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        draw_curves(axes, curves, pens, 4)
        axes.set(xscale="log", ylim=(0.0, 100.0))
        axes.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        axes.xaxis.set_minor_locator(NullLocator())

    labels = ("samples enrolled", "genuine accepted (%)")
    return curves_figure(genuine_panels(frame), labels, draw, markers=True, sharex=True, sharey=True)


def genuine_panels(frame: pd.DataFrame) -> Panels:
    """Place tried on → place learnt from → genuine samples accepted by samples enrolled, in per cent."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["stated"] == frame["stated"].max()]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        x, y = (rows[name].to_numpy(dtype=np.float64) for name in ("enrolled", "genuine_true"))
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(x, 100 * y)
    return panels
