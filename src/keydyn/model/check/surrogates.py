"""Surrogates of data: drawn from a model along the same event sequences, fitted again, states matched."""

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
    """Drawn sequences and the hidden states (N,) behind them."""

    sequences: Sequences
    states: Integers


def index_of(parameters: Parameters, sequences: Sequences) -> EventIndex:
    """Which of the model's tables each event uses."""
    codes, _ = vocabulary.find(sequences.codes, sequences.event_types, parameters.event_types)
    return EventIndex.of(codes, sequences.offsets, parameters.n_types)


def draw(parameters: Parameters, sequences: Sequences, generator: np.random.Generator) -> Surrogate:
    """One surrogate: the same event types, and values missing where they were missing."""
    return draw_many(parameters, sequences, [generator])[0]


def draw_many(
    parameters: Parameters, sequences: Sequences, generators: Sequence[np.random.Generator]
) -> list[Surrogate]:
    """One surrogate per generator. They share their event arrays."""
    index, missing, drawn = index_of(parameters, sequences), np.isnan(sequences.X), []
    for generator in generators:
        states = generative.draw_states(parameters, index, generator)
        X = generative.draw_emissions(parameters, index.codes, states, generator)
        X[missing] = np.nan
        drawn.append(Surrogate(sequences.with_values(X), states))
    return drawn


def refit(model: POHMM, data: Sequence[Sequences], n_jobs: int | None) -> list[Any]:
    """A clone of the model fitted to each; that one of hundreds was not done at `max_iter` is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_many(model, list(data), n_jobs)


def match_states(codes: Integers, n_types: int, states: Integers, posterior: Floats) -> Integers:
    """The order (m, M) of the fitted states, type by type: order[ω, i] is the one that is state i.

    Without smoothing the likelihood stays the same if the states of each type are renumbered apart, so that
    they are matched type by type, to agree as often as they can with those that the data were drawn with.
    `states` (N,) are those behind the data, `posterior` (N, M) is γ under the fitted model. Events of
    unknown type (code m) count for none.
    """
    n_states = posterior.shape[1]
    known = codes < n_types
    rows = codes[known] * n_states + states[known]
    agreement = weighted_sums(rows, n_types * n_states, np.ascontiguousarray(posterior[known]))
    tables = agreement.reshape(n_types, n_states, n_states)
    return np.stack([linear_sum_assignment(table, maximize=True)[1] for table in tables])
