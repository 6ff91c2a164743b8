"""Who fails and why: each user's error rate against how much the typing changed, and how close others are."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd
from matplotlib.figure import Figure

from keydyn.figures.style import COLOURS, GREY, blank, house_style, text_of


def changed_typing_figure(users: pd.DataFrame, named: Collection[str], causes: Mapping[str, str]) -> Figure:
    """A panel per cause, a column of `users` with its label; a dot per user, those in `named` with names.

    `users` has the equal error rate, `eer`, and is indexed by user.
    """
    with house_style():
        figure = blank(3.6 * len(causes), 3.2)
        grid = figure.subplots(1, len(causes), squeeze=False, sharey=True)[0]
        worst = users.index.isin(list(named))
        for axes, (cause, label) in zip(grid, causes.items(), strict=True):
            axes.plot(users.loc[~worst, cause], users.loc[~worst, "eer"], "o", color=GREY, markersize=3.5)
            axes.plot(users.loc[worst, cause], users.loc[worst, "eer"], "s", color=COLOURS[1], markersize=4.5)
            middle = users.loc[worst, cause].median()
            for user, of in users[worst].iterrows():
                # Names stand outside of the group.
                left = of[cause] < middle
                axes.annotate(
                    text_of(user, 12),
                    (of[cause], of["eer"]),
                    (-6 if left else 6, 0),
                    textcoords="offset points",
                    ha="right" if left else "left",
                    va="center",
                    size=7.5,
                )
            axes.margins(x=0.14)
            axes.set_xlabel(label)
        grid[0].set_ylim(bottom=0.0)
        grid[0].set_ylabel("equal error rate")
        return figure
