"""A figure of the active and the passive state of people: model densities over the observed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keydyn.arrays import Floats, Integers
from keydyn.figures.style import COLOURS, blank, house_style, label_log_axis, text_of
from keydyn.model import POHMM, Sequences

STATE_NAMES = ("active", "passive")
LABELS = {"tau": "press-press interval (ms)", "duration": "hold time (ms)"}
# The ratio of a bin's ends on a logarithmic axis, the same in every panel so that shares can be compared.
RATIO = 1.2
BINS = 30
# The quantiles shown; the longest breaks would leave no room for the rest.
SHOWN = (0.005, 0.995)
WIDE = 60.0
LINES = ("solid", (0.0, (5.0, 1.5)), (0.0, (1.0, 1.2)))


@dataclass(frozen=True, eq=False)
class Typist:
    """One person: the title of the row, the fitted model, and samples with the model's features."""

    title: str
    model: POHMM
    sequences: Sequences


def marginal_density_figure(
    typists: Sequence[Typist],
    features: Sequence[str] = ("tau", "duration"),
    share_of: str = "keys",
    states: str = "",
    by_place: bool = False,
) -> Figure:
    """A figure with a row per person and a column per feature; the first feature orders the states.

    Lines are each state's marginal density, the mixture over event types weighted by their frequency; bars
    count every event in each state by its posterior probability. Both add up to all events. The longest and
    the shortest half per cent are not shown. `states` is a format for the number of a state; by default the
    first state is active and the second passive. With `by_place`, the features are all columns in order, and
    their names are labels only.
    """
    if not typists or not features:
        raise ValueError("there is nothing to draw: no person or no feature")
    with house_style():
        figure = blank(3.4 * max(len(features), 1.5), 1.65 * len(typists) + 0.8)
        grid = figure.subplots(len(typists), len(features), squeeze=False, sharex="col")
        for row, typist in zip(grid, typists, strict=True):
            columns = [
                place if by_place else _column(typist.sequences, name) for place, name in enumerate(features)
            ]
            order = state_order(typist.model, columns[0])
            posterior = typist.model.predict_proba(typist.sequences)
            for axes, column in zip(row, columns, strict=True):
                _draw(axes, typist, posterior, column, order, states)
            row[0].set_title(text_of(typist.title))
            row[0].set_ylabel(f"share of {share_of}")
        for axes, name in zip(grid[-1], features, strict=True):
            axes.set_xlabel(LABELS.get(name, text_of(name)))
            if axes.get_xscale() == "log":
                low, high = axes.get_xlim()
                label_log_axis(axes.xaxis, wide=high / low > WIDE)
        figure.align_ylabels()
        # Show the longest legend, which is that of the person with the most states.
        legends = [axes.get_legend_handles_labels() for axes in grid[:, 0]]
        handles, texts = max(legends, key=lambda legend: len(legend[1]))
        figure.legend(handles, texts, loc="outside lower center", ncols=len(texts))
        return figure


def state_densities(model: POHMM, feature: int, x: Floats) -> Floats:
    """Densities (M, G) of the states at x, weighted by their shares: Σ_ω Π[ω] Π[j|ω] f(x; b[j|ω])."""
    emission = model.emission_[feature]
    each = np.exp(emission.distribution.log_density(x[:, None, None], emission.params))
    shares = model.event_prob_[:, None] * model.stationary_
    return np.asarray(np.einsum("gmj,mj->jg", each, shares))


def state_order(model: POHMM, feature: int) -> Integers:
    """The states ordered by their marginal location, because fits with published settings are not ordered."""
    marginal = model.marginal_.emission[feature]
    return np.argsort(marginal.distribution.location(marginal.params), kind="stable")


def state_name(place: int) -> str:
    """The name of the state at this place of the order."""
    return STATE_NAMES[place] if place < len(STATE_NAMES) else f"state {place}"


def _draw(axes: Axes, typist: Typist, posterior: Floats, column: int, order: Integers, states: str) -> None:
    values = typist.sequences.X[:, column]
    known = ~np.isnan(values)
    values, posterior = values[known], posterior[known]
    if len(values) == 0:
        raise ValueError(f"{typist.title}: no value to draw")
    on_log_scale = bool(values.min() > 0)
    edges = _edges(values, on_log_scale)
    # A bin in ln x at x has the width x · step.
    x = np.geomspace(edges[0], edges[-1], 400) if on_log_scale else np.linspace(edges[0], edges[-1], 400)
    width = x * np.log(edges[1] / edges[0]) if on_log_scale else np.full(len(x), edges[1] - edges[0])
    density = state_densities(typist.model, column, x) * width
    for place, state in enumerate(order):
        colour = COLOURS[place % len(COLOURS)]
        weights = posterior[:, state] / len(values)
        axes.hist(values, bins=list(edges), weights=weights, color=colour, alpha=0.28)
        axes.plot(
            x,
            density[state],
            color=colour,
            linestyle=LINES[place % len(LINES)],
            linewidth=1.5,
            label=states.format(state) if states else f"{state_name(place)} state",
        )
    if on_log_scale:
        axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))


def _edges(values: Floats, on_log_scale: bool) -> Floats:
    low, high = np.quantile(values, SHOWN)
    if on_log_scale:
        first, last = np.floor(np.log(low) / np.log(RATIO)), np.ceil(np.log(high) / np.log(RATIO))
        return np.asarray(RATIO ** np.arange(first, max(last, first + 1) + 1))
    room = 0.05 * (high - low) or 0.5
    return np.linspace(low - room, high + room, BINS + 1)


def _column(sequences: Sequences, name: str) -> int:
    names = sequences.feature_names or ()
    if name not in names:
        raise ValueError(f"no feature {name!r}; there are {', '.join(names) or 'none with a name'}")
    return names.index(name)
