"""Surrogates of data: drawn from a model along the same event sequences, then fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Integers
from keydyn.model.ask import generative
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
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
