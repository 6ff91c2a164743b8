"""Uncertain labels of the hidden state: how they come with sequences, and what they say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.data.settings import Settings
from keydyn.model.data.vocabulary import MISSING, Types
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.relatives.parameter_tables import ContextTables, Floored, Training
from keydyn.model.theta.lattice import StatePosterior, log_densities


@dataclass(frozen=True, eq=False)
class LabelledSequences(Sequences):
    """Sequences and a label of the hidden state at some of their events.

    Attributes
    ----------
    label_codes : (N,) index into `label_types`, −1 where no label was seen; None without labels
    label_types : the distinct labels, sorted
    """

    label_codes: Integers | None = None
    label_types: Types | None = None

    def __post_init__(self) -> None:
        """Check labels as events are checked, which have the same form."""
        super().__post_init__()
        if self.label_codes is None or self.label_types is None:
            if self.label_codes is not self.label_types:
                raise ValueError("label_codes and label_types go together")
            return
        try:
            events = Sequences(self.X, self.label_codes, self.label_types, self.offsets)
        except ValueError as error:
            raise ValueError(f"labels: {error}") from None
        object.__setattr__(self, "label_codes", events.codes)
        object.__setattr__(self, "label_types", events.event_types)

    def __getitem__(self, which: Any) -> LabelledSequences:
        chosen = super().__getitem__(which)
        codes = None if self.label_codes is None else self.as_events()[which].codes
        return _with_labels(chosen, codes, self.label_types)

    def __reduce__(self) -> Any:
        X, codes, offsets = self.engine_arrays
        plain = Sequences.of_checked(X, codes, self.event_types, offsets, self.feature_names, self.names)
        return _with_labels, (plain, self.label_codes, self.label_types)

    def as_events(self) -> Sequences:
        """The sequences with their labels in the place of event types."""
        assert self.label_codes is not None
        assert self.label_types is not None
        return Sequences(self.X, self.label_codes, self.label_types, self.offsets)


def labelled(X: Any, labels: Any, lengths: Given) -> LabelledSequences:
    """Sequences with labels, which have the form that events have elsewhere: flat, or a list of arrays."""
    if isinstance(X, LabelledSequences) and labels is None and lengths is None:
        return X
    if labels is None and isinstance(X, (list, tuple)) and any(isinstance(x, LabelledSequences) for x in X):
        return _joined(list(X))
    sequences = as_sequences(X, None, lengths).without_events()
    if labels is None:
        return _with_labels(sequences, None, None)
    try:
        encoded = as_sequences(np.zeros((sequences.n_events, 1)), labels, sequences.lengths)
    except ValueError as error:
        # Labels are read as event types are; the message should speak of labels.
        text = str(error).replace("event types", "labels").replace("event type", "label")
        raise ValueError(text.replace("events", "labels")) from None
    return _with_labels(sequences, encoded.codes, encoded.event_types)


@dataclass(frozen=True)
class Reliability:
    """How labels come about: seen with probability `observed`, and then right with probability `true`.

    A wrong label is any of the others, each as likely. `observed` is None where whether a label is seen is
    taken as given. `estimated` says which of "p_observed" and "p_true" fitting changes.
    """

    observed: float | None
    true: float
    estimated: tuple[str, ...] = ()

    def log_factor(self, labels: Integers, n_states: int) -> Floats:
        """ln P(label | state) of each event and state, (N, M); −1 is a label that was not seen."""
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

    def drawn(self, states: Integers, n_states: int, generator: np.random.Generator) -> Integers:
        """Labels, as the states they name, of some events in these states; −1 where none is seen."""
        right = generator.random(len(states)) < self.true
        others = (states + generator.integers(1, max(n_states, 2), len(states))) % n_states
        seen = generator.random(len(states)) < (1.0 if self.observed is None else self.observed)
        return np.where(seen, np.where(right, states, others), MISSING)

    def updated(self, labels: Integers, weighted: Floats, weights: Floats) -> Reliability:
        """The M-step: the share of events with a label, and of those the expected share that is right."""
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
    """θ of the partially-HMM: one row of each table, and how reliable labels are.

    `names[j]` is the label that means state j, None for a state that no label names.
    """

    reliability: Reliability
    names: tuple[Any, ...]

    def log_factor(self, labels: Integers | None) -> Floats | None:
        return None if labels is None else self.reliability.log_factor(labels, self.n_states)

    def maximised(
        self, evidence: Training, posterior: StatePosterior, settings: Settings
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
    """Start values with states renumbered so that they agree best with the labels that name them.

    Agreement is the expected number of labelled events in the named state, by the emissions alone. Labels
    that are more often wrong than chance are lined up to disagree.
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


def states_named(sequences: LabelledSequences, names: tuple[Any, ...]) -> Integers | None:
    """The state that each event's label names, −1 where none was seen; a `ValueError` for an unknown one."""
    if sequences.label_codes is None or sequences.label_types is None:
        return None
    place = {name: j for j, name in enumerate(names) if name is not None}
    table = [place.get(label, len(names)) for label in sequences.label_types.tolist()]
    states = np.array([*table, MISSING], dtype=np.int64)[sequences.label_codes]
    if (states == len(names)).any():
        row = int(np.argmax(states == len(names)))
        label = sequences.label_types[sequences.label_codes[row]].item()
        known = ", ".join(repr(name) for name in place) or "none"
        raise ValueError(f"{sequences.place(row)}: label {label!r} names no state; labels are {known}")
    return states


def _joined(parts: list[Any]) -> LabelledSequences:
    """Several as one, as cross-validation hands over its folds."""
    sequences = as_sequences(parts).without_events()
    looked = [getattr(part, "label_codes", None) is not None for part in parts]
    if not any(looked):
        return _with_labels(sequences, None, None)
    if not all(looked):
        raise ValueError(f"some of the sequences have labels, number {looked.index(False)} has none")
    together = as_sequences([part.as_events() for part in parts])
    return _with_labels(sequences, together.codes, together.event_types)


def _with_labels(sequences: Sequences, codes: Integers | None, types: Types | None) -> LabelledSequences:
    arrays = sequences.X, sequences.codes, sequences.event_types, sequences.offsets
    return LabelledSequences(*arrays, sequences.feature_names, sequences.names, codes, types)
