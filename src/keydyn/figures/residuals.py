"""Figures of pseudo-residuals: a Q–Q plot against the standard normal, and their autocorrelation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from scipy import special, stats

from keydyn.arrays import Floats
from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.model.check.pseudo_residuals import ResidualTest, check_residuals


def draw_residual_rows(
    rows: Mapping[str, tuple[Mapping[str, ArrayLike], ArrayLike | None]], path: Path, n_lags: int = 20
) -> None:
    """Write a figure with a row per title: residuals (N,) of one feature by model, and samples' lengths.

    On the left, residuals are plotted against their expected quantiles, with the band that holds each point
    with probability 0.95; on the right is their autocorrelation, with such a band for uncorrelated residuals.
    """
    with drawing(8.2, 0.4 + 3.2 * len(rows), path) as figure:
        grid = figure.subplots(len(rows), 2, width_ratios=[1.0, 1.2], squeeze=False)
        for (quantiles, lags), (title, (residuals, lengths)) in zip(grid, rows.items(), strict=True):
            draw_residuals(quantiles, lags, title, residuals, lengths, n_lags)


def draw_residuals(
    quantiles: Axes,
    lags: Axes,
    title: str,
    residuals: Mapping[str, ArrayLike],
    lengths: ArrayLike | None,
    n_lags: int,
) -> None:
    """Draw one row of the figure."""
    tests = {name: check_residuals(z, lengths, n_lags) for name, z in residuals.items()}
    for column, (name, z) in enumerate(residuals.items()):
        values = np.asarray(z, dtype=np.float64).ravel()
        _draw_quantiles(quantiles, values[~np.isnan(values)], f"{name} (KS {_p(tests[name].ks_p)})", column)
        _draw_lags(lags, tests[name], name, column, len(tests))
    edge = 1.96 / np.sqrt(min(test.n for test in tests.values()))
    lags.axhspan(-edge, edge, color=GREY, alpha=0.2, linewidth=0)
    lags.axhline(0.0, color=GREY, linewidth=0.6)
    lags.set(title=f"{title}: autocorrelation" if title else "Autocorrelation", xlabel="lag (events)")
    lags.xaxis.set_major_locator(MaxNLocator(integer=True))
    # Leave room for the legend above the bars.
    low, high = lags.get_ylim()
    lags.set_ylim(low, high + 0.3 * (high - low))
    lags.legend(loc="upper right", fontsize=8.0)
    quantiles.set(
        title=f"{title}: residuals" if title else "Residuals against the standard normal",
        xlabel="expected quantile",
        ylabel="residual",
    )
    quantiles.legend(loc="upper left", fontsize=8.0)


def _draw_quantiles(axes: Axes, z: Floats, label: str, column: int) -> None:
    n = len(z)
    expected = special.ndtri((np.arange(1, n + 1) - 0.5) / n)
    if column == 0:
        # An order statistic of uniform values has a beta distribution.
        rank = np.arange(1, n + 1)
        low, high = (special.ndtri(stats.beta.ppf(q, rank, n + 1 - rank)) for q in (0.025, 0.975))
        axes.fill_between(expected, low, high, color=GREY, alpha=0.2, linewidth=0)
        axes.axline((0.0, 0.0), slope=1.0, color="black", linestyle="--", linewidth=0.8)
    axes.plot(expected, np.sort(z), ".", markersize=3, color=COLOURS[column], label=label)


def _draw_lags(axes: Axes, test: ResidualTest, name: str, column: int, n_models: int) -> None:
    lags = np.arange(1, len(test.autocorrelation) + 1)
    shift = 0.22 * (column - 0.5 * (n_models - 1))
    label = f"{name} (Ljung–Box {_p(test.ljung_box_p)})"
    axes.vlines(lags + shift, 0.0, test.autocorrelation, color=COLOURS[column], linewidth=2.0, label=label)


def _p(value: float) -> str:
    return f"p = {value:.3f}" if value >= 0.001 else "p < 0.001"
