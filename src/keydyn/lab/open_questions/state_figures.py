"""Figures on the number of hidden states: what further states give, and what each of them means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keydyn.figures.style import GREY, blank, house_style
from keydyn.lab.drawing.panels import Pen, legend_below, pens_of
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.open_questions.state_scores import MODELS
from keydyn.population.chain import CLASSES

# Figure → its label, and whether it is shown in relation to two states.
SHOWN = {
    "log_likelihood": ("held-out gain over two states,\nnats per key", False),
    "eer": ("equal error rate\nin relation to two states", True),
    "rejection": ("rejection time\nin relation to two states", True),
}
PAPER = 2
# Of how many states the meaning is drawn, and of which texts.
MEANINGS = (2, 3, 4)
TEXTS = ("essay", "fable")


def draw_numbers(table: pd.DataFrame) -> Figure:
    """A row of panels for each model, a column for each figure, a line for each dataset."""
    datasets = list(dict.fromkeys(table["dataset"].map(dataset_name)))
    with house_style():
        pens = pens_of(datasets)
        models = list(dict.fromkeys(table["model"]))
        figure = blank(9.0, 2.6 * len(models) + 0.7)
        grid = figure.subplots(len(models), len(SHOWN), squeeze=False, sharex=True)
        for axes_row, model in zip(grid, models, strict=True):
            own = table[table["model"] == model]
            for axes, (name, (label, relative)) in zip(axes_row, SHOWN.items(), strict=True):
                _draw_lines(axes, own, name, relative, pens)
                axes.set_ylabel(label)
            axes_row[0].set_title(MODELS[model])
        for axes in grid[-1]:
            axes.set_xlabel("hidden states")
        legend_below(figure, pens, markers=True)
        return figure


def _draw_lines(axes: Axes, table: pd.DataFrame, name: str, relative: bool, pens: Mapping[str, Pen]) -> None:
    axes.axhline(1.0 if relative else 0.0, color=GREY, linewidth=0.6)
    axes.axvline(PAPER, color=GREY, linewidth=0.6, linestyle=":")
    for dataset, rows in table.groupby("dataset", sort=False):
        values = rows.set_index("states")[name].astype(float)
        if values.isna().all() or (relative and not values[PAPER] > 0.0):
            continue
        pen = pens[dataset_name(dataset)]
        shown = values / values[PAPER] if relative else values
        axes.plot(shown.index, shown, marker=pen.marker, markersize=3.5, **pen.line)
    axes.set_xticks(sorted(table["states"].unique()))


def draw_meaning(table: pd.DataFrame) -> Figure:
    """A shaded table for each text and number of states: classes of keys by states."""
    own = table[(table["model"] == "pohmm") & table["states"].isin(MEANINGS)]
    numbers = [n for n in MEANINGS if n in set(own["states"])]
    named = [name for name in TEXTS if name in set(own["dataset"])]
    datasets = named or list(dict.fromkeys(own["dataset"]))[:1]
    with house_style():
        figure = blank(9.0, 2.5 * len(datasets))
        grid = figure.subplots(len(datasets), len(numbers), squeeze=False, width_ratios=numbers)
        for axes_row, dataset in zip(grid, datasets, strict=True):
            for axes, n in zip(axes_row, numbers, strict=True):
                _draw_shares(axes, own[(own["dataset"] == dataset) & (own["states"] == n)], n)
                axes.set_title(f"{dataset_name(dataset)}, {n} states")
            axes_row[0].tick_params(axis="y", labelleft=True)
        return figure


def _draw_shares(axes: Axes, rows: pd.DataFrame, n_states: int) -> None:
    there = set(rows["class"])
    kinds = [kind for kind in ("all", *CLASSES) if kind in there]
    shares = np.full((len(kinds), n_states), np.nan)
    for row in rows.to_dict("records"):
        y, x = kinds.index(row["class"]), row["state"] - 1
        shares[y, x] = row["share"]
        text = f"{100 * row['share']:.0f} %"
        if not np.isnan(row["interval"]):
            text += f"\n{row['interval']:.0f} ms"
        colour = "white" if row["share"] > 0.6 else "black"
        axes.text(x, y, text, ha="center", va="center", fontsize=7.0, color=colour, linespacing=0.9)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(n_states), [str(j + 1) for j in range(n_states)])
    axes.set_yticks(range(len(kinds)), ["all keys" if kind == "all" else kind for kind in kinds])
    axes.tick_params(length=0, labelleft=False)
    axes.axhline(0.5, color="white", linewidth=2.0)
    for side in axes.spines.values():
        side.set_visible(False)
