"""Curves in panels, one per dataset: ROC, DET, CMC, reliability, and results over a number."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator
from scipy.special import ndtri

from keydyn.arrays import Floats
from keydyn.figures.style import COLOURS, GREY, house_style, text_of
from keydyn.lab.drawing.panels import (
    Curve,
    Panels,
    Pen,
    RowsOfPanels,
    curves_figure,
    draw_curves,
    grid_of_panels,
    label_outer,
    rows_figure,
)
from keydyn.lab.frame.names import dataset_name

STEPS = (1, 2, 2.5, 5, 10)
UPPER = 0.4  # the highest false match rate of a ROC


def roc_figure(panels: Panels) -> Figure:
    """Plot true match rates against false match rates up to `UPPER`, for each dataset and detector.

    Both errors are equal where a curve crosses the thin line.
    """

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=0.5, zorder=1)
        draw_curves(axes, curves, pens)
        axes.set(xlim=(0.0, UPPER), ylim=(0.0, 1.0))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
        axes.xaxis.set_major_formatter("{x:g}")

    figure = curves_figure(panels, ("false match rate", "true match rate"), draw, sharex=True, sharey=True)
    place = (0.98 * UPPER, 1.0 - 1.02 * UPPER)
    figure.axes[0].text(*place, "equal errors", ha="right", va="top", color=GREY, size=7)
    return figure


TICKS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0007, 0.55


def det_figure(panels: Panels) -> Figure:
    """Plot false non-match rates (`y` of the curves) against false match rates, in per cent.

    Rates below 0.07 % lie outside, where curves leave the panel. Both errors are equal on the thin line.
    """
    edges = deviates(np.array([LOWEST, HIGHEST]))

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        axes.plot(edges, edges, color=GREY, linewidth=0.5, zorder=1)
        draw_curves(axes, {name: _on_deviates(curve) for name, curve in curves.items()}, pens)
        axes.set(xlim=edges, ylim=edges, aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            _label_rates(axis)

    labels = ("false match rate (%)", "false non-match rate (%)")
    return curves_figure(panels, labels, draw, height=2.7, sharex=True, sharey=True)


def deviates(rates: Floats) -> Floats:
    """Φ⁻¹ of rates; 0 and 1, for which it is infinite, are placed far outside of the panel."""
    return np.asarray(ndtri(np.clip(rates, 1e-12, 1.0 - 1e-12)))


def _on_deviates(curve: Curve) -> Curve:
    ends = [None if values is None else deviates(values) for values in (curve.low, curve.high)]
    return Curve(deviates(curve.x), deviates(curve.y), *ends)


def _label_rates(axis: Axis) -> None:
    axis.set_major_locator(FixedLocator(deviates(np.array(TICKS)).tolist()))
    axis.set_major_formatter(FixedFormatter([f"{100 * rate:g}" for rate in TICKS]))


RANKS = 10


def cmc_figure(panels: Panels) -> Figure:
    """Plot identification rates against ranks (`x` of the curves: 1, 2, …), up to `RANKS`."""

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        first = {name: _first_ranks(curve) for name, curve in curves.items()}
        draw_curves(axes, first, pens, 3.2)
        axes.set(ylim=(0.0, 1.02))
        axes.margins(x=0.04)
        last = int(max(curve.x.max() for curve in first.values()))
        step = -(-last // 6)
        axes.set_xticks(sorted({1, *range(step, last + 1, step)}))

    return curves_figure(panels, ("rank", "identification rate"), draw, markers=True, sharey=True)


def _first_ranks(curve: Curve) -> Curve:
    here = curve.x <= RANKS
    if not here.any():
        raise ValueError(f"no rank up to {RANKS}: ranks begin at 1, not {curve.x.min():g}")
    band = [None if values is None else values[here] for values in (curve.low, curve.high)]
    return Curve(curve.x[here], curve.y[here], *band)


TEN = np.log(10.0)


def reliability_figure(panels: Mapping[str, pd.DataFrame]) -> Figure:
    """Plot observed against stated likelihood ratios, a panel per dataset.

    Each panel has the columns of `keydyn.evaluation.rates.likelihood_ratios.reliability`. Stated ratios are
    right on the thin line. Axes are powers of ten.
    """
    both = np.concatenate([table[["stated", "observed"]].to_numpy().ravel() for table in panels.values()])
    reach = float(np.ceil(np.abs(both / TEN).max() * 2) / 2)
    with house_style():
        figure, grid = grid_of_panels(list(panels), height=2.6, sharex=True, sharey=True)
        for axes, table in zip(grid, panels.values(), strict=True):
            axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.7, zorder=1)
            stated, observed = table["stated"] / TEN, table["observed"] / TEN
            axes.plot(stated, observed, "o-", color=COLOURS[0], markersize=4, linewidth=1)
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        label_outer(grid, "stated, log₁₀ ratio", "observed, log₁₀ ratio")
        return figure


ROOM = 0.16  # least distance of two labels, as a share of the axis


def user_curves_figure(panels: RowsOfPanels, x_label: str) -> Figure:
    """Plot every figure against a number on a logarithmic axis; the panels of a row share their scale."""
    with house_style():
        figure, grid = rows_figure(panels, x_label, 2.0, 1.85, 3.5, sharey="row", sharex="col")
        for column, (dataset, panel) in enumerate(panels.items()):
            grid[0, column].set_title(text_of(dataset_name(dataset)))
            for axes, curves in zip(grid[:, column], panel.values(), strict=True):
                axes.set_xscale("log")
                numbers = labelled({float(x) for curve in curves.values() for x in curve.x})
                axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
                axes.xaxis.set_minor_locator(NullLocator())
                axes.grid(axis="y", color="#e3e3e3", linewidth=0.6)
        for row in grid:
            # All panels of a row share their axis, which is set once everything is drawn.
            row[0].set_ylim(bottom=0.0)
        return figure


def labelled(numbers: Collection[float]) -> list[float]:
    """The numbers that have room for a label on a logarithmic axis: both ends and some in between."""
    least = min(numbers)
    room = ROOM * math.log(max(numbers) / least)
    chosen = [max(numbers)]
    for number in sorted(numbers, reverse=True):
        if min(math.log(chosen[-1] / number), math.log(number / least)) >= room:
            chosen.append(number)
    return sorted({*chosen, least})
