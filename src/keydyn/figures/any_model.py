"""Figures for any fitted model and any events: states over time, densities, transitions, residuals.

Each function returns a matplotlib `Figure`; all are available from `keydyn.figures`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from keydyn.arrays import Floats
from keydyn.figures.marginal_density import Typist, marginal_density_figure
from keydyn.figures.residuals import draw_residuals
from keydyn.figures.style import COLOURS, GREY, blank, house_style, label_log_axis, text_of
from keydyn.model import POHMM, Sequences
from keydyn.model.data.sequences import as_sequences

MOST_EVENTS = 200
# The largest number of event types whose states are shown.
MOST_TYPES = 12


def states_figure(
    model: POHMM,
    X: Any,
    *,
    events: Any = None,
    lengths: ArrayLike | None = None,
    sequence: int = 0,
    n_events: int = 60,
) -> Figure:
    """The events of one sequence over time: each feature's values, coloured by the most probable state.

    The probability of every state is shown below. Event types are written in full under the events.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM
    >>> from keydyn.figures import states_figure
    >>> x, keys = np.random.default_rng(0).lognormal(5.0, 0.4, (200, 1)), list("the ") * 50
    >>> model = POHMM().fit(x, events=keys)
    >>> states_figure(model, x, events=keys, n_events=40).savefig("states.png")
    """
    if not 1 <= n_events <= MOST_EVENTS:
        raise ValueError(f"n_events must be 1 to {MOST_EVENTS}, not {n_events}")
    one = as_sequences(X, events, lengths)[sequence]
    posterior = model.predict_proba(one)[:n_events]
    values, states = one.X[:n_events], np.argmax(posterior, axis=1)
    labels = [text_of("" if label is None else label) for label in one.labels()[:n_events]]
    n_features, place = values.shape[1], np.arange(len(values))
    with house_style():
        figure = blank(max(6.4, 0.13 * len(values) + 1.5), 1.9 * n_features + 2.2)
        rows = figure.subplots(n_features + 1, 1, sharex=True, squeeze=False)[:, 0]
        for k, axes in enumerate(rows[:-1]):
            axes.plot(place, values[:, k], color=GREY, linewidth=0.5, zorder=1)
            for j in range(posterior.shape[1]):
                here = states == j
                axes.scatter(
                    place[here], values[here, k], s=14, color=_colour(j), zorder=2, label=f"state {j}"
                )
            if np.nanmin(values[:, k], initial=np.inf) > 0:
                axes.set_yscale("log")
                label_log_axis(axes.yaxis)
            axes.set_ylabel(text_of(_feature_names(one, model)[k]))
        rows[0].legend(loc="upper right", ncols=posterior.shape[1])
        rows[-1].stackplot(
            place, posterior.T, colors=[_colour(j) for j in range(posterior.shape[1])], alpha=0.5
        )
        rows[-1].set(ylim=(0.0, 1.0), ylabel="P(state)", xlabel="event")
        if any(labels):
            longest = max(map(len, labels))
            rows[-1].set_xticks(place, labels, rotation=90 if longest > 1 else 0, fontsize=6.5)
        rows[-1].margins(x=0.01)
        return figure


def densities_figure(
    model: POHMM, X: Any, *, events: Any = None, lengths: ArrayLike | None = None, title: str = ""
) -> Figure:
    """Each feature's density in each state, over the observed values; the first feature orders the states.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM
    >>> from keydyn.figures import densities_figure
    >>> x, keys = np.random.default_rng(0).lognormal(5.0, 0.4, (200, 1)), list("the ") * 50
    >>> model = POHMM().fit(x, events=keys)
    >>> densities_figure(model, x, events=keys).savefig("densities.png")
    """
    sequences = as_sequences(X, events, lengths)
    names = _feature_names(sequences, model)
    typist = Typist(title or type(model).__name__, model, sequences)
    return marginal_density_figure([typist], names, share_of="events", states="state {}", by_place=True)


def transitions_figure(model: POHMM) -> Figure:
    """The transition matrix of the states, marginalised over event types, and each type's share of states.

    Only the most frequent types are shown; their names are written in full.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM
    >>> from keydyn.figures import transitions_figure
    >>> x, keys = np.random.default_rng(0).lognormal(5.0, 0.4, (200, 1)), list("the ") * 50
    >>> transitions_figure(POHMM().fit(x, events=keys)).savefig("transitions.png")
    """
    order = np.argsort(-model.event_prob_, kind="stable")[:MOST_TYPES]
    shares, marginal = model.stationary_[order], model.marginal_.transmat
    n_states = len(marginal)
    with house_style():
        figure = blank(7.6, max(2.6, 0.32 * len(order) + 1.4))
        left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.5])
        _matrix(left, marginal)
        bottom = np.zeros(len(order))
        for j in range(n_states):
            right.barh(np.arange(len(order)), shares[:, j], left=bottom, color=_colour(j), label=f"state {j}")
            bottom += shares[:, j]
        right.set_yticks(np.arange(len(order)), [text_of(model.event_types_[w]) or "all" for w in order])
        right.invert_yaxis()
        right.set(title="States of each event type", xlabel="share of events", xlim=(0.0, 1.0))
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=n_states)
        return figure


def residuals_figure(
    model: POHMM,
    X: Any,
    *,
    events: Any = None,
    lengths: ArrayLike | None = None,
    feature: int = 0,
    n_lags: int = 20,
) -> Figure:
    """Forecast pseudo-residuals of a feature, against the standard normal, and their autocorrelation.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM
    >>> from keydyn.figures import residuals_figure
    >>> x, keys = np.random.default_rng(0).lognormal(5.0, 0.4, (200, 1)), list("the ") * 50
    >>> model = POHMM().fit(x, events=keys)
    >>> residuals_figure(model, x, events=keys).savefig("residuals.png")
    """
    sequences = as_sequences(X, events, lengths)
    residuals = model.forecast_residuals(sequences)[:, feature]
    with house_style():
        figure = blank(8.2, 3.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.2])
        draw_residuals(left, right, "", {type(model).__name__: residuals}, sequences.lengths, n_lags)
        return figure


def _matrix(axes: Axes, transmat: Floats) -> None:
    axes.imshow(transmat, cmap="Blues", vmin=0.0, vmax=1.0)
    for (i, j), probability in np.ndenumerate(transmat):
        shade = "white" if probability > 0.6 else "black"
        axes.text(j, i, f"{probability:.2f}", ha="center", va="center", color=shade)
    states = np.arange(len(transmat))
    axes.set_xticks(states, [str(j) for j in states])
    axes.set_yticks(states, [str(j) for j in states])
    axes.set(title="Transitions between states", xlabel="to state", ylabel="from state")


def _feature_names(sequences: Sequences, model: POHMM) -> tuple[str, ...]:
    """The names of features from the input or the model, or x0, x1, …."""
    names = sequences.feature_names or tuple(str(name) for name in getattr(model, "feature_names_in_", []))
    return names or tuple(f"x{k}" for k in range(sequences.n_features))


def _colour(state: int) -> str:
    return COLOURS[state % len(COLOURS)]
