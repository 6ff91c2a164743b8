"""The partially-HMM (Ozkan, Akman and Kozat, 2014)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import MISSING, Types
from keydyn.model.relatives.contexts import Contexts, NoContext, Past
from keydyn.model.relatives.labels import (
    LabelledSequences,
    LabelledTables,
    Reliability,
    is_probability,
    labelled,
    lined_up,
    states_named,
)
from keydyn.model.relatives.parameter_tables import ContextTables, Training, uniform_tables
from keydyn.model.relatives.relative import Relative
from keydyn.model.theta.given import distribution, given_emissions

Answer = TypeVar("Answer")
# Start value of the probability that a label is right, if it is estimated.
START_TRUE = 0.9


def _taking_labels(question: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add the argument `labels=` to a query that all relatives have."""

    def ask(
        self: Relative, X: Any, *, events: Any = None, lengths: Given = None, labels: Any = None
    ) -> Answer:
        return question(self, labelled(X, labels, lengths))

    ask.__name__, ask.__qualname__ = question.__name__, f"PartiallyHMM.{question.__name__}"
    return ask


@dataclass(eq=False, repr=False)
class PartiallyHMM(Relative):
    """Hidden Markov model in which an uncertain label of the hidden state is seen at some events.

    A label is seen with probability `p_observed`, whatever the state, and is then right with probability
    `p_true`; a wrong label is any of the others with equal probability. Every method takes `labels=`, one per
    event in the form that events have, with None or NaN where none was seen; likelihoods are then
    ln P(x, labels). Without `labels` the model is the HMM. `events` is ignored.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : a family's name or a `Family`, or a list with one per feature
    p_observed : "estimate", or a number; None leaves it unmodelled which events have labels
    p_true : "estimate", or a number; with 1 the labelled events are supervised
    state_labels : the M labels, by state; None takes those of the training data, sorted. With
        `order_states` states are renumbered after the fit and each keeps its label: see `state_labels_`
    spread, tol, max_iter : as in `POHMM`, as are all others

    Attributes
    ----------
    startprob_ : (M,)
    transmat_ : (M, M)
    emission_ : parameters (1, M)
    p_observed_, p_true_ : the given or estimated values
    state_labels_ : (M,) the label of each state, or None; `state_labels_[predict(X)]` labels all events
    log_likelihood_, history_, n_iter_ : as in `POHMM`, as are all others

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import PartiallyHMM
    >>> rng = np.random.default_rng(0)
    >>> passive = rng.random(300) < 0.3
    >>> x = rng.lognormal(np.where(passive, 7.0, 5.0), 0.3)[:, None]
    >>> labels = [None if rng.random() < 0.8 else "passive" if p else "active" for p in passive]
    >>> model = PartiallyHMM().fit(x, labels=labels)
    >>> bool((model.predict(x) == passive).mean() > 0.9), sorted(model.state_labels_)
    (True, ['active', 'passive'])
    """

    p_observed: float | str | None = "estimate"
    p_true: float | str = "estimate"
    _: KW_ONLY
    state_labels: Sequence[Any] | None = None

    @classmethod
    def from_parameters(
        cls,
        startprob: ArrayLike,
        transmat: ArrayLike,
        emission: Sequence[Any],
        *,
        p_observed: float | None,
        p_true: float,
        state_labels: Sequence[Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """A fitted model with these parameters; states keep the given order.

        `transmat` is (M, M), `emission` a list of `(family, loc, scale)` or `(family, {name: array})` with
        arrays (1, M). By default labels are the numbers of the states.
        """
        start = distribution("startprob", startprob, (None,))
        m = len(start)
        steps = distribution("transmat", transmat, (m, m))
        emissions = given_emissions(emission, (1, m))
        names = tuple(vocabulary.check_types(range(m) if state_labels is None else state_labels).tolist())
        theta = LabelledTables(start, steps[None], emissions, Reliability(p_observed, p_true), names)
        own = {"p_observed": p_observed, "p_true": p_true, "state_labels": names}
        return cls._given(theta, (NoContext(), NoContext()), own, parameters)

    @property
    def transmat_(self) -> Floats:
        transmat: Floats = self._theta.transmat[0]
        return transmat

    @property
    def p_observed_(self) -> float | None:
        observed: float | None = self._theta.reliability.observed
        return observed

    @property
    def p_true_(self) -> float:
        return float(self._theta.reliability.true)

    @property
    def state_labels_(self) -> Types:
        return _labels_of(self._theta)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: Given = None,
        labels: Any = None,
        sample_weight: Given = None,
    ) -> Self:
        """Estimate the parameters by expectation–maximisation; see `Relative.fit` for the other arguments."""
        refuse_lengths_as_y(X, y, lengths)
        return self._fit(labelled(X, labels, lengths), sample_weight)

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: Given = None,
        labels: Any = None,
        sample_weight: Given = None,
    ) -> float:
        return super().score(labelled(X, labels, lengths), sample_weight=sample_weight)

    score_sequences = _taking_labels(Relative.score_sequences)
    score_samples = _taking_labels(Relative.score_samples)
    predict_proba = _taking_labels(Relative.predict_proba)
    filter_proba = _taking_labels(Relative.filter_proba)
    predict = _taking_labels(Relative.predict)
    decode = _taking_labels(Relative.decode)
    aic = _taking_labels(Relative.aic)
    bic = _taking_labels(Relative.bic)

    def _settings(self, n_features: int) -> FitSettings:
        settings = super()._settings(n_features)
        for name, words in (("p_observed", "'estimate', None or"), ("p_true", "'estimate' or")):
            given = getattr(self, name)
            estimated = isinstance(given, str) and given == "estimate"
            if not (estimated or is_probability(given) or (given is None and name == "p_observed")):
                raise ValueError(f"{name} must be {words} a number from 0 to 1, not {given!r}")
        if settings.n_states == 1 and not isinstance(self.p_true, str) and self.p_true != 1:
            raise ValueError("with one state there is no wrong label: p_true must be 1")
        if self.state_labels is not None:
            names = vocabulary.check_types(self.state_labels)
            if len(names) != settings.n_states:
                raise ValueError(f"state_labels has {len(names)} labels for {settings.n_states} states")
        return settings

    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        return labelled(X, None, lengths)

    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        return NoContext(), NoContext()

    def _labels_in_fitting(self, sequences: Sequences) -> tuple[Integers | None, tuple[Any, ...]]:
        names = self._names(sequences)
        return states_named(sequences, names), names

    def _labels_in_scoring(self, sequences: Sequences) -> Integers | None:
        return states_named(sequences, self._theta.names)

    def _names(self, sequences: Sequences) -> tuple[Any, ...]:
        """The label of each state: `state_labels`, or the labels in the training data, sorted."""
        n_states = int(self.n_states)
        if self.state_labels is not None:
            return tuple(vocabulary.check_types(self.state_labels).tolist())
        seen: list[Any] = []
        if isinstance(sequences, LabelledSequences):
            used = np.unique(sequences.codes[sequences.codes != MISSING])
            seen = sequences.event_types[used].tolist()
        if len(seen) > n_states:
            raise ValueError(f"there are {len(seen)} different labels for {n_states} states")
        return (*seen, *[None] * (n_states - len(seen)))

    def _start(
        self,
        evidence: Training,
        contexts: Contexts,
        settings: FitSettings,
        jitter: np.random.Generator | None,
    ) -> ContextTables:
        tables = uniform_tables(evidence, 1, 1, settings, jitter)
        estimated = [name for name in ("p_observed", "p_true") if isinstance(getattr(self, name), str)]
        true = (START_TRUE if settings.n_states > 1 else 1.0) if "p_true" in estimated else float(self.p_true)
        observed = None if self.p_observed is None or "p_observed" in estimated else float(self.p_observed)
        if evidence.labels is not None:
            if "p_observed" in estimated:
                weights = evidence.event_weights[:, 0]
                observed = float(weights[evidence.labels != MISSING].sum() / weights.sum())
            tables = lined_up(tables, evidence, true)
        reliability = Reliability(observed, true, tuple(estimated))
        return LabelledTables(tables.startprob, tables.transmat, tables.emission, reliability, evidence.names)

    def _count(self, theta: Any, rows: int, steps: int, fixed: tuple[str, ...]) -> int:
        seen = any(name is not None for name in theta.names)
        return super()._count(theta, rows, steps, fixed) + (len(theta.reliability.estimated) if seen else 0)


def _labels_of(theta: Any) -> Types:
    """The label of each state."""
    labels: Types = np.empty(len(theta.names), dtype=object)
    labels[:] = theta.names
    return labels
