"""A dot and its 95 % confidence interval for each detector, with several series side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from keydyn.evaluation.rates.confidence import Estimate
from keydyn.figures.style import COLOURS, GREY, house_style, text_of
from keydyn.lab.drawing.panels import grid_of_panels, label_outer
from keydyn.lab.frame.names import detector_name

# Filled and empty, so that they differ in grey too.
SIGNS = (("o", COLOURS[0], COLOURS[0]), ("s", COLOURS[1], "white"), ("^", COLOURS[2], COLOURS[2]))
ROW = 0.3  # inches per detector
LETTERS = 20  # per line of the label


# Dataset → series, such as "closed set" and "open set" → detector → estimate; one without a value is drawn
# as words.
Estimates = Mapping[str, Mapping[str, Mapping[str, Estimate]]]


def intervals_figure(panels: Estimates, label: str) -> Figure:
    """A panel per dataset and a row per detector, with a dot and a line per series; `label` has the unit."""
    series = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    if len(series) > len(SIGNS):
        raise ValueError(f"at most {len(SIGNS)} series stand side by side, not {len(series)}")
    detectors = list(dict.fromkeys(d for panel in panels.values() for rows in panel.values() for d in rows))
    if panels and not detectors:
        raise ValueError("there is nothing to draw: no detector")
    with house_style():
        height = 0.75 + ROW * len(detectors) * max(1.0, 0.6 * len(series))
        figure, grid = grid_of_panels(list(panels), height=height, sharex=True, sharey=True)
        for axes, panel in zip(grid, panels.values(), strict=True):
            for place, name in enumerate(series):
                shift = (place - (len(series) - 1) / 2) * 0.32
                _draw(axes, panel.get(name, {}), detectors, shift, place)
            axes.set_yticks(range(len(detectors)), [text_of(detector_name(name)) for name in detectors])
            axes.set_ylim(len(detectors) - 0.5, -0.5)
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
            axes.grid(axis="x", color="#e3e3e3", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        # All panels share their axis: set once, when everything is drawn, or what comes later is cut off.
        estimates = [one for panel in panels.values() for rows in panel.values() for one in rows.values()]
        there = [one.numbers for one in estimates if not math.isnan(one.numbers[0])]
        low, high = min([one[1] for one in there] + [0.0]), max([one[2] for one in there] + [0.0])
        grid[0].set_xlim(low - 0.05 * (high - low) if low < 0.0 else 0.0, 1.05 * high or 1.0)
        if low < 0.0:
            for axes in grid:
                axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        # The names of detectors leave narrow panels.
        label_outer(grid, fill(text_of(label), LETTERS), "")
        if len(series) > 1:
            handles = [
                Line2D([], [], marker=sign, color=edge, markerfacecolor=face, markersize=5, linewidth=1.2)
                for sign, edge, face in SIGNS[: len(series)]
            ]
            names = [text_of(name) for name in series]
            figure.legend(handles, names, loc="outside lower center", ncols=len(series))
        return figure


def _draw(axes: Axes, rows: Mapping[str, Estimate], detectors: list[str], shift: float, series: int) -> None:
    sign, edge, face = SIGNS[series]
    for name, estimate in rows.items():
        y = detectors.index(name) + shift
        value, low, high = estimate.numbers
        if math.isnan(value):
            axes.annotate(
                "not supported", (0.0, y), (3, 0), textcoords="offset points", va="center", color=GREY, size=7
            )
            continue
        axes.plot([low, high], [y, y], color=edge, linewidth=1.2)
        axes.plot(
            [value],
            [y],
            sign,
            color=edge,
            markerfacecolor=face,
            markersize=5,
            clip_on=False,
            zorder=3,
        )
