"""What lost contexts cost: a row a figure, a column a dataset and situation, a line a model."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from keydyn.evaluation.names import dataset_name
from keydyn.figures.panels import Curve, draw_curves, legend_below, pens_of
from keydyn.figures.style import blank, house_style, text_of

# (dataset, what is lost) → figure, with its unit → model → curve over the share lost
LostCurves = Mapping[tuple[str, str], Mapping[str, Mapping[str, Curve]]]
WIDTH, HEIGHT = 1.75, 1.6  # inches a panel


def lost_context_figure(panels: LostCurves) -> Figure:
    """Every figure against the share of events without a context, 0 to 1, for each dataset and situation.

    Panels of a row that are of one dataset share their scale.
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
                axes.xaxis.set_major_locator(MaxNLocator(2))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
                if column == 0:
                    axes.set_ylabel(title)
        figure.supxlabel("events without a context", size=9)
        legend_below(figure, pens, markers=True)
        return figure
