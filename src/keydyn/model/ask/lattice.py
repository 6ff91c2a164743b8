"""From a model and some sequences to what the kernels see, and the kernels' answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.engine import kernels
from keydyn.model.estimation.indexing import index_steps
from keydyn.model.families.family import Emission
from keydyn.model.theta.parameters import Parameters


@dataclass(frozen=True)
class EventIndex:
    """Which tables each event uses: everything about the events that does not depend on θ.

    Attributes
    ----------
    codes : (N,) event type of each event, m where it is unknown
    offsets : (S + 1,)
    before, after : (U,) the distinct pairs of types that follow each other, m where unknown
    trans_index : (N,) which of these pairs leads to each event; 0 at the start of a sequence
    n_known : how many of the pairs, the first ones, are of two known types
    """

    codes: Integers
    offsets: Integers
    before: Integers
    after: Integers
    trans_index: Integers
    n_known: int

    @classmethod
    def of(cls, codes: Integers, offsets: Integers, n_types: int) -> EventIndex:
        pairs, trans_index, n_known, in_order = index_steps(codes, offsets, n_types)
        if not in_order:
            # Pairs of known types first, each kind sorted.
            order = np.lexsort((pairs[1], pairs[0], np.arange(pairs.shape[1]) >= n_known))
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            pairs, trans_index = pairs[:, order], place[trans_index]
        return cls(codes, offsets, pairs[0], pairs[1], trans_index, n_known)

    @property
    def start_index(self) -> Integers:
        """The first event type of each sequence."""
        return self.codes[self.offsets[:-1]]


@dataclass(frozen=True)
class Lattice:
    """The whole input of the kernels: log-densities, and the tables with an index into each."""

    log_density: Floats
    offsets: Integers
    start_index: Integers
    startprob: Floats
    trans_index: Integers
    transmat: Floats

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1


class Posterior(NamedTuple):
    """γ (N, M); ln P(x_n | x_1..n−1, Ω) (N,); Σ w ξ (U, M, M) by distinct pair."""

    states: Floats
    increments: Floats
    transitions: Floats


class EmissionTables(Protocol):
    """What densities are computed from: for each feature an emission with one row an event index."""

    @property
    def n_states(self) -> int: ...

    @property
    def emission_tables(self) -> list[Emission]: ...


def log_densities(parameters: EmissionTables, X: Floats, codes: Integers, floor: float | None) -> Floats:
    """ln f(x_n; b[j | Ω_n]), features multiplied; a missing value drops its factor.

    `floor` is the least density of a single feature (the published settings), or None.
    """
    total = np.zeros((len(X), parameters.n_states))
    for k in range(X.shape[1]):
        emission = parameters.emission_tables[k]
        present = ~np.isnan(X[:, k])
        everywhere = bool(present.all())
        values, rows = (X[:, k], codes) if everywhere else (X[present, k], codes[present])
        density = emission.distribution.log_density(values[:, None], emission.at(rows))
        if floor is not None:
            density = np.maximum(density, np.log(floor))
        if everywhere:
            total += density
        else:
            total[present] += density
    return total


def build(parameters: Parameters, X: Floats, index: EventIndex, floor: float | None) -> Lattice:
    """The lattice of a POHMM over these events."""
    if parameters.marginal is None and (index.codes == parameters.n_types).any():
        parameters.known_marginal()
    return Lattice(
        log_densities(parameters, X, index.codes, floor),
        index.offsets,
        index.start_index,
        parameters.start_table,
        index.trans_index,
        parameters.transmat_of(index.before, index.after),
    )


def filtered(lattice: Lattice) -> tuple[Floats, Floats]:
    """P(z_n | x_1..n, Ω) (N, M) and ln P(x_n | x_1..n−1, Ω) (N,)."""
    probabilities = np.empty_like(lattice.log_density)
    increments = np.empty(len(lattice.log_density))
    kernels.forward(
        lattice.log_density,
        lattice.offsets,
        lattice.start_index,
        lattice.startprob,
        lattice.trans_index,
        lattice.transmat,
        probabilities,
        increments,
    )
    return probabilities, increments


def posterior(lattice: Lattice, weights: Floats | None = None) -> Posterior:
    """The expectation step; `weights` has one entry a sequence."""
    states = np.empty_like(lattice.log_density)
    increments = np.empty(len(lattice.log_density))
    transitions = np.zeros_like(lattice.transmat)
    kernels.forward_backward(
        lattice.log_density,
        lattice.offsets,
        lattice.start_index,
        lattice.startprob,
        lattice.trans_index,
        lattice.transmat,
        np.ones(lattice.n_sequences) if weights is None else weights,
        states,
        increments,
        transitions,
    )
    return Posterior(states, increments, transitions)


def most_probable(lattice: Lattice) -> tuple[Floats, Integers]:
    """Viterbi: ln P of the best path of each sequence (S,), and the paths (N,)."""
    log_probability = np.empty(lattice.n_sequences)
    states = np.empty(len(lattice.log_density), dtype=np.int64)
    kernels.viterbi(
        lattice.log_density,
        lattice.offsets,
        lattice.start_index,
        lattice.startprob,
        lattice.trans_index,
        lattice.transmat,
        states,
        log_probability,
    )
    impossible = np.flatnonzero(np.isneginf(log_probability))
    if len(impossible):
        raise ValueError(
            f"sequence {impossible[0]} has probability zero under the model: no path is possible"
        )
    return log_probability, states


def per_sequence(increments: Floats, offsets: Integers) -> Floats:
    """Sums over each sequence."""
    sums: Floats = np.add.reduceat(increments, offsets[:-1])
    return sums


def check_possible(increments: Floats, offsets: Integers) -> None:
    """`ValueError` naming the first sequence that the model cannot produce."""
    impossible = np.flatnonzero(np.isneginf(increments[offsets[1:] - 1]))
    if len(impossible):
        s = int(impossible[0])
        row = int(np.argmax(np.isneginf(increments[offsets[s] : offsets[s + 1]])))
        raise ValueError(
            f"sequence {s} has probability zero under the model from row {row} on: "
            "the posterior of its states is not defined"
        )
