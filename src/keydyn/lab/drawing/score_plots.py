"""What scores of a system mean: Tippett, prior-error (APE), expected performance (EPC), attacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from keydyn.arrays import Floats, Integers
from keydyn.figures.style import COLOURS, GREY, house_style
from keydyn.lab.drawing.panels import (
    Curve,
    Panels,
    Pen,
    curves_figure,
    draw_curves,
    grid_of_panels,
    label_outer,
)

TEN = float(np.log(10.0))
# Points of a line: more cannot be told apart in print.
POINTS = 600


@dataclass(frozen=True, eq=False)
class PriorErrors:
    """Error rates of Bayes decisions at each prior log-odds, natural logarithms, (P,) each.

    `least` is that of the best thresholds, `known` that of the prior alone, and `actual` that of the ratios,
    or None if the scores are no ratios.
    """

    log_odds: Floats
    least: Floats
    known: Floats
    actual: Floats | None = None


def tippett_figure(systems: Mapping[str, tuple[Floats, Floats]], ratios: bool) -> Figure:
    """The share of genuine and of impostor claims with at least each score, a panel per system.

    Genuine scores should be high, impostors' low: lines that stay apart. Ratios are in powers of ten, and the
    thin line is where they say nothing.
    """
    with house_style():
        figure, grid = grid_of_panels(list(systems), height=2.5, sharey=True)
        for axes, scores in zip(grid, systems.values(), strict=True):
            for values, colour, name, dash in zip(
                scores, COLOURS, ("genuine", "impostors"), ("solid", "dashed"), strict=False
            ):
                ordered = np.sort(values) / (TEN if ratios else 1.0)
                at = _some(len(ordered))
                share = 100.0 * (1.0 - at / len(ordered))
                axes.plot(ordered[at], share, color=colour, linestyle=dash, drawstyle="steps-pre", label=name)
            if ratios:
                axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
            axes.set(ylim=(0.0, 101.0))
        handles, names = grid[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        label_outer(grid, "at least this log₁₀ ratio" if ratios else "at least this score", "claims (%)")
        return figure


def ape_figure(systems: Mapping[str, PriorErrors]) -> Figure:
    """Errors of Bayes decisions against the prior, a panel per system.

    The lower line is what the best thresholds would reach, the upper one what the prior alone does. The line
    of the ratios as they are should be near the lower one, and never above the upper one.
    """
    names = ("prior alone", "scores as they are", "best thresholds")
    with house_style():
        figure, grid = grid_of_panels(list(systems), height=2.5, sharey=True, sharex=True)
        for axes, one in zip(grid, systems.values(), strict=True):
            odds = one.log_odds / TEN
            axes.plot(odds, 100 * one.known, color=GREY, linestyle="dotted", label=names[0])
            if one.actual is not None:
                axes.plot(odds, 100 * one.actual, color=COLOURS[1], label=names[1])
            axes.plot(odds, 100 * one.least, color=COLOURS[0], linestyle="dashed", label=names[2])
            highest = max(
                float(each.max()) for each in (one.least, one.least if one.actual is None else one.actual)
            )
            axes.set(xlim=(odds[0], odds[-1]), ylim=(0.0, min(52.0, max(1.0, 160.0 * highest))))
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        label_outer(grid, "prior, log₁₀ odds of genuine", "error rate (%)")
        return figure


def epc_figure(panels: Panels) -> Figure:
    """Half total error rate against the weight of false matches, at thresholds that other people chose."""

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        draw_curves(axes, curves, pens)
        axes.set(xlim=(0.0, 1.0))
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))

    labels = ("weight of false matches", "half total error rate (%)")
    return curves_figure(panels, labels, draw, height=2.7)


def attacks_figure(panels: Panels) -> Figure:
    """Share of attacks accepted (IAPMR) against the false match rate, a panel per system, a line per kind.

    On the thin line an attack is accepted as often as a person who does not try.
    """

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        same = np.geomspace(1e-4, 1.0, 100)
        axes.plot(same, same, color=GREY, linewidth=0.5, zorder=1)
        draw_curves(axes, curves, pens)
        axes.set(xlim=(1e-4, 1.0), ylim=(0.0, 1.02), xscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))

    labels = ("false match rate (%)", "attacks accepted, IAPMR (%)")
    return curves_figure(panels, labels, draw, height=2.7, sharex=True, sharey=True)


def _some(n: int) -> Integers:
    """Places in n sorted values: both ends, and even steps between."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(np.int64))
