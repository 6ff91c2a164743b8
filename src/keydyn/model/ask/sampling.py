"""Drawing event types, hidden states and emissions from a model."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.engine import walks
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import Parameters


def draw_events(parameters: Parameters, offsets: Integers, generator: np.random.Generator) -> Integers:
    """Codes of event types from the event chain."""
    startprob, pair_prob = parameters.chain.known()
    m = parameters.n_types
    start = generator.choice(m, size=len(offsets) - 1, p=startprob / startprob.sum())
    # A pair can be listed without having occurred; a type with such pairs only is a dead end.
    pairs, pair_prob = parameters.pairs[pair_prob > 0], pair_prob[pair_prob > 0]
    first = np.searchsorted(pairs[:, 0], np.arange(m + 1))
    # Cumulative within each row of the chain; a row's last bound is one whatever the rounding.
    running = np.cumsum(pair_prob)
    before_row = np.concatenate([[0.0], running])[first[:-1]]
    bounds = running - before_row[pairs[:, 0]]
    codes = np.empty(int(offsets[-1]), dtype=np.int64)
    walks.walk_events(
        offsets,
        start.astype(np.int64),
        first.astype(np.int64),
        np.ascontiguousarray(pairs[:, 1]),
        bounds,
        generator.random(len(codes)),
        codes,
    )
    return codes


def draw_states(parameters: Parameters, index: EventIndex, generator: np.random.Generator) -> Integers:
    """Hidden states along given event types."""
    states = np.empty(len(index.codes), dtype=np.int64)
    walks.walk_states(
        index.offsets,
        index.start_rows,
        parameters.start_table,
        index.steps,
        parameters.transmat_of(index.before, index.after),
        generator.random(len(states)),
        states,
    )
    return states


def draw_emissions(
    parameters: Parameters, codes: Integers, states: Integers, generator: np.random.Generator
) -> Floats:
    """Emissions of given event types and states, from the plain density whatever the floor in scoring."""
    columns = []
    for k in range(len(parameters.emission)):
        emission = parameters.emission_tables[k]
        columns.append(emission.distribution.draw(generator, emission.at((codes, states))))
    return np.stack(columns, axis=1)
