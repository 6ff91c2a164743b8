"""Lattices of sequences under a model, in the form that the engine takes, and the engine's results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.model.engine import scores_and_states as inference
from keydyn.model.engine.layout import Walk, variant_of
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.families.family import Emission
from keydyn.model.theta.parameters import Parameters


@dataclass(frozen=True)
class EventIndex:
    """The tables that each event uses: everything about the events that does not depend on θ.

    Attributes
    ----------
    codes : (N,) event type of each event, m where it is unknown
    offsets : (S + 1,) bounds of the sequences
    before, after : (U,) the distinct pairs of successive types, m where unknown
    steps : (N,) the index of the pair that leads to each event; 0 at the start of a sequence
    """

    codes: Integers
    offsets: Integers
    before: Integers
    after: Integers
    steps: Integers

    @classmethod
    def of(cls, codes: Integers, offsets: Integers, n_types: int) -> EventIndex:
        """The index of events with these codes, for a model with `n_types` types."""
        inside = np.ones(len(codes), dtype=bool)
        inside[offsets[:-1]] = False
        keys = np.concatenate([[0], codes[:-1]]) * (n_types + 1) + codes
        steps = np.zeros(len(codes), dtype=np.int64)
        steps[inside], distinct = pd.factorize(keys[inside])
        return cls(codes, offsets, *np.divmod(np.asarray(distinct), n_types + 1), steps)

    @property
    def start_rows(self) -> Integers:
        """The first event type of each sequence."""
        return self.codes[self.offsets[:-1]]


class StatePosterior(NamedTuple):
    """γ times the sequence's weight (N, M), ln P(x | Ω) (S,), and Σ w ξ by row of the table (T, M, M)."""

    states: Floats
    scores: Floats
    transitions: Floats


class EmissionTables(Protocol):
    """Protocol of objects with an emission for each feature, from whose rows densities are computed."""

    @property
    def n_states(self) -> int: ...

    @property
    def emission_tables(self) -> list[Emission]: ...


def log_densities(parameters: EmissionTables, X: Floats, codes: Integers, floor: float | None) -> Floats:
    """ln f(x_n; b[j | Ω_n]) summed over features, (N, M); a missing value is left out of the sum.

    `floor` is the smallest density of a single feature (the published settings), or None.
    """
    total = np.zeros((len(X), parameters.n_states))
    for k in range(X.shape[1]):
        total += parameters.emission_tables[k].log_densities(X[:, k], codes, floor)
    return total


def build(parameters: Parameters, X: Floats, index: EventIndex, floor: float | None) -> Lattice:
    """The lattice of a POHMM over these events."""
    if not parameters.has_marginal and (index.codes == parameters.n_types).any():
        parameters.known_marginal()
    return Lattice.of(log_densities(parameters, X, index.codes, floor), walked(parameters, index))


def walked(parameters: Parameters, index: EventIndex) -> Walk:
    """The walk along these events under the parameters."""
    transitions = parameters.transmat_of(index.before, index.after)
    return Walk.along(index.offsets, index.start_rows, parameters.start_table, index.steps, transitions)


def filtered(lattice: Lattice) -> tuple[Floats, Floats]:
    """P(z_n | x_1..n, Ω) (N, M) and ln P(x_n | x_1..n−1, Ω) (N,)."""
    states, increments = np.empty_like(lattice.log_density), np.empty(len(lattice.log_density))
    inference.filter_states(variant_of(states.shape[1]), lattice, states, increments)
    lost = np.flatnonzero(np.isnan(increments[lattice.offsets[:-1]]))
    if len(lost):
        inference.filter_in_logs(lost, lattice, states, increments)
    total = states.sum(axis=1)
    # In a sequence that the model cannot produce all probabilities may be zero.
    probabilities = np.divide(states[..., 0], total, out=np.zeros(states.shape[:2]), where=total > 0.0)
    return probabilities, increments


def posterior(lattice: Lattice, weights: Floats | None = None) -> StatePosterior:
    """The result of an expectation step; `weights` has one entry per sequence."""
    lattice = lattice if weights is None else lattice.weighted(weights)
    states, transitions = np.empty_like(lattice.log_density), np.zeros_like(lattice.walk.transitions)
    scores = np.empty((lattice.n_sequences, 1))
    inference.smooth_states(variant_of(states.shape[1]), lattice, states, scores, transitions)
    lost = np.flatnonzero(~(scores[:, 0] > -np.inf))
    if len(lost):
        inference.smooth_in_logs(lost, lattice, states, scores, transitions)
    return StatePosterior(states[..., 0], scores[:, 0], transitions[..., 0])


def most_probable(lattice: Lattice) -> tuple[Floats, Integers]:
    """Viterbi: ln P of the best path of each sequence (S,), and the paths (N,)."""
    log_probability = np.empty(lattice.n_sequences)
    states = np.empty(len(lattice.log_density), dtype=np.int64)
    inference.viterbi(lattice, states, log_probability)
    impossible = np.flatnonzero(np.isneginf(log_probability))
    if len(impossible):
        raise ValueError(
            f"sequence {impossible[0]} has probability zero under the model: no path is possible"
        )
    return log_probability, states


def forecasts(lattice: Lattice, from_later: bool) -> tuple[Floats, Floats]:
    """ln P(z_n | x_1..n−1, Ω) (N, M), or given all other events (`from_later`), and the increments (N,)."""
    log_weights, increments = np.empty(lattice.log_density.shape[:2]), np.empty(len(lattice.log_density))
    inference.forecast_states(lattice, from_later, log_weights, increments)
    return log_weights, increments


def per_sequence(increments: Floats, offsets: Integers) -> Floats:
    """The sum of the increments of each sequence, (S,)."""
    sums: Floats = np.add.reduceat(increments, offsets[:-1])
    return sums


def check_possible(increments: Floats, offsets: Integers) -> None:
    """Raise `ValueError` naming the first sequence that the model cannot produce."""
    impossible = np.flatnonzero(np.isneginf(increments[offsets[1:] - 1]))
    if len(impossible):
        s = int(impossible[0])
        row = int(np.argmax(np.isneginf(increments[offsets[s] : offsets[s + 1]])))
        raise ValueError(
            f"sequence {s} has probability zero under the model from row {row} on: "
            "the posterior of its states is not defined"
        )


def check_posterior(posterior: StatePosterior, lattice: Lattice) -> None:
    """Raise `ValueError` naming the first sequence that the model cannot produce."""
    if np.isneginf(posterior.scores).any():
        check_possible(filtered(lattice)[1], lattice.offsets)
