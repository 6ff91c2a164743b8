"""Choices inside single loops and expectation steps: two states, two log-normal features, 12 event types.

The engine's functions can be called from compiled code only, so that each has a small one here that calls it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numba
import numpy as np
import workloads
from numpy.typing import NDArray
from rebuilding import rebuilt

from keydyn.arrays import compiled
from keydyn.model.engine.densities import Densities, exponential, log_densities, logarithm, prepare_cells
from keydyn.model.engine.expectation import posteriors
from keydyn.model.engine.layout import FitRoom, Observed, Walk, variant_of
from keydyn.model.engine.recursions import backward, forward, scale_densities
from keydyn.model.families.family import families_of
from keydyn.model.fit.batch import Batch
from keydyn.model.fit.fits import Fits

Floats = NDArray[np.float64]
Parts = tuple[str, Any, Any, int]

N_SEQUENCES, LENGTH = 2_000, 11
RNG = np.random.default_rng(0)
TWO_STATES, ANY_STATES = variant_of(2), ((), ())

fresh = numba.njit(nogil=True, error_model="numpy")


class Step:
    """An expectation step of one model: its data, parameters and room, and the densities of all events."""

    def __init__(self, n_sequences: int = N_SEQUENCES) -> None:
        data = workloads.simulated([LENGTH] * n_sequences)
        batch = Batch.of([data], [np.ones(n_sequences)], families_of("lognormal", 2))
        fits = Fits(batch, workloads.unsmoothed()._settings(2))
        fits.tables.start[..., 0] = RNG.dirichlet([3.0, 3.0], len(fits.tables.start))
        fits.tables.transitions[..., 0] = RNG.dirichlet([3.0, 3.0], (len(fits.tables.transitions), 2))
        self.n, self.events, self.span, self.rules = data.n_events, batch.events, batch.spans[0], fits.rules
        self.tables, self.sums, self.work = fits.tables, fits.sums, fits._work()
        self.job = fits._job(self.work)
        self.all_at_once = self.work._replace(density=np.empty((self.n, 2, 1)), largest=np.empty((self.n, 1)))

    def log_densities(self) -> Floats:
        """ln f of all events, (N, 2, 1)."""
        found = np.empty((self.n, 2, 1))
        densities_of(TWO_STATES, self.events, self.rules, self.tables, found)
        return found

    def scaled(self) -> tuple[Floats, Floats]:
        """Densities relative to the larger one, and that one's logarithm."""
        density, largest = self.log_densities(), np.empty((self.n, 1))
        scaled_as_it_is(density, largest)
        return density, largest

    def run(self, function: Any, variant: Any = TWO_STATES, work: Any = None) -> Floats:
        """All that an expectation step finds, by a form of `expectation`."""
        room = work or self.work
        function(variant, self.span, self.job._replace(work=room))
        return np.concatenate([room.scores.ravel(), self.sums.transitions.ravel(), self.sums.moments.ravel()])


@cache
def step_of(n_sequences: int = N_SEQUENCES) -> Step:
    """Made once for all choices."""
    return Step(n_sequences)


@compiled
def expectation(variant: Any, span: Any, job: Any) -> None:
    """γ, ξ and their sums, as every fit computes them."""
    posteriors(variant, span, job)


@fresh
def densities_of(variant: Any, events: Any, rules: Any, tables: Any, found: Floats) -> None:
    prepare_cells(variant, 0, len(tables.emission), rules.features, tables.emission, tables.cells)
    how = Densities(rules.features, rules.log_floor, tables.cells)
    observed = Observed(events.x, events.codes, events.given)
    log_densities(variant, 0, len(events.x), observed, how, found)


@fresh
def anything_fits(variant: Any, n_states: int, shape: tuple[int, ...]) -> bool:
    """In place of `fits`: the compiler learns nothing about the axes of an array."""
    return True


def known_strides() -> Parts:
    step, unknown = step_of(), rebuilt(expectation, {"fits": anything_fits})
    return (
        "the compiler knows where elements lie, by `fits` (expectation step)",
        lambda: step.run(unknown),
        lambda: step.run(expectation),
        step.n,
    )


def known_states() -> Parts:
    step = step_of()
    return (
        "a tuple tells the compiler the number of states (expectation step)",
        lambda: step.run(expectation, ANY_STATES),
        lambda: step.run(expectation),
        step.n,
    )


def in_blocks() -> Parts:
    step = step_of(10 * N_SEQUENCES)
    return (
        "some sequences at a time, in the nearest cache (expectation step)",
        lambda: step.run(expectation, work=step.all_at_once),
        lambda: step.run(expectation),
        step.n,
    )


@fresh
def scaled_as_it_is(density: Floats, largest: Floats) -> None:
    scale_densities(((), (2,)), len(density), density, largest)


@fresh
def scaled_by_two_exponentials(density: Floats, largest: Floats) -> None:
    """One exponential per state; the rest is the same."""
    if density.shape[1] != 2 or density.shape[2] != 1:
        return
    for n in range(len(density)):
        largest[n, 0] = max(density[n, 0, 0], density[n, 1, 0])
    for n in range(len(density)):
        for j in range(2):
            density[n, j, 0] = exponential(density[n, j, 0] - largest[n, 0])


def one_exponential() -> Parts:
    step = step_of()
    logs, density, largest = step.log_densities(), np.empty((step.n, 2, 1)), np.empty((step.n, 1))

    def run(function: Any) -> Floats:
        density[:] = logs
        function(density, largest)
        return density[..., 0].copy()

    return (
        "one exponential for two states (densities)",
        lambda: run(scaled_by_two_exponentials),
        lambda: run(scaled_as_it_is),
        step.n,
    )


def written_out(name: str, library: Any, own: Any, values: Floats) -> Parts:
    @fresh
    def by_library(x: Floats, out: Floats) -> None:
        for n in range(len(x)):
            out[n] = library(x[n])

    @fresh
    def by_own(x: Floats, out: Floats) -> None:
        for n in range(len(x)):
            out[n] = own(x[n])

    def run(function: Any) -> Floats:
        out = np.empty_like(values)
        function(values, out)
        return out

    return (name, lambda: run(by_library), lambda: run(by_own), len(values))


@fresh
def walk_of(events: Any, tables: Any) -> Any:
    return Walk(
        events.offsets, events.weights, events.start_rows, events.steps, tables.start, tables.transitions
    )


@fresh
def work_with(density: Floats, largest: Floats, work: Any) -> Any:
    states, inverse, scores = work.states, work.inverse, work.scores
    return FitRoom(density, largest, states, inverse, scores, work.worst, work.increments)


@fresh
def forward_as_it_is(events: Any, tables: Any, density: Floats, largest: Floats, work: Any) -> None:
    room = work_with(density, largest, work)
    forward(((), (2,)), 0, len(events.weights), walk_of(events, tables), room)


@fresh
def both_as_they_are(
    events: Any, tables: Any, density: Floats, largest: Floats, work: Any, step_sums: Floats
) -> None:
    room, walk = work_with(density, largest, work), walk_of(events, tables)
    forward(((), (2,)), 0, len(events.weights), walk, room)
    backward(((), (2,)), 0, len(events.weights), walk, room, step_sums)


@fresh
def forward_of_textbook(events: Any, tables: Any, density: Floats, largest: Floats, work: Any) -> None:
    """α divided by its sum, and a logarithm taken, at every event; two states, unrolled."""
    start, transitions, states = tables.start, tables.transitions, work.states
    if start.shape[1] != 2 or transitions.shape[1] != 2 or transitions.shape[2] != 2 or states.shape[1] != 2:
        return
    if start.shape[2] != 1 or transitions.shape[3] != 1 or states.shape[2] != 1 or density.shape[2] != 1:
        return
    for s in range(len(events.weights)):
        score = 0.0
        for n in range(events.offsets[s], events.offsets[s + 1]):
            row, step = events.start_rows[s], events.steps[n]
            before_0, before_1 = start[row, 0, 0], start[row, 1, 0]
            if n > events.offsets[s]:
                last_0, last_1 = states[n - 1, 0, 0], states[n - 1, 1, 0]
                before_0 = last_0 * transitions[step, 0, 0, 0] + last_1 * transitions[step, 1, 0, 0]
                before_1 = last_0 * transitions[step, 0, 1, 0] + last_1 * transitions[step, 1, 1, 0]
            alpha_0, alpha_1 = before_0 * density[n, 0, 0], before_1 * density[n, 1, 0]
            total = alpha_0 + alpha_1
            states[n, 0, 0], states[n, 1, 0] = alpha_0 / total, alpha_1 / total
            score += math.log(total) + largest[n, 0]
        work.scores[s, 0] = score


@fresh
def both_with_beta(
    events: Any, tables: Any, density: Floats, largest: Floats, work: Any, step_sums: Floats
) -> None:
    """`forward` as it is, then β and with it γ and ξ, each divided by its sum; two states, unrolled."""
    forward_as_it_is(events, tables, density, largest, work)
    transitions, states = tables.transitions, work.states
    if transitions.shape[1] != 2 or transitions.shape[2] != 2 or transitions.shape[3] != 1:
        return
    if step_sums.shape[1] != 2 or step_sums.shape[2] != 2 or step_sums.shape[3] != 1:
        return
    if states.shape[1] != 2 or states.shape[2] != 1 or density.shape[1] != 2 or density.shape[2] != 1:
        return
    for s in range(len(events.weights)):
        beta_0 = beta_1 = 1.0
        for n in range(events.offsets[s + 1] - 1, events.offsets[s], -1):
            step = events.steps[n]
            ahead_0, ahead_1 = density[n, 0, 0] * beta_0, density[n, 1, 0] * beta_1
            from_0_to_0 = transitions[step, 0, 0, 0] * ahead_0
            from_0_to_1 = transitions[step, 0, 1, 0] * ahead_1
            from_1_to_0 = transitions[step, 1, 0, 0] * ahead_0
            from_1_to_1 = transitions[step, 1, 1, 0] * ahead_1
            beta_0, beta_1 = from_0_to_0 + from_0_to_1, from_1_to_0 + from_1_to_1
            alpha_0, alpha_1 = states[n - 1, 0, 0], states[n - 1, 1, 0]
            gamma_0, gamma_1 = alpha_0 * beta_0, alpha_1 * beta_1
            total = gamma_0 + gamma_1
            step_sums[step, 0, 0, 0] += alpha_0 * from_0_to_0 / total
            step_sums[step, 0, 1, 0] += alpha_0 * from_0_to_1 / total
            step_sums[step, 1, 0, 0] += alpha_1 * from_1_to_0 / total
            step_sums[step, 1, 1, 0] += alpha_1 * from_1_to_1 / total
            states[n - 1, 0, 0], states[n - 1, 1, 0] = gamma_0 / total, gamma_1 / total
            scale = 1.0 / (beta_0 + beta_1)
            beta_0, beta_1 = beta_0 * scale, beta_1 * scale


def deferred() -> Parts:
    step = step_of()
    density, largest = step.scaled()

    def run(function: Any) -> Floats:
        function(step.events, step.tables, density, largest, step.work)
        return step.work.scores.copy()

    return (
        "logarithms put off to the end of a sequence (forward)",
        lambda: run(forward_of_textbook),
        lambda: run(forward_as_it_is),
        step.n,
    )


def without_beta() -> Parts:
    step = step_of()
    density, largest = step.scaled()

    def run(function: Any) -> Floats:
        step_sums = np.zeros(step.tables.transitions.shape)
        function(step.events, step.tables, density, largest, step.work, step_sums)
        return step_sums

    return (
        "γ without β (forward and backward)",
        lambda: run(both_with_beta),
        lambda: run(both_as_they_are),
        step.n,
    )


@fresh
def by_expressions(weights: Floats, codes: Any, steps: Any, table: Floats, mixed: Floats) -> None:
    """A smoothed matrix per event, by NumPy expressions, which create an array for every row."""
    for n in range(len(steps)):
        mixed[n] = (1.0 - weights[n]) * table[steps[n]] + weights[n] * table[codes[n]]
        for i in range(2):
            mixed[n, i] /= mixed[n, i].sum()


@fresh
def by_indices(weights: Floats, codes: Any, steps: Any, table: Floats, mixed: Floats) -> None:
    for n in range(len(steps)):
        step, code, weight = steps[n], codes[n], weights[n]
        for i in range(2):
            total = 0.0
            for j in range(2):
                mixed[n, i, j] = (1.0 - weight) * table[step, i, j] + weight * table[code, i, j]
                total += mixed[n, i, j]
            for j in range(2):
                mixed[n, i, j] /= total


def indices() -> Parts:
    step = step_of()
    weights, mixed = RNG.random(step.n), np.empty((step.n, 2, 2))
    table = np.ascontiguousarray(step.tables.transitions[..., 0])

    def run(function: Any) -> Floats:
        function(weights, step.events.codes, step.events.steps, table, mixed)
        return mixed.copy()

    return (
        "rows indexed, no array expressions (smoothing)",
        lambda: run(by_expressions),
        lambda: run(by_indices),
        step.n,
    )


KERNEL_CHOICES = (
    one_exponential,
    lambda: written_out("e^y written out", math.exp, exponential, RNG.uniform(-30.0, 0.0, 20_000)),
    lambda: written_out("ln x written out", math.log, logarithm, np.exp(RNG.normal(5.0, 1.0, 20_000))),
    deferred,
    without_beta,
    known_states,
    known_strides,
    in_blocks,
    indices,
)
