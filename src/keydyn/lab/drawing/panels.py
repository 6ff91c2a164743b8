"""Figures with a panel per dataset and a line per detector: the grid, the pens and the legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import Estimate
from keydyn.figures.style import COLOURS, GREY, blank, house_style, text_of
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.frame.tables import estimate_of

# Filled and empty markers, so that they also differ in grey.
SIGNS = (("o", COLOURS[0], COLOURS[0]), ("s", COLOURS[1], "white"), ("^", COLOURS[2], COLOURS[2]))
ROW = 0.3  # inches per detector
LETTERS = 20  # per line of the label


# Dataset → series, such as "closed set" and "open set" → detector → estimate; one without a value is shown as
# text.
Estimates = Mapping[str, Mapping[str, Mapping[str, Estimate]]]
# Returns the label of a frame's row in a panel.
Naming = Callable[[Mapping[Any, Any]], str]


def intervals_figure(panels: Estimates, label: str) -> Figure:
    """Draw a panel per dataset and a row per detector, with a dot and a line per series."""
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
        # All panels share their axis, which is set once everything is drawn, or later panels would be cut
        # off.
        estimates = [one for panel in panels.values() for rows in panel.values() for one in rows.values()]
        there = [one.numbers for one in estimates if not math.isnan(one.numbers[0])]
        low, high = min([one[1] for one in there] + [0.0]), max([one[2] for one in there] + [0.0])
        grid[0].set_xlim(low - 0.05 * (high - low) if low < 0.0 else 0.0, 1.05 * high or 1.0)
        if low < 0.0:
            for axes in grid:
                axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        # The names of detectors leave little room for panels.
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
        axes.plot([value], [y], sign, color=edge, markerfacecolor=face, markersize=5, clip_on=False, zorder=3)


Dash = str | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Pen:
    """The style that distinguishes a detector from others, in colour and in grey."""

    colour: str
    dash: Dash
    marker: str
    width: float = 1.3

    @property
    def line(self) -> dict[str, Any]:
        """The style as arguments of `plot`."""
        return {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}


# Okabe and Ito's colours. A detector has the same pen in every figure.
PENS = {
    "manhattan": Pen("#56B4E9", (0.0, (1.0, 1.2)), "v"),
    "manhattan-scaled": Pen("#009E73", (0.0, (5.0, 1.4, 1.0, 1.4)), "^"),
    "svm": Pen("#CC79A7", (0.0, (2.6, 1.4)), "D"),
    "hmm": Pen("#E69F00", (0.0, (6.0, 1.8)), "s"),
    "pohmm": Pen("#0072B2", "solid", "o", 1.8),
    "pohmm-recommended": Pen("#D55E00", (0.0, (9.0, 1.2, 1.0, 1.2, 1.0, 1.2)), "P", 1.8),
    "population": Pen("#000000", (0.0, (16.0, 1.0)), "*", 1.8),
}
LETTER = 0.068  # inches, of the legend's font
TITLE = 30  # number of letters that fit above a panel


@dataclass(frozen=True, eq=False)
class Curve:
    """A line with its 95 % band, if known; arrays of one length."""

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None

    def __post_init__(self) -> None:
        lengths = {len(values) for values in (self.x, self.y, self.low, self.high) if values is not None}
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(f"a curve's arrays must have one length above 0, not {sorted(lengths)}")
        if (self.low is None) != (self.high is None):
            raise ValueError("a band has two ends")

    @classmethod
    def of(cls, frame: pd.DataFrame, x: str, y: str) -> Curve:
        """A curve of column `y` over column `x`, with the band from Y_low to Y_high."""
        return cls(*(frame[name].to_numpy(dtype=np.float64) for name in (x, y, f"{y}_low", f"{y}_high")))


Panels = Mapping[str, Mapping[str, Curve]]
# Column of panels → row of panels → line → curve
RowsOfPanels = Mapping[Any, Mapping[str, Mapping[str, Curve]]]


def curves_of(frame: pd.DataFrame, x: str, figures: Mapping[str, str], lines: str = "") -> RowsOfPanels:
    """Dataset → title → line → curve, with the column of the frame for each title, and its band, over `x`.

    Lines are the values of the column `lines`; without it, there is one line, the population model.
    """
    return {
        str(dataset): {
            title: {
                str(name): Curve.of(rows, x, figure)
                for name, rows in (some.groupby(lines, sort=False) if lines else [("population", some)])
            }
            for title, figure in figures.items()
        }
        for dataset, some in frame.groupby("dataset", sort=False)
    }


def estimates_of(
    frame: pd.DataFrame, series: Mapping[str, str], name: Naming, scale: float = 1.0
) -> Estimates:
    """Dataset → series → name → estimate, with the column of the frame for each series, and its interval."""
    panels: dict[str, dict[str, dict[str, Estimate]]] = {}
    for row in frame.to_dict("records"):
        for title, figure in series.items():
            of_series = panels.setdefault(str(row["dataset"]), {}).setdefault(title, {})
            of_series[name(row)] = estimate_of(row, figure).times(scale)
    return panels


def pens_of(names: Iterable[str]) -> dict[str, Pen]:
    """A pen per name: known detectors have their own, the others get unused ones, then repeated colours.

    A repeated colour has another dash and another marker.
    """
    names = list(dict.fromkeys(names))
    known = list(PENS.values())
    pens = [pen for name, pen in PENS.items() if name not in names]
    for turn in range(1, len(known)):
        after = known[turn:] + known[:turn]
        pens += [replace(pen, dash=o.dash, marker=o.marker) for pen, o in zip(known, after, strict=True)]
    others = [name for name in names if name not in PENS]
    given = {name: pens[place % len(pens)] for place, name in enumerate(others)}
    return {name: PENS.get(name) or given[name] for name in names}


def grid_of_panels(
    titles: Sequence[str], width: float = 2.6, height: float = 2.5, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel per title, three in a row, or two in a row if there are four."""
    if not titles:
        raise ValueError("there is nothing to draw: no dataset")
    columns = 2 if len(titles) == 4 else min(len(titles), 3)
    rows = -(-len(titles) // columns)
    figure = blank(max(width * columns, 4.2), height * rows + 0.45)
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in grid.flat[len(titles) :]:
        axes.remove()
    panels = list(grid.flat[: len(titles)])
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(text_of(dataset_name(title), TITLE))
    return figure, panels


def draw_curves(
    axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen], markers: float = 0.0, **line: Any
) -> None:
    """Draw bands first, so that none covers a line, then lines; points get markers of this size."""
    for name, curve in curves.items():
        if curve.low is not None and curve.high is not None:
            axes.fill_between(
                curve.x, curve.low, curve.high, color=pens[name].colour, alpha=0.16, linewidth=0
            )
    for name, curve in curves.items():
        axes.plot(curve.x, curve.y, label=text_of(detector_name(name)), **(pens[name].line | line))
    for name, curve in curves.items() if markers else ():
        axes.plot(curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=markers)


# Draws the data of one dataset, by detector: curves, or the data they are computed from.
Drawing = Callable[[Axes, Any, Mapping[str, Pen]], None]


def curves_figure(
    panels: Mapping[str, Mapping[str, Any]],
    labels: tuple[str, str],
    draw: Drawing,
    markers: bool = False,
    **grid: Any,
) -> Figure:
    """Draw a panel per dataset with `draw`, labels for both axes and one legend."""
    with house_style():
        pens = pens_of(detectors_of(panels))
        figure, every = grid_of_panels(list(panels), **grid)
        for axes, curves in zip(every, panels.values(), strict=True):
            draw(axes, curves, pens)
        label_outer(every, *labels)
        legend_below(figure, pens, markers)
        return figure


def rows_figure(
    panels: RowsOfPanels, x_label: str, height: float, width: float, markers: float, **shared: Any
) -> tuple[Figure, Any]:
    """Draw a row of panels per figure, labelled on the left; returns the figure and its grid of axes."""
    if not panels:
        raise ValueError("there is nothing to draw: no dataset")
    titles = list(next(iter(panels.values())))
    pens = pens_of(name for panel in panels.values() for of in panel.values() for name in of)
    figure = blank(max(width * len(panels) + 0.5, 4.2), height * len(titles) + 0.75)
    grid = figure.subplots(len(titles), len(panels), squeeze=False, **shared)
    for column, panel in enumerate(panels.values()):
        for row, title in enumerate(titles):
            draw_curves(grid[row, column], panel[title], pens, markers)
            grid[row, 0].set_ylabel(title)
        grid[-1, column].set_xlabel(x_label)
    legend_below(figure, pens, markers=True)
    return figure, grid


def detectors_of(panels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """All detectors, in order of appearance."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    if not names:
        raise ValueError("there is nothing to draw: no detector")
    return names


def legend_below(figure: Figure, pens: Mapping[str, Pen], markers: bool = False) -> None:
    """Add one legend for all panels, in as many columns as fit."""
    texts = [text_of(detector_name(name)) for name in pens]
    handles = [
        Line2D([], [], marker=pen.marker if markers else "", markersize=4.5, **pen.line)
        for pen in pens.values()
    ]
    room = figure.get_size_inches()[0] / (max(map(len, texts)) * LETTER + 0.55)
    columns = int(np.clip(room, 1, len(texts)))
    # Make the rows as even as possible.
    columns = -(-len(texts) // -(-len(texts) // columns))
    figure.legend(handles, texts, loc="outside lower center", ncols=columns, handlelength=3.2)


def label_outer(panels: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes at the left and at the bottom of the grid only."""
    for axes in panels:
        place = axes.get_subplotspec()
        if place is None:
            raise ValueError("panels come from a grid")
        if place.is_first_col():
            axes.set_ylabel(y)
        below = place.rowspan.stop * place.get_gridspec().ncols + place.colspan.start
        if below >= len(panels):
            axes.set_xlabel(x)
            # Shared axes show their numbers in the last row only.
            axes.tick_params(labelbottom=True)
