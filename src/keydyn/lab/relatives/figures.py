"""What lost contexts cost: a row per figure, a column per dataset and situation, a line per model."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from keydyn.figures.style import blank, house_style, text_of
from keydyn.lab.drawing.panels import Curve, draw_curves, legend_below, pens_of
from keydyn.lab.frame.names import dataset_name

# (dataset, what is lost) → figure, with its unit → model → curve over the share lost
LostCurves = Mapping[tuple[str, str], Mapping[str, Mapping[str, Curve]]]
WIDTH, HEIGHT = 1.75, 1.6  # inches per panel
DEPTH = 1.0  # of an axis; one poor model should not flatten the others


def _limits(values: list[float]) -> tuple[float, float]:
    """An axis for these values, but not deeper than `DEPTH` below the highest."""
    high = max(values)
    low = max(min(values), high - DEPTH)
    margin = 0.06 * max(high - low, 1e-3)
    return low - margin, high + margin


def lost_context_figure(panels: LostCurves) -> Figure:
    """Every figure against the share of events without a context, 0 to 1, for each dataset and situation.

    Panels of a row that are of one dataset share their scale. Lines leave it where they are more than 1
    below the highest.
    """
    if not panels:
        raise ValueError("there is nothing to draw: no dataset")
    figures = list(next(iter(panels.values())))
    names = list(dict.fromkeys(name for panel in panels.values() for of in panel.values() for name in of))
    with house_style():
        pens = pens_of(names)
        figure = blank(max(WIDTH * len(panels) + 0.5, 4.2), HEIGHT * len(figures) + 0.75)
        grid = figure.subplots(len(figures), len(panels), squeeze=False, sharex=True)
        for column, ((dataset, situation), panel) in enumerate(panels.items()):
            grid[0, column].set_title(f"{text_of(dataset_name(dataset))}\n{text_of(situation)}", size=8.5)
            for row, title in enumerate(figures):
                axes = grid[row, column]
                first = next(n for n, key in enumerate(panels) if key[0] == dataset)
                if column > first:
                    axes.sharey(grid[row, first])
                    axes.tick_params(labelleft=False)
                draw_curves(axes, panel[title], pens)
                for name, curve in panel[title].items():
                    axes.plot(curve.x, curve.y, pens[name].marker, color=pens[name].colour, markersize=3)
                axes.xaxis.set_major_locator(FixedLocator([0.0, 0.5, 1.0]))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
                if column == 0:
                    axes.set_ylabel(title)
            grid[-1, column].set_xlabel("contexts lost")
        for column, (dataset, _) in enumerate(panels):
            for row, title in enumerate(figures):
                curves = [c for key, p in panels.items() if key[0] == dataset for c in p[title].values()]
                grid[row, column].set_ylim(*_limits([float(y) for curve in curves for y in curve.y]))
        legend_below(figure, pens, markers=True)
        return figure
