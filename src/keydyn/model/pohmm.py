"""The estimators `POHMM` and `HMM` (a POHMM with one event type), and their summary table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin

from keydyn.arrays import Floats, Given
from keydyn.model import model_files
from keydyn.model.ask.generative import Generative
from keydyn.model.ask.scoring import Scoring
from keydyn.model.check.diagnostics import Diagnostics
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import SINGLE_TYPE
from keydyn.model.families.family import Emission
from keydyn.model.fit.chunks import Chunks
from keydyn.model.fit.estimator import Estimator, ModelState
from keydyn.model.model_files import restorable
from keydyn.model.theta import given
from keydyn.model.watch.online_batch import OnlineBatch, OnlineFilter

STOPPED = {"tol": "converged", "max_iter": "limit of iterations", "decrease": "no further gain"}
MOST_ROWS = 30
HALF = np.array(0.5)


@restorable
class POHMM(Diagnostics, Chunks, Generative, Scoring, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Partially observable hidden Markov model (Monaco and Tappert, 2018).

    A hidden Markov model whose start, transition and emission parameters depend on an observed event type.
    The event type at n conditions the emission at n; the types at n − 1 and n condition the step between.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : name of a family, or a list with one per feature: normal, lognormal, gamma, exponential,
        student, logstudent, categorical; or a `Family` object, such as `Student(df=3.0)`
    smoothing : "frequency" (the fewer events, the more an estimate is drawn towards the marginals), None, a
        fixed share of the marginal, or a dict of these by "start", "transitions", "emission"
    spread : initial states lie within this many standard deviations of the mean
    tol : stop when the log-likelihood gains less than this; may be 0
    max_iter : maximal number of iterations, each an expectation and a maximisation step
    n_init : number of starts, of which the best result is kept; locations are jittered from the second on.
        A warm start is always a single one
    random_state : seed or generator of the jitter
    warm_start : whether `fit` continues from the current parameters
    fixed : which of "start", "transitions", "emission" are not estimated
    marginals : "printed" (the paper's weights) or "exact" (types are weighted by how often they occur)
    min_scale : smallest scale of an emission; "auto" is a thousandth of the feature's own spread
    handle_unknown : "marginal" scores unseen event types by the marginals, "error" refuses them
    order_states : whether to number states by the marginal location of the leading feature, smallest first
    leading_feature : number of the leading feature
    density_floor : smallest density of each feature, or None. With a floor, scores are no longer
        log-densities: see the guide
    count_floor : smallest divisor in the maximisation step (published settings)
    spread_features : "all" features are spread at the start, or only the "leading" one
    spread_scale : spread in units of the standard deviation of each "type", or of "all" events
    start_estimate : start probabilities from "sequence_start", or from each type's "first_occurrence"
    transition_weights : smoothing weights that exceed one are made "proper", or handled as "published"
    verbose : 1 prints each iteration to standard error
    callback : called with an `Iteration` at each step; the fit stops if it returns true

    Attributes
    ----------
    event_types_ : (m,) the event types
    startprob_ : (m, M) π[j | ω]
    transmat_ : (m, m, M, M) a[i, j | ψ, ω], as transmat_[ψ, ω, i, j]; built on access, and refused above
        2 GiB; `transmat_between` gives single pairs
    emission_ : list of `Emission`, one per feature, parameters (m, M)
    event_startprob_ : (m,) π[ω]
    event_transmat_ : (m, m) a[ψ, ω], built on access like `transmat_`
    event_prob_ : (m,) Π[ω], the share of each type among all events
    stationary_ : (m, M) Π[j | ω], the share of each state among the events of a type
    marginal_ : `Marginal`, the parameters with event types integrated out
    log_likelihood_ : log-likelihood of the training data
    history_ : (n_iter_,) log-likelihood at each expectation step
    n_iter_ : number of expectation steps
    stop_reason_ : "tol", "decrease", "max_iter" or "callback"
    converged_ : whether `stop_reason_` is "tol"
    n_parameters_ : number of free parameters that the likelihood depends on
    n_parameters_full_ : number of free parameters with all m² pairs, the paper's count
    scale_floored_ : for each feature, where the scale floor acted, (m, M)
    init_results_ : the `FitResult` of every start
    n_features_in_ : K
    feature_names_in_ : (K,) if the input had names

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM
    >>> rng = np.random.default_rng(0)
    >>> keys = np.array(list("the cat sat on the mat ") * 20)
    >>> tau = rng.lognormal(np.where(keys == " ", 6.0, 5.0), 0.3)[:, None]  # milliseconds
    >>> model = POHMM(n_states=2, emission="lognormal").fit(tau, events=keys)
    >>> model.converged_, len(model.event_types_), model.startprob_.shape
    (False, 10, (10, 2))
    >>> bool(np.isclose(model.score_samples(tau, events=keys).sum(), model.score(tau, events=keys)))
    True
    """

    @classmethod
    def published(cls, emission: Any = "lognormal", **parameters: Any) -> Self:
        """An estimator with the settings of the paper's tables, including deviations from its equations.

        Examples
        --------
        >>> POHMM.published("normal").emission
        'normal'
        """
        settings: dict[str, Any] = {
            "emission": emission,
            "min_scale": 1e-5,
            "order_states": False,
            "density_floor": 1e-5,
            "count_floor": 1e-5,
            "spread_features": "leading",
            "spread_scale": "all",
            "start_estimate": "first_occurrence",
            "transition_weights": "published",
        }
        return cls(**(settings | parameters))

    @classmethod
    def from_parameters(
        cls,
        event_types: Sequence[Any],
        startprob: ArrayLike,
        transmat: ArrayLike,
        emission: Sequence[Any],
        event_startprob: Given = None,
        event_transmat: Given = None,
        **parameters: Any,
    ) -> Self:
        """A fitted model with these parameters; states keep the given order.

        `startprob` is (m, M), `transmat` (m, m, M, M), and `emission` a list with one item per feature,
        `(family, loc, scale)` or `(family, {name: (m, M) array})`. Without an event chain all types are
        equally likely at every step. Further keyword arguments are passed to the constructor.

        Examples
        --------
        >>> uniform = np.full((2, 2, 2, 2), 0.5)
        >>> known = POHMM.from_parameters(
        ...     ["a", "b"], np.full((2, 2), 0.5), uniform, [("lognormal", [[4.5, 6.0]] * 2, [[0.3, 0.3]] * 2)]
        ... )
        >>> known.predict([[90.0], [410.0]], events=["a", "b"]).tolist()
        [0, 1]
        """
        made = cls(**({"smoothing": None} | parameters))
        theta = given.given_parameters(
            event_types, startprob, transmat, emission, (event_startprob, event_transmat), made.marginals
        )
        if parameters.get("n_states", theta.n_states) != theta.n_states:
            raise ValueError(f"n_states is {made.n_states}, but startprob has {theta.n_states} states")
        made.n_states = theta.n_states
        made.emission = [e.distribution if e.distribution.settings() else e.family for e in theta.emission]
        made._settings(len(emission))
        made._state = ModelState.of(theta)
        return made

    def summary(self, most: int = MOST_ROWS) -> Summary:
        """A readable table with a row for each of the `most` most frequent event types, and one for all.

        It has the share of each type, the share of each state among its events, and the median of each
        feature in each state. `print` shows it as text, notebooks as a table. The lines above the table say,
        among other things, whether the model has more parameters than events it was learnt from.
        """
        self._known()
        return summary_of(self._as_it_is(), most)

    def to_hmm(self) -> HMM:
        """The marginal model: an `HMM` with event types integrated out.

        Examples
        --------
        >>> model.to_hmm().transmat_.shape
        (1, 1, 2, 2)
        """
        state = self._known()
        marginal = state.parameters.known_marginal()
        hmm = HMM.from_parameters(
            marginal.startprob,
            marginal.transmat,
            [(e.distribution, e.params) for e in marginal.emission],
            density_floor=self._floor,
        )
        hmm._state = replace(hmm._state, feature_names=state.feature_names)
        return hmm

    def online(self) -> OnlineFilter:
        """An `OnlineFilter` that scores a stream one event at a time.

        Examples
        --------
        >>> watch = model.online()
        >>> scores = [watch.update(x, key) for x, key in zip(tau, keys)]
        >>> bool(np.isclose(sum(scores), model.score(tau, events=keys)))
        True
        """
        self._known()
        return OnlineFilter(OnlineBatch([self._as_it_is()], 1))

    def save(self, path: str | PathLike[str], *, event_chain: bool = True) -> None:
        """Write the model to a file (docs/file-format.md) that `keydyn.load` reads.

        The event chain reveals a fixed text. `event_chain=False` leaves its probabilities out. Scoring does
        not need them, but `score_joint`, `predict_events`, `decode_events`, `sample` without events and
        `predict_next` without a next event do. The types and pairs that occurred stay in the file and reveal
        much: see docs/privacy.md.

        Examples
        --------
        >>> from keydyn import load
        >>> model.save("user.keydyn")
        >>> load("user.keydyn").score(tau, events=keys) == model.score(tau, events=keys)
        True
        """
        self._known()
        model_files.save(self._as_it_is(), path, event_chain=event_chain)


@restorable
class HMM(POHMM):
    """The hidden Markov model: a POHMM in which all events have the same type.

    `events` is accepted everywhere and ignored. With one type the marginals are the parameters themselves,
    so smoothing changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(np.where(rng.random((400, 1)) < 0.7, 0.0, 6.0), 1.0)
    >>> model = HMM(n_states=2, emission="normal").fit(x)
    >>> model.emission_[0].loc.round().astype(int).tolist()
    [[0, 6]]
    """

    @classmethod
    def from_parameters(  # type: ignore[override]
        cls, startprob: ArrayLike, transmat: ArrayLike, emission: Sequence[Any], **parameters: Any
    ) -> Self:
        """A fitted model from `startprob` (M,), `transmat` (M, M) and `emission`.

        `emission` is a list with one item per feature, `(family, loc, scale)` or
        `(family, {name: (M,) array})`.
        """
        rows = [*map(_as_rows, emission)] if isinstance(emission, (list, tuple)) else emission
        startprob, transmat = np.asarray(startprob), np.asarray(transmat)
        return super().from_parameters(
            [SINGLE_TYPE], startprob[None], transmat[None, None], rows, **parameters
        )

    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        return super()._as_sequences(X, None, lengths).without_events()


def _as_rows(item: Any) -> Any:
    """An item of `emission` whose values, one per state, become the row of the only event type."""
    if isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[1], Mapping):
        return item[0], {name: _as_row(values) for name, values in item[1].items()}
    if isinstance(item, (tuple, list)) and len(item) == 3:
        return item[0], _as_row(item[1]), _as_row(item[2])
    return item


def _as_row(values: ArrayLike) -> Any:
    return values if np.ndim(values) == 0 else np.asarray(values)[None]


class Summary:
    """A fitted model as a table, for `print` and for notebooks.

    Attributes
    ----------
    title : one line on the model; facts : one line on its fit
    columns, rows : a row per event type, the most frequent first, and one for all events
    """

    def __init__(self, title: str, facts: str, columns: list[str], rows: list[list[str]]) -> None:
        self.title, self.facts, self.columns, self.rows = title, facts, columns, rows

    def __repr__(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[c]) for row in table) for c in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if c == 0 else cell.rjust(width)
                for c, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.title, self.facts, "", lines[0], "-" * max(map(len, lines)), *lines[1:]])

    def _repr_html_(self) -> str:
        """The table for notebooks, with the names of event types escaped."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + f"<th style='text-align:left'>{escape(row[0])}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        return (
            f"<p><b>{escape(self.title)}</b><br>{escape(self.facts)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def summary_of(model: Estimator, most: int = MOST_ROWS) -> Summary:
    """The summary of a fitted model, with the `most` most frequent event types."""
    types, n_states = model.event_types_, model.startprob_.shape[1]
    emission = model.emission_
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    names = names or [f"x{k}" if len(emission) > 1 else "x" for k in range(len(emission))]
    columns = ["event type", "share"]
    columns += [f"state {j}" for j in range(n_states)]
    columns += [f"{name}, state {j}" for name in names for j in range(n_states)]
    shares, stationary = model.event_prob_, model.stationary_
    medians = [_median(each) for each in emission]
    order = np.argsort(-shares, kind="stable")[:most]
    single = vocabulary.is_single(types)
    rows = [] if single else [_row(str(types[w]), shares[w], stationary[w], medians, w) for w in order]
    if len(types) > len(order):
        rows.append([f"… {len(types) - len(order)} more", *[""] * (len(columns) - 1)])
    if model._parameters.has_marginal:
        overall = shares @ stationary
        rows.append(_row("all", 1.0, overall, [_median(each) for each in model.marginal_.emission], ...))
    families = ", ".join(dict.fromkeys(each.family for each in emission))
    title = f"{type(model).__name__} with {_counted(n_states, 'state')}, {families}"
    if not single:
        title += f", {_counted(len(types), 'event type')}"
    return Summary(title, _facts(model), columns, rows)


def _median(emission: Emission) -> Floats:
    """The median of each distribution, which suits the skewed distributions of times better than the mean."""
    return np.asarray(emission.distribution.quantile(HALF, emission.params), dtype=np.float64)


def _row(name: str, share: float, states: Floats, medians: list[Floats], place: Any) -> list[str]:
    values = [f"{value:.4g}" for median in medians for value in np.atleast_1d(median[place])]
    return [name, f"{share:.3f}", *(f"{state:.3f}" for state in states), *values]


def _facts(model: Estimator) -> str:
    facts = [_counted(model.n_parameters_, "free parameter")] if hasattr(model, "n_parameters_") else []
    learnt = getattr(model._state.result, "statistics", None) if facts else None
    if learnt is not None:
        events = round(learnt.occupancy.sum())
        few = ", fewer than parameters" if events < model.n_parameters_ else ""
        facts.append(f"{_counted(events, 'event')}{few}")
    if hasattr(model, "log_likelihood_"):
        facts.append(f"log-likelihood {model.log_likelihood_:.6g}")
    if hasattr(model, "stop_reason_"):
        reason = STOPPED.get(model.stop_reason_, model.stop_reason_)
        facts.append(f"{_counted(model.n_iter_, 'iteration')}, {reason}")
    return "; ".join([*facts, "shares of event types and states, medians of the features"])


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
