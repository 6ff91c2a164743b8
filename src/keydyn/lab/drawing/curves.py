"""Curves in panels, one per dataset: ROC, DET, CMC, reliability, and figures of users over a number."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator
from scipy.special import ndtri

from keydyn.arrays import Floats
from keydyn.figures.style import COLOURS, GREY, blank, house_style, text_of
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
from keydyn.lab.frame.names import dataset_name

STEPS = (1, 2, 2.5, 5, 10)
UPPER = 0.4  # the highest false match rate of a ROC


def roc_figure(panels: Panels) -> Figure:
    """True match rate against false match rate up to `UPPER`, for each dataset and detector.

    Where a line crosses the thin one both errors are equal.
    """
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, grid = grid_of_panels(list(panels), sharex=True, sharey=True)
        for axes, curves in zip(grid, panels.values(), strict=True):
            axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=0.5, zorder=1)
            draw_curves(axes, curves, pens)
            axes.set(xlim=(0.0, UPPER), ylim=(0.0, 1.0))
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.xaxis.set_major_formatter("{x:g}")
        place = (0.98 * UPPER, 1.0 - 1.02 * UPPER)
        grid[0].text(*place, "equal errors", ha="right", va="top", color=GREY, size=7)
        label_outer(grid, "false match rate", "true match rate")
        legend_below(figure, pens)
        return figure


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


# Dataset → figure → line → curve
Curves = Mapping[str, Mapping[str, Mapping[str, Curve]]]
WIDTH, HEIGHT = 1.85, 2.0  # inches per panel
ROOM = 0.16  # of the axis, between two labels


def user_curves_figure(panels: Curves, x_label: str) -> Figure:
    """Every figure against a number on a logarithmic axis; the panels of a row share their scale."""
    if not panels:
        raise ValueError("there is nothing to draw: no dataset")
    titles = list(next(iter(panels.values())))
    names = list(dict.fromkeys(name for panel in panels.values() for of in panel.values() for name in of))
    with house_style():
        pens = pens_of(names)
        figure = blank(max(WIDTH * len(panels) + 0.5, 4.2), HEIGHT * len(titles) + 0.75)
        grid = figure.subplots(len(titles), len(panels), squeeze=False, sharey="row", sharex="col")
        for column, (dataset, panel) in enumerate(panels.items()):
            grid[0, column].set_title(text_of(dataset_name(dataset)))
            for row, title in enumerate(titles):
                axes = grid[row, column]
                draw_curves(axes, panel[title], pens)
                for name, curve in panel[title].items():
                    axes.plot(curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=3.5)
                axes.set_xscale("log")
                numbers = labelled({float(x) for curve in panel[title].values() for x in curve.x})
                axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
                axes.xaxis.set_minor_locator(NullLocator())
                axes.grid(axis="y", color="#e3e3e3", linewidth=0.6)
                if column == 0:
                    axes.set_ylabel(title)
            grid[-1, column].set_xlabel(x_label)
        for row in grid:
            # All panels of a row share their axis: set once, when everything is drawn.
            row[0].set_ylim(bottom=0.0)
        legend_below(figure, pens, markers=True)
        return figure


def labelled(numbers: Collection[float]) -> list[float]:
    """Those of the numbers that have room for a label on a logarithmic axis: both ends and some between."""
    least = min(numbers)
    room = ROOM * math.log(max(numbers) / least)
    chosen = [max(numbers)]
    for number in sorted(numbers, reverse=True):
        if min(math.log(chosen[-1] / number), math.log(number / least)) >= room:
            chosen.append(number)
    return sorted({*chosen, least})
