"""Surrogates of data: drawing them along the same event sequences, refitting, and matching of states."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats, Integers
from keydyn.model.ask import generative
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.fit.many import fit_many
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import Parameters

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM


class Surrogate(NamedTuple):
    """Drawn sequences and their hidden states (N,)."""

    sequences: Sequences
    states: Integers


def index_of(parameters: Parameters, sequences: Sequences) -> EventIndex:
    """The index of the model's tables that each event uses."""
    codes, _ = vocabulary.find(sequences.codes, sequences.event_types, parameters.event_types)
    return EventIndex.of(codes, sequences.offsets, parameters.n_types)


def draw(parameters: Parameters, sequences: Sequences, generator: np.random.Generator) -> Surrogate:
    """Draw one surrogate with the same event types, and with values missing where they were missing."""
    return draw_many(parameters, sequences, [generator])[0]


def draw_many(
    parameters: Parameters, sequences: Sequences, generators: Sequence[np.random.Generator]
) -> list[Surrogate]:
    """Draw one surrogate per generator. All of them share their event arrays."""
    index, missing, drawn = index_of(parameters, sequences), np.isnan(sequences.X), []
    for generator in generators:
        states = generative.draw_states(parameters, index, generator)
        X = generative.draw_emissions(parameters, index.codes, states, generator)
        X[missing] = np.nan
        drawn.append(Surrogate(sequences.with_values(X), states))
    return drawn


def refit(model: POHMM, data: Sequence[Sequences], n_jobs: int | None) -> list[Any]:
    """Fit a clone of the model to each, without convergence warnings: of hundreds, some reach `max_iter`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_many(model, list(data), n_jobs)


def match_states(codes: Integers, n_types: int, states: Integers, posterior: Floats) -> Integers:
    """The order (m, M) of fitted states, type by type: fitted state order[ω, i] corresponds to state i.

    Without smoothing the likelihood does not change if the states of each type are renumbered separately.
    They are therefore matched type by type, for the best agreement with the states that generated the data.
    `states` (N,) are those states, `posterior` (N, M) is γ under the fitted model. Events of unknown type
    (code m) are ignored.
    """
    n_states = posterior.shape[1]
    known = codes < n_types
    rows = codes[known] * n_states + states[known]
    agreement = weighted_sums(rows, n_types * n_states, np.ascontiguousarray(posterior[known]))
    tables = agreement.reshape(n_types, n_states, n_states)
    return np.stack([linear_sum_assignment(table, maximize=True)[1] for table in tables])
