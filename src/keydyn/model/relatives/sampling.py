"""Drawing hidden states and emissions where each event's tables depend on the values before it.

Emissions are drawn ahead for every table and state that an event could use, and a compiled walk picks from
them; so nothing but a caller's own context function runs once per event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.data.sequences import Sequences
from keydyn.model.families.family import Family
from keydyn.model.families.location_scale import LARGEST_FLOAT
from keydyn.model.relatives.contexts import Bins, Context, Contexts, NoContext, Past
from keydyn.model.relatives.parameter_tables import ContextTables

LARGEST_LOG = float(np.log(LARGEST_FLOAT))


def largest_working(family: Family) -> float:
    """The largest value of a family on its working scale."""
    return LARGEST_LOG if family.on_log_scale else family.highest


@compiled
def pick(probabilities: Floats, uniform: float) -> int:
    """The state that a uniform number falls on; never one of probability zero."""
    below, state = 0.0, 0
    for j in range(len(probabilities)):
        if probabilities[j] > 0.0:
            state = j
        below += probabilities[j]
        if uniform < below:
            break
    return state


class Leads(NamedTuple):
    """The first event's emission and transition tables, and (N, R, M) those that a drawn value leads to."""

    first_row: int
    first_step: int
    next_row: Integers
    next_step: Integers


@compiled
def walk_tables(
    offsets: Integers, chain: tuple[Floats, Floats], leads: Leads, uniforms: Floats, rows: Integers,
    states: Integers,
) -> None:  # fmt: skip
    """States and emission rows; `chain` is the start and the transition tables."""
    startprob, transmat = chain
    for s in range(len(offsets) - 1):
        row, step = leads.first_row, leads.first_step
        for n in range(offsets[s], offsets[s + 1]):
            if n == offsets[s]:
                states[n] = pick(startprob, uniforms[n])
            else:
                states[n] = pick(transmat[step, states[n - 1]], uniforms[n])
            rows[n] = row
            step = leads.next_step[n, row, states[n]]
            row = leads.next_row[n, row, states[n]]


def draw_binned(
    tables: ContextTables, contexts: Contexts, offsets: Integers, generator: np.random.Generator
) -> tuple[Floats, Integers]:
    """Values (N, K) and states (N,) where contexts are bins of the value before, or none."""
    n, m, n_rows = int(offsets[-1]), tables.n_states, contexts[0].n_rows
    ahead = np.empty((n, n_rows, m, len(tables.emission)))
    for k, emission in enumerate(tables.emission):
        shape = (n, n_rows, m)
        params = {name: np.broadcast_to(v[:n_rows], shape) for name, v in emission.params.items()}
        ahead[..., k] = emission.distribution.draw(generator, params)
    (first_row, next_row), (first_step, next_step) = (_leads_to(context, ahead) for context in contexts)
    rows, states = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    leads = Leads(first_row, first_step, next_row, next_step)
    walk_tables(offsets, (tables.startprob, tables.transmat), leads, generator.random(n), rows, states)
    return ahead[np.arange(n), rows, states], states


def _leads_to(context: Context, values: Floats) -> tuple[int, Integers]:
    """A context's row at the first event, and after each of some values (…, K)."""
    if isinstance(context, NoContext):
        return 0, np.zeros(values.shape[:-1], dtype=np.int64)
    assert isinstance(context, Bins)
    edges = np.array(context.edges, dtype=np.float64)
    return len(edges) + 1, np.searchsorted(edges, values[..., context.feature], side="left").astype(np.int64)


class LinearWalk(NamedTuple):
    """The parameters of `Lines`, and the largest values (K,), which slopes above one would pass."""

    startprob: Floats
    transmat: Floats
    emission_slopes: Floats
    transition_slopes: Floats
    centre: Floats
    feature: int
    limits: Floats


@compiled
def walk_linear(
    offsets: Integers, walk: LinearWalk, ahead: Floats, uniforms: Floats, values: Floats, states: Integers
) -> None:
    """States and values on the working scale; `ahead` (N, M, K) are draws at an average value before."""
    startprob, transmat, emission_slopes, transition_slopes, centre, feature, limits = walk
    n_states, n_features = len(startprob), len(centre)
    chances = np.empty(n_states)
    for s in range(len(offsets) - 1):
        for n in range(offsets[s], offsets[s + 1]):
            if n == offsets[s]:
                states[n] = pick(startprob, uniforms[n])
            else:
                deviation = values[n - 1, feature] - centre[feature]
                from_state = states[n - 1]
                largest = -np.inf
                for j in range(n_states):
                    if transmat[from_state, j] > 0.0:
                        largest = max(largest, transition_slopes[from_state, j] * deviation)
                for j in range(n_states):
                    chances[j] = transmat[from_state, j]
                    if chances[j] > 0.0:
                        chances[j] *= np.exp(transition_slopes[from_state, j] * deviation - largest)
                states[n] = pick(chances / chances.sum(), uniforms[n])
            for k in range(n_features):
                values[n, k] = ahead[n, states[n], k]
                if n > offsets[s]:
                    values[n, k] += emission_slopes[k, states[n]] * (values[n - 1, k] - centre[k])
                    values[n, k] = min(max(values[n, k], -limits[k]), limits[k])


def on_input_scale(values: Floats, on_log_scale: bool) -> Floats:
    """Working values as the input's; the nearest positive number where e^x is none."""
    return np.exp(np.clip(values, -LARGEST_LOG, LARGEST_LOG)) if on_log_scale else values


def draw_stepwise(
    tables: ContextTables, contexts: Contexts, drawn: Sequences, memory: int, generator: np.random.Generator
) -> tuple[Floats, Integers]:
    """Values and states where a context is a caller's function: all sequences advance together."""
    lengths, labels = drawn.lengths, drawn.labels().astype(object)
    X, states = np.empty_like(drawn.X), np.empty(len(drawn.X), dtype=np.int64)
    past = Past.none(len(drawn), memory, X.shape[1])
    going = np.arange(len(drawn))
    for n in range(int(lengths.max())):
        kept = lengths[going] > n
        going, past = going[kept], past.at(np.flatnonzero(kept))
        here = drawn.offsets[going] + n
        row, step = (context.tables(past) for context in contexts)
        if n == 0:
            chances = np.broadcast_to(tables.startprob, (len(going), tables.n_states))
        else:
            chances = tables.transmat[step, states[here - 1]]
        reached = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
        states[here] = np.sum(reached[:, :-1] <= generator.random(len(going))[:, None], axis=1)
        for k, emission in enumerate(tables.emission):
            X[here, k] = emission.distribution.draw(generator, emission.at((row, states[here])))
        past = past.after(X[here], labels[here])
    return X, states
