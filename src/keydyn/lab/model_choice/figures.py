"""Which model fits best: BIC and held-out log-likelihood by states, family and smoothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from keydyn.figures.style import COLOURS, GREY, drawing

FAMILY_NAMES = {
    "lognormal": "log-normal",
    "logstudent": "log-t",
    "gamma": "gamma",
    "exponential": "exponential",
    "normal": "normal",
}
MEASURES = {
    "bic": "BIC per event, less is better",
    "held_out": "held-out log-likelihood per event,\nmore is better",
}


def draw_model_choice(table: pd.DataFrame, path: Path) -> None:
    """Write the figure; `table` is that of `keydyn.lab.model_choice.measurements.choice_table`.

    Medians over users of the difference from the paper's choice, two smoothed log-normal states, which is
    the black ring. Axes span the smoothed models; without smoothing a model can be out of all proportion.
    """
    datasets = list(dict.fromkeys(table["dataset"]))
    with drawing(3.6 * len(datasets) + 1.8, 5.6, path) as figure:
        grid = figure.subplots(len(MEASURES), len(datasets), sharex=True, squeeze=False)
        for row, (measure, label) in enumerate(MEASURES.items()):
            for column, dataset in enumerate(datasets):
                axes = grid[row, column]
                _draw_measure(axes, table[table["dataset"] == dataset], measure)
                if column == 0:
                    axes.set_ylabel(label)
        for axes, dataset in zip(grid[0], datasets, strict=True):
            axes.set_title(str(dataset).capitalize())
        for axes in grid[-1]:
            axes.set_xlabel("hidden states")
        grid[0, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8.0)
        figure.suptitle("Difference from the paper's choice", x=0.01, ha="left", fontsize=10.0)


def _draw_measure(axes: Axes, table: pd.DataFrame, measure: str) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    for column, (family, family_rows) in enumerate(table.groupby("family", sort=False)):
        for smoothing, line in family_rows.groupby("smoothing", sort=False):
            smoothed = smoothing != "none"
            values = line.set_index("states")[measure].replace([np.inf, -np.inf], np.nan)
            axes.plot(
                values.index,
                values,
                marker="o" if smoothed else "s",
                markersize=3.5,
                markerfacecolor=None if smoothed else "white",
                linestyle="-" if smoothed else ":",
                color=COLOURS[column],
                label=f"{FAMILY_NAMES.get(str(family), family)}{'' if smoothed else ', not smoothed'}",
            )
    axes.plot([2], [0.0], "o", markersize=9, markerfacecolor="none", color="black")
    axes.set_xticks(sorted(table["states"].unique()))
    smooth = table.loc[table["smoothing"] != "none", measure]
    rest = table.loc[table["smoothing"] == "none", measure]
    low, high = min(smooth.min(), 0.0), max(smooth.max(), 0.0)
    edge = max(0.08 * (high - low), 1e-3)
    axes.set_ylim(low - edge, high + edge)
    outside = int(np.sum((rest < low - edge) | (rest > high + edge)))
    if outside:
        note = f"{outside} of {len(rest)} not smoothed lie outside"
        axes.text(0.5, 0.02, note, transform=axes.transAxes, ha="center", fontsize=7.5, color=GREY)
