"""Continuous verification: the penalty of the genuine user beside those of impostors, and the threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.model.arrays import Floats


def draw_penalty(genuine: Floats, impostors: Floats, threshold: float, path: Path) -> None:
    """Write the figure: `genuine` (N,) and `impostors` (N, I) are penalties key by key of the same template.

    Impostors are shown by their mean and a band that holds 95 % of them.
    """
    keys = np.arange(1, len(genuine) + 1)
    with drawing(6.0, 3.4, path) as figure:
        axes = figure.subplots()
        low, high = np.quantile(impostors, [0.025, 0.975], axis=1)
        axes.fill_between(keys, low, high, color=COLOURS[1], alpha=0.2, linewidth=0)
        axes.plot(keys, impostors.mean(axis=1), color=COLOURS[1], label="impostors: mean and 95 % band")
        axes.plot(keys, genuine, color=COLOURS[0], label="genuine user")
        axes.axhline(threshold, color=GREY, linewidth=0.8, linestyle="--", label="threshold")
        axes.set(title="Is it still them? Rank penalty over the last 25 keys", xlabel="key", ylabel="penalty")
        axes.margins(x=0.01)
        axes.legend(loc="lower right")
