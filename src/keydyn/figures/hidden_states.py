"""One sample and its hidden states: intervals along the text, and the marginal densities of the states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from keydyn.arrays import Floats, Integers
from keydyn.figures.marginal_density import state_densities, state_name
from keydyn.figures.style import COLOURS, GREY, drawing, label_log_axis, text_of
from keydyn.model import POHMM


def draw_hidden_states(
    model: POHMM, intervals: Floats, states: Integers, keys: Sequence[str], feature: int, path: Path
) -> None:
    """Write the figure; `intervals` are in milliseconds, one per key, and `feature` is their column."""
    with drawing(9.0, 3.4, path) as figure:
        along, densities = figure.subplots(1, 2, width_ratios=[2.2, 1.0])
        _draw_along(along, intervals, states, keys)
        _draw_densities(densities, model, intervals, states, feature)


def _draw_along(axes: Axes, intervals: Floats, states: Integers, keys: Sequence[str]) -> None:
    position = np.arange(len(intervals))
    axes.plot(position, intervals, color=GREY, linewidth=0.5, zorder=1)
    for j in range(states.max() + 1):
        here = states == j
        axes.scatter(position[here], intervals[here], s=14, color=COLOURS[j], label=state_name(j), zorder=2)
    axes.set_yscale("log")
    label_log_axis(axes.yaxis)
    axes.margins(x=0.01)
    names = [_short(key) for key in keys]
    # Names that are not a letter or a sign stand upright, in full.
    axes.set_xticks(position, names, fontsize=6.5, rotation=90 if max(map(len, names)) > 2 else 0)
    axes.set(
        title="Each key's interval, coloured by the most probable state", ylabel="press-press interval (ms)"
    )
    axes.legend(loc="upper right", ncols=2)


def _draw_densities(axes: Axes, model: POHMM, intervals: Floats, states: Integers, feature: int) -> None:
    """The state's marginal emission, weighted by its share, over the histogram of the sample."""
    edges = np.geomspace(intervals.min() * 0.9, intervals.max() * 1.1, 24)
    grid = np.geomspace(edges[0], edges[-1], 300)
    densities = state_densities(model, feature, grid)
    n_states = len(densities)
    axes.hist(
        [intervals[states == j] for j in range(n_states)],
        bins=list(edges),
        stacked=True,
        color=list(COLOURS[:n_states]),
        alpha=0.35,
        weights=[np.full(int(np.sum(states == j)), 1.0 / len(intervals)) for j in range(n_states)],
    )
    width = np.log(edges[1] / edges[0])
    for j, density in enumerate(densities):
        # A bin is a step in ln x, so its share is about f(x)·x·width.
        axes.plot(grid, density * grid * width, color=COLOURS[j], linewidth=1.4, label=state_name(j))
    axes.set_xscale("log")
    label_log_axis(axes.xaxis)
    axes.set(title="States of the model", xlabel="press-press interval (ms)", ylabel="share of keys")
    axes.legend()


def _short(key: str) -> str:
    """A name that fits under its tick."""
    return {"space": "␣", "shift": "⇧", "period": ".", "comma": ",", "backspace": "⌫", "enter": "⏎"}.get(
        key, text_of(key)
    )
