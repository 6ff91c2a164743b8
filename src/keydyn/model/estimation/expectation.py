"""The expectation step, compiled: γ and ξ of every event, and their sums by event type and pair."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, compiled, inlined
from keydyn.model.engine import kernels
from keydyn.model.estimation.densities import (
    log_densities,
    prepare_cells,
    relative_densities,
    relative_densities_two,
)
from keydyn.model.estimation.gathering import sum_first_occurrences, sum_moments, sum_states
from keydyn.model.estimation.recursions import backward, forward
from keydyn.model.estimation.tables import Density, Events, Rules, Scratch, Sums, Tables
from keydyn.model.estimation.two_states import backward_two, forward_two


@inlined
def expectation(events: Events, rules: Rules, tables: Tables, sums: Sums, scratch: Scratch) -> float:
    """Weighted ln P(x | Ω); −inf, and the sums undefined, if the model cannot produce some sequence."""
    log_likelihood = posteriors(events, rules.density, tables, sums.transitions, scratch)
    if log_likelihood > -math.inf:
        sum_states(events, sums, scratch.states)
        if rules.first_occurrence:
            sum_first_occurrences(events, sums, scratch.states)
        sum_moments(events, rules.density.df, scratch.states, scratch.cells, sums)
    return log_likelihood


@inlined
def densities(events: Events, family: Density, tables: Tables, scratch: Scratch) -> None:
    """Densities of all events relative to the largest of each."""
    cells, largest = scratch.cells, scratch.largest
    prepare_cells(tables.loc, tables.scale, family.df, cells)
    if cells.shape[3] == 2:
        ratio = scratch.density.reshape(-1)
        relative_densities_two(events.codes, events.x, family, cells, ratio, largest)
    else:
        relative_densities(events.codes, events.x, family, cells, scratch.density, largest)


@inlined
def filtered(events: Events, family: Density, tables: Tables, scratch: Scratch) -> None:
    """α of every event, ln P(x | Ω) of every sequence, NaN or −inf where the careful way is needed."""
    densities(events, family, tables, scratch)
    arguments = (
        events.offsets,
        events.codes,
        events.steps,
        tables.startprob,
        tables.transmat,
        scratch.density,
        scratch.largest,
        scratch.states,
        scratch.scores,
    )
    if scratch.states.shape[1] == 2:
        forward_two(*arguments)
    else:
        forward(*arguments)


@inlined
def posteriors(
    events: Events, family: Density, tables: Tables, transitions: Floats, scratch: Scratch
) -> float:
    """Weighted γ of every event into `scratch.states`, Σ ξ into `transitions`; weighted ln P(x | Ω)."""
    filtered(events, family, tables, scratch)
    transitions[:] = 0.0
    arguments = (
        events.offsets,
        events.weights,
        scratch.scores,
        events.steps,
        tables.transmat,
        scratch.states,
        transitions,
    )
    if scratch.states.shape[1] == 2:
        backward_two(*arguments)
    else:
        backward(*arguments)
    log_likelihood = 0.0
    for s in range(len(scratch.scores)):
        if not scratch.scores[s] > -math.inf:
            scratch.scores[s] = careful_posterior(s, events, family, tables, transitions, scratch)
        log_likelihood += events.weights[s] * scratch.scores[s]
    return log_likelihood


@compiled
def careful_posterior(
    s: int, events: Events, family: Density, tables: Tables, transitions: Floats, scratch: Scratch
) -> float:
    """The same for one sequence by the loops that watch for underflow at every step; ln P(x | Ω)."""
    first, last = events.offsets[s], events.offsets[s + 1]
    rows = careful_densities(first, last, events, family, tables, scratch)
    posterior, increments = np.empty_like(rows), np.empty(last - first)
    kernels.forward_backward(
        rows,
        np.array([0, last - first]),
        events.codes[first : first + 1],
        tables.startprob,
        events.steps[first:last],
        tables.transmat,
        events.weights[s : s + 1],
        posterior,
        increments,
        transitions,
    )
    for n in range(first, last):
        for j in range(rows.shape[1]):
            scratch.states[n, j] = events.weights[s] * posterior[n - first, j]
    return float(increments.sum())


@compiled
def careful_score(s: int, events: Events, family: Density, tables: Tables, scratch: Scratch) -> None:
    """Score of a sequence, and its increments in place of `largest`, by the careful loops."""
    first, last = events.offsets[s], events.offsets[s + 1]
    rows = careful_densities(first, last, events, family, tables, scratch)
    states, increments = np.empty_like(rows), np.empty(last - first)
    kernels.forward(
        rows,
        np.array([0, last - first]),
        events.codes[first : first + 1],
        tables.startprob,
        events.steps[first:last],
        tables.transmat,
        states,
        increments,
    )
    scratch.scores[s] = increments.sum()
    for n in range(first, last):
        scratch.largest[n] = increments[n - first]


@inlined
def careful_densities(
    first: int, last: int, events: Events, family: Density, tables: Tables, scratch: Scratch
) -> Floats:
    """Log-densities of a sequence, (n, M)."""
    rows = np.empty((last - first, tables.loc.shape[2]))
    log_densities(first, last, events.codes, events.x, family, scratch.cells, rows)
    return rows


@inlined
def scores(events: Events, family: Density, tables: Tables, scratch: Scratch) -> None:
    """ln P(x | Ω) of every sequence into `scratch.scores`."""
    filtered(events, family, tables, scratch)
    for s in range(len(scratch.scores)):
        if not scratch.scores[s] > -math.inf:
            careful_score(s, events, family, tables, scratch)
