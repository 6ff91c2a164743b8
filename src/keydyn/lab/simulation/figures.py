"""Figures of the simulation study: residuals of parameters, and hidden states found, by sample length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keydyn.figures.style import COLOURS, GREY, drawing

TITLES = {
    1: "1  POHMM on POHMM data",
    2: "2  smoothed POHMM on POHMM data",
    3: "3  POHMM on HMM data",
    4: "4  HMM on POHMM data",
}
PARTS = {"emission": "emission", "transition": "transition probability"}


def draw_residuals(errors: pd.DataFrame, path: Path) -> None:
    """Draw mean residuals (Eq. 37), one line per parameter, scenarios side by side.

    `errors` is the result of `keydyn.lab.simulation.report.errors` for one true model. The band shows ± one
    standard deviation of all parameters' residuals.
    """
    scenarios = sorted(errors["scenario"].unique())
    with drawing(2.6 * len(scenarios) + 0.6, 4.6, path) as figure:
        grid = _grid(figure, scenarios, "residual, {}")
        for row, part in enumerate(PARTS):
            for column, scenario in enumerate(scenarios):
                panel_errors = errors[(errors["scenario"] == scenario) & (errors["part"] == part)]
                _draw_residuals(grid[row, column], panel_errors, COLOURS[column])
        title = "Mean error of each parameter as a share of its largest; band: ± one standard deviation"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.0)


def _grid(figure: Figure, scenarios: Sequence[int], label: str) -> Any:
    """A grid with a row of panels per part and a column per scenario; `label` is a format for the part."""
    grid = figure.subplots(len(PARTS), len(scenarios), sharex=True, sharey=True, squeeze=False)
    for axes, scenario in zip(grid[0], scenarios, strict=True):
        axes.set_title(TITLES[scenario], fontsize=8.5)
    for axes, part in zip(grid[:, 0], PARTS.values(), strict=True):
        axes.set_ylabel(label.format(part))
    for axes in grid[-1]:
        axes.set_xlabel("events N")
    return grid


def draw_errors(errors: pd.DataFrame, path: Path) -> None:
    """Draw root mean square errors relative to those of the shortest samples, with the slope −½."""
    scenarios = sorted(errors["scenario"].unique())
    with drawing(7.2, 3.2, path) as figure:
        for axes, part in zip(figure.subplots(1, len(PARTS), sharey=True), PARTS, strict=True):
            _draw_relative(axes, {TITLES[one]: _relative_errors(errors, one, part) for one in scenarios})
            axes.set(xlabel="events N", title=PARTS[part].capitalize())
        figure.axes[0].set_ylabel(f"error relative to N = {errors['n'].min():g}")
        figure.axes[0].legend(fontsize=7.5)


def draw_truths(errors: pd.DataFrame, path: Path) -> None:
    """Draw the errors of several true models relative to the shortest samples, scenarios side by side."""
    scenarios, truths = sorted(errors["scenario"].unique()), list(dict.fromkeys(errors["truth"]))
    with drawing(2.6 * len(scenarios) + 1.6, 4.6, path) as figure:
        grid = _grid(figure, scenarios, f"error relative to N = {errors['n'].min():g},\n{{}}")
        of = {truth: errors[errors["truth"] == truth] for truth in truths}
        for row, part in enumerate(PARTS):
            for axes, scenario in zip(grid[row], scenarios, strict=True):
                lines = {name: _relative_errors(one, scenario, part) for name, one in of.items()}
                _draw_relative(axes, lines)
        grid[0, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8.0)


def draw_accuracy(accuracies: pd.DataFrame, path: Path) -> None:
    """Draw the share of hidden states found, and the share found with the true parameters."""
    scenarios = sorted(accuracies["scenario"].unique())
    with drawing(6.2, 3.2, path) as figure:
        axes = figure.subplots()
        for column, scenario in enumerate(scenarios):
            by_length = accuracies[accuracies["scenario"] == scenario].groupby("n")
            mean, best = by_length["accuracy"].mean(), by_length["best"].mean()
            axes.plot(
                mean.index, mean, marker="o", markersize=3, color=COLOURS[column], label=TITLES[scenario]
            )
            axes.plot(best.index, best, color=COLOURS[column], linestyle=":", linewidth=1.0)
        axes.plot([], [], color=GREY, linestyle=":", linewidth=1.0, label="by the true parameters")
        axes.set(xscale="log", xlabel="events N", ylabel="share of states found", title="Hidden states")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.0)


def _draw_relative(axes: Axes, lines: Mapping[str, pd.Series]) -> None:
    """Plot a line for each series of `_relative_errors`, and the slope −½."""
    for column, (label, relative) in enumerate(lines.items()):
        colour = COLOURS[column % len(COLOURS)]
        axes.plot(relative.index, relative, marker="o", markersize=3, color=colour, label=label)
    n = next(iter(lines.values())).index.to_numpy()
    axes.plot(n, np.sqrt(n[0] / n), color=GREY, linestyle="--", linewidth=0.8, label="slope −½")
    axes.set(xscale="log", yscale="log")


def _relative_errors(errors: pd.DataFrame, scenario: int, part: str) -> pd.Series:
    """The geometric mean over parameters of their errors, relative to the errors at the shortest N."""
    chosen = errors[(errors["scenario"] == scenario) & (errors["part"] == part)]
    table = chosen.pivot_table(index="n", columns="parameter", values="rmse")
    relative: pd.Series = np.exp(np.log(table / table.iloc[0]).mean(axis=1))
    return relative


def _draw_residuals(axes: Axes, errors: pd.DataFrame, colour: str) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    table = errors.pivot_table(index="n", columns="parameter", values="residual_mean")
    square = errors["residual_mean"] ** 2 + errors["residual_deviation"] ** 2
    spread = errors.assign(square=square).groupby("n")
    deviation = np.sqrt(spread["square"].mean() - spread["residual_mean"].mean() ** 2)
    centre = spread["residual_mean"].mean()
    axes.fill_between(
        centre.index, centre - deviation, centre + deviation, color=colour, alpha=0.15, linewidth=0
    )
    axes.plot(table.index, table.to_numpy(), color=colour, linewidth=0.9, alpha=0.8)
    axes.set_xscale("log")
