"""P-values of goodness of fit: of real users, and of data for which the truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from keydyn.figures.style import COLOURS, GREY, drawing

LEVEL = 0.05
MODEL_NAMES = {"hmm": "HMM", "pohmm": "POHMM"}
P_NAMES = {"p_value": "two-sided", "p_one_sided": "one-sided", "p_double": "double bootstrap"}


def draw_p_values(tests: pd.DataFrame, path: Path, p: str = "p_value") -> None:
    """Write the figure: cumulative p-values, one panel per dataset and settings, with the uniform line.

    `tests` has the columns dataset, settings, model and the p-value named by `p`. The shaded strip is where
    the model is rejected; the share of users there stands in the legend.
    """
    panels = list(tests.groupby(["dataset", "settings"], sort=False))
    with drawing(3.0 * len(panels), 3.3, path) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, ((dataset, settings), panel_tests) in zip(grid, panels, strict=True):
            by_model = panel_tests.groupby("model", sort=False)[p]
            values = {MODEL_NAMES.get(str(model), model): of.to_numpy() for model, of in by_model}
            _draw_cumulative(axes, values, "{} ({:.2f} rejected)")
            axes.set_title(f"{str(dataset).capitalize()}, {settings} settings")
            axes.set_xlabel(f"p-value, {P_NAMES[p]}")
            axes.legend(loc="lower right", fontsize=8.0)
        grid[0].set_ylabel("share of users with a p-value as small")


def draw_calibration(tests: pd.DataFrame, path: Path) -> None:
    """Write the figure: the same where the hypothesis is true, one panel per dataset and model.

    A calibrated p-value follows the line; the grey band holds it with probability 0.95.
    """
    panels = list(tests.groupby(["dataset", "model"], sort=False))
    with drawing(2.8 * len(panels), 3.5, path) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, ((dataset, model), panel_tests) in zip(grid, panels, strict=True):
            u = np.linspace(0.0, 1.0, 101)
            width = 1.358 / np.sqrt(len(panel_tests))
            axes.fill_between(
                u, np.clip(u - width, 0, 1), np.clip(u + width, 0, 1), color=GREY, alpha=0.15, linewidth=0
            )
            kinds = [kind for kind in P_NAMES if panel_tests[kind].notna().any()]
            values = {P_NAMES[kind]: panel_tests[kind].to_numpy() for kind in kinds}
            _draw_cumulative(axes, values, "{} (size {:.2f})")
            axes.set_title(f"{MODEL_NAMES.get(str(model), model)}, {str(dataset).capitalize()}")
            axes.set_xlabel("p-value")
            axes.legend(loc="lower right", fontsize=7.0, handlelength=1.2)
        grid[0].set_ylabel("share of true hypotheses")


def draw_power(table: pd.DataFrame, path: Path) -> None:
    """Write the figure: the share of wrong hypotheses that are rejected at 0.05.

    `table` is that of `keydyn.lab.calibration.measurements.power_table`.
    """
    groups = list(table.groupby(["dataset", "model"], sort=False))
    hypotheses = list(dict.fromkeys(table["hypothesis"]))
    with drawing(6.4, 0.9 + 0.28 * len(groups) * len(hypotheses), path) as figure:
        axes = figure.subplots()
        step = len(groups) + 1.0
        for column, ((dataset, model), group) in enumerate(groups):
            shares = group.set_index("hypothesis").loc[hypotheses, "one_sided"].to_numpy()
            place = step * np.arange(len(hypotheses)) + column
            label = f"{MODEL_NAMES.get(str(model), model)}, {str(dataset).capitalize()}"
            axes.barh(place, shares, height=0.8, color=COLOURS[column], label=label)
            ends = group.set_index("hypothesis").loc[hypotheses, ["low", "high"]].to_numpy()
            axes.hlines(place, ends[:, 0], ends[:, 1], color="black", linewidth=0.8)
            for at, share, high in zip(place, shares, ends[:, 1], strict=True):
                inside = share >= 0.15
                x, colour = (0.06, "white") if inside else (high + 0.01, "black")
                axes.text(x, at, f"{share:.2f}", va="center", color=colour, fontsize=7.5)
        axes.axvline(LEVEL, color=GREY, linewidth=0.8, linestyle="--")
        centre = step * np.arange(len(hypotheses)) + 0.5 * (len(groups) - 1)
        axes.set_yticks(centre, hypotheses)
        axes.invert_yaxis()
        axes.set(xlim=(0.0, 1.08), xlabel="share rejected at 0.05", title="Wrong hypotheses that are found")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_cumulative(axes: Axes, values: Mapping[Any, np.ndarray], label: str) -> None:
    """Cumulative p-values by name over the uniform line; `label` has room for name and share rejected."""
    axes.axvspan(0.0, LEVEL, color=GREY, alpha=0.2, linewidth=0)
    axes.plot([0.0, 1.0], [0.0, 1.0], color="black", linestyle="--", linewidth=0.8)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    for column, (name, of) in enumerate(values.items()):
        x = np.concatenate([[0.0], np.sort(of), [1.0]])
        y = np.concatenate([[0.0], np.arange(1, len(of) + 1) / len(of), [1.0]])
        text = label.format(name, np.mean(of <= LEVEL))
        axes.step(x, y, where="post", color=COLOURS[column], linewidth=1.4, label=text)
