"""Uncertain labels of the hidden state: sequences with labels, and a model of the labels' reliability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.data.vocabulary import MISSING
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.relatives.parameter_tables import ContextTables, Floored, Training
from keydyn.model.theta.lattice import StatePosterior, log_densities


class LabelledSequences(Sequences):
    """Sequences whose event types are labels of the hidden state; an event without a type has no label."""


def labelled(X: Any, labels: Any, lengths: Given) -> Sequences:
    """Sequences with labels, given in the forms that events may have; plain sequences without labels."""
    several = X if isinstance(X, (list, tuple)) else []
    looked = [isinstance(one, LabelledSequences) for one in several]
    if any(looked) and not all(looked):
        raise ValueError(f"some of the sequences have labels, number {looked.index(False)} has none")
    sequences = as_sequences(X, None, lengths)
    if labels is None:
        return sequences if isinstance(sequences, LabelledSequences) else sequences.without_events()
    values, _, offsets = sequences.engine_arrays
    try:
        said = as_sequences(np.zeros((sequences.n_events, 1)), labels, sequences.lengths)
    except ValueError as error:
        # Labels are read like event types; the message should speak of labels.
        text = str(error).replace("event types", "labels").replace("event type", "label")
        raise ValueError(text.replace("events", "labels")) from None
    arrays = values, said.engine_arrays[1], said.event_types, offsets
    return LabelledSequences.of_checked(*arrays, sequences.feature_names, sequences.names)


@dataclass(frozen=True)
class Reliability:
    """The model of labels: seen with probability `observed`, and then right with probability `true`.

    A wrong label is any of the others with equal probability. With `observed` None it is not modelled
    whether a label is seen. `estimated` lists which of "p_observed" and "p_true" are estimated.
    """

    observed: float | None
    true: float
    estimated: tuple[str, ...] = ()

    def log_factor(self, labels: Integers, n_states: int) -> Floats:
        """ln P(label | state) of each event and state, (N, M); −1 stands for no label."""
        seen = labels != MISSING
        wrong = (1.0 - self.true) / max(n_states - 1, 1)
        matches = labels[:, None] == np.arange(n_states)
        said = np.where(matches, self.true, wrong)
        if self.observed is not None:
            said = said * self.observed
        unsaid = 1.0 if self.observed is None else 1.0 - self.observed
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(np.where(seen[:, None], said, unsaid))
        return logs

    def updated(self, labels: Integers, weighted: Floats, weights: Floats) -> Reliability:
        """The M-step: the share of events with a label, and the expected share of labels that are right."""
        seen = labels != MISSING
        observed, true = self.observed, self.true
        if "p_observed" in self.estimated:
            observed = float(weights[seen].sum() / weights.sum())
        if "p_true" in self.estimated and seen.any():
            right = weighted[np.flatnonzero(seen), labels[seen]].sum()
            true = float(np.clip(right / weights[seen].sum(), 0.0, 1.0))
        return replace(self, observed=observed, true=true)


@dataclass(frozen=True)
class LabelledTables(ContextTables):
    """θ of the partially-HMM: one row of each table, and the reliability of labels.

    `names[j]` is the label of state j, or None.
    """

    reliability: Reliability
    names: tuple[Any, ...]

    def log_factor(self, labels: Integers | None) -> Floats | None:
        return None if labels is None else self.reliability.log_factor(labels, self.n_states)

    def maximised(
        self, evidence: Training, posterior: StatePosterior, settings: FitSettings
    ) -> tuple[Self, Floored]:
        theta, floored = super().maximised(evidence, posterior, settings)
        if evidence.labels is None:
            return theta, floored
        weights = evidence.event_weights[:, 0]
        reliability = self.reliability.updated(evidence.labels, posterior.states, weights)
        return replace(theta, reliability=reliability), floored

    def reordered(self, order: Integers) -> Self:
        """θ with its states renumbered; each keeps its label."""
        return replace(super().reordered(order), names=tuple(self.names[j] for j in order))


def lined_up(tables: ContextTables, evidence: Training, true: float) -> ContextTables:
    """Start values with states renumbered for the best agreement with the labels.

    Agreement is the expected number of labelled events in the named state, by the emissions alone. If labels
    are wrong more often than by chance, it is minimised instead.
    """
    labels = evidence.labels
    if labels is None or (labels == MISSING).all():
        return tables
    log_density = log_densities(tables, evidence.X, evidence.rows, None)
    shares = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    shares *= evidence.event_weights / shares.sum(axis=1, keepdims=True)
    seen = labels != MISSING
    agreement = weighted_sums(labels[seen], tables.n_states, shares[seen])
    worse_than_chance = true * tables.n_states < 1.0
    _, order = linear_sum_assignment(agreement, maximize=not worse_than_chance)
    return tables.reordered(order)


def is_probability(value: Any) -> bool:
    """Whether this is a number from 0 to 1."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 <= float(value) <= 1.0


def states_named(sequences: Sequences, names: tuple[Any, ...]) -> Integers | None:
    """The state that each event's label names, −1 if none was seen; raises `ValueError` if it is unknown."""
    if not isinstance(sequences, LabelledSequences):
        return None
    place = {name: j for j, name in enumerate(names) if name is not None}
    table = [place.get(label, len(names)) for label in sequences.event_types.tolist()]
    states = np.array([*table, MISSING], dtype=np.int64)[sequences.codes]
    if (states == len(names)).any():
        row = int(np.argmax(states == len(names)))
        label = sequences.event_types[sequences.codes[row]].item()
        known = ", ".join(repr(name) for name in place) or "none"
        raise ValueError(f"{sequences.place(row)}: label {label!r} names no state; labels are {known}")
    return states
