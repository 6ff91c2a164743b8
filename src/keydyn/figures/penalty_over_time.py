"""A figure of continuous verification: penalties of the genuine user and of impostors, and the threshold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keydyn.arrays import Floats
from keydyn.evaluation.continuous.penalty import WINDOW, first_above
from keydyn.figures.style import COLOURS, GREY, blank, house_style, text_of, write_figure

TITLE = f"Is it still them? Rank penalty over the last {WINDOW} keys"


def penalty_figure(
    genuine: Floats,
    impostors: Floats,
    threshold: float,
    title: str | None = None,
    name: str = "penalty",
) -> Figure:
    """Plot penalties (or suspicions) key by key, `genuine` (N,) and `impostors` (N, I), in one session.

    Impostors are shown by their mean and a band that holds 95 % of them. The triangle marks their mean
    rejection time: the number of keys before the first penalty above the threshold, or the whole session if
    there is none.
    """
    if impostors.ndim != 2 or len(impostors) != len(genuine) or impostors.size == 0:
        raise ValueError(
            f"{len(genuine)} penalties of the genuine user, but those of impostors have the shape "
            f"{impostors.shape}"
        )
    with house_style():
        figure = blank(6.4, 3.6)
        axes = figure.subplots()
        keys = np.arange(1, len(genuine) + 1)
        low, high = np.quantile(impostors, [0.025, 0.975], axis=1)
        rejected = mean_rejection(impostors, threshold)
        axes.fill_between(
            keys, low, high, color=COLOURS[1], alpha=0.18, linewidth=0, label="95 % of impostors"
        )
        axes.plot(keys, impostors.mean(axis=1), "--", color=COLOURS[1], label="impostors, mean")
        axes.plot(keys, genuine, color=COLOURS[0], linewidth=1.8, label="genuine user")
        axes.axhline(
            threshold, color=GREY, linewidth=0.9, linestyle=(0, (1, 1.5)), label=f"threshold, {threshold:.3g}"
        )
        axes.plot(
            rejected,
            threshold,
            "v",
            color="black",
            markersize=6,
            clip_on=False,
            zorder=5,
            label=f"impostors rejected after {rejected:.0f} keys on average",
        )
        axes.set_title(text_of(title) if title else TITLE, pad=10)
        axes.set(xlabel="key", ylabel=name, ylim=(0.0, None))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.margins(x=0.01)
        figure.legend(loc="outside lower center", ncols=3)
        return figure


def mean_rejection(impostors: Floats, threshold: float) -> float:
    """The mean over impostors (N, I) of the number of keys before the first penalty above the threshold."""
    return float(np.mean([first_above(column, threshold) for column in impostors.T]))


def draw_suspicion(genuine: Floats, impostors: Floats, threshold: float, path: Path) -> None:
    """Write a figure of suspicions to one file."""
    title = "Is it still them? Suspicion by key"
    write_figure(penalty_figure(genuine, impostors, threshold, title, name="suspicion"), path)
