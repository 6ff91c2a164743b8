"""Figures over a number, such as that of enrolment samples: a row per figure, a column per dataset."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from keydyn.figures.style import blank, house_style, text_of
from keydyn.lab.drawing.panels import Curve, draw_curves, legend_below, pens_of
from keydyn.lab.frame.names import dataset_name

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
