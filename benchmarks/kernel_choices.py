"""Choices inside single loops: two states and two features, sequences of 11 events of 12 types."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from keydyn.model.estimation.densities import prepare_cells, relative_densities, relative_densities_two
from keydyn.model.estimation.exponential import exponential
from keydyn.model.estimation.logarithm import logarithm
from keydyn.model.estimation.recursions import backward, forward
from keydyn.model.estimation.tables import Density
from keydyn.model.estimation.two_states import backward_two, forward_two
from numpy.typing import NDArray

from keydyn.model.engine import kernels

Floats = NDArray[np.float64]
Parts = tuple[str, Any, Any, int]

N_SEQUENCES, LENGTH, N_TYPES = 2_000, 11, 12
N = N_SEQUENCES * LENGTH
RNG = np.random.default_rng(0)
OFFSETS = np.arange(0, N + 1, LENGTH)
CODES = RNG.integers(0, N_TYPES, N)
STEPS = RNG.integers(0, N_TYPES**2, N)
START = RNG.dirichlet([3.0, 3.0], N_TYPES)
TRANSMAT = RNG.dirichlet([3.0, 3.0], (N_TYPES**2, 2))
X = RNG.normal(5.0, 0.5, (N, 2))
LOC, SCALE = RNG.normal(5.0, 0.3, (2, N_TYPES, 2)), RNG.uniform(0.3, 0.6, (2, N_TYPES, 2))
DENSITY = Density(np.full(2, np.inf), np.ones(2), -math.inf)
CELLS = np.empty((2, N_TYPES, 3, 2))
WEIGHTS = np.ones(N_SEQUENCES)

fresh = numba.njit(nogil=True, error_model="numpy")


def densities() -> tuple[Floats, Floats, Floats]:
    """Relative densities of both states, the ratio that represents them, and the larger one's logarithm."""
    both, ratio, largest = np.empty((N, 2)), np.empty(N), np.empty(N)
    prepare_cells(LOC, SCALE, DENSITY.df, CELLS)
    relative_densities(CODES, X, DENSITY, CELLS, both, largest)
    relative_densities_two(CODES, X, DENSITY, CELLS, ratio, largest)
    return both, ratio[:, None], largest


def unrolled() -> Parts:
    both, ratio, largest = densities()

    def run(ahead: Any, back: Any, density: Floats) -> Floats:
        states, scores, transitions = np.empty((N, 2)), np.empty(N_SEQUENCES), np.zeros(TRANSMAT.shape)
        ahead(OFFSETS, CODES, STEPS, START, TRANSMAT, density, largest, states, scores)
        back(OFFSETS, WEIGHTS, scores, STEPS, TRANSMAT, states, transitions)
        return transitions

    return (
        "forward and backward unrolled for two states",
        lambda: run(forward, backward, both),
        lambda: run(forward_two, backward_two, ratio),
        N,
    )


def without_beta() -> Parts:
    both, _, largest = densities()
    logs = np.log(both) + largest[:, None]

    def usual() -> Floats:
        posterior, increments, transitions = np.empty((N, 2)), np.empty(N), np.zeros(TRANSMAT.shape)
        kernels.forward_backward(
            logs,
            OFFSETS,
            CODES[OFFSETS[:-1]],
            START,
            STEPS,
            TRANSMAT,
            WEIGHTS,
            posterior,
            increments,
            transitions,
        )
        return transitions

    return ("γ without β, watched where needed; densities apart", usual, unrolled()[2], N)


def one_exponential() -> Parts:
    both, ratio, largest = densities()

    def two() -> Floats:
        relative_densities(CODES, X, DENSITY, CELLS, both, largest)
        return both.min(axis=1)

    def one() -> Floats:
        relative_densities_two(CODES, X, DENSITY, CELLS, ratio[:, 0], largest)
        return np.abs(ratio[:, 0])

    return ("densities of two states as one ratio", two, one, N)


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
def forward_with_logarithms(ratio: Floats, largest: Floats, states: Floats, scores: Floats) -> None:
    """Textbook scaling: α is divided by its sum, and a logarithm taken, at every event."""
    for s in range(len(scores)):
        score = 0.0
        for n in range(OFFSETS[s], OFFSETS[s + 1]):
            before0, before1 = START[CODES[n], 0], START[CODES[n], 1]
            if n > OFFSETS[s]:
                step = STEPS[n]
                before0 = states[n - 1, 0] * TRANSMAT[step, 0, 0] + states[n - 1, 1] * TRANSMAT[step, 1, 0]
                before1 = states[n - 1, 0] * TRANSMAT[step, 0, 1] + states[n - 1, 1] * TRANSMAT[step, 1, 1]
            smaller = ratio[n, 0]
            alpha0 = before0 * smaller if smaller > 0.0 else before0
            alpha1 = before1 if smaller > 0.0 else -before1 * smaller
            total = alpha0 + alpha1
            states[n, 0], states[n, 1] = alpha0 / total, alpha1 / total
            score += math.log(total) + largest[n]
        scores[s] = score


def deferred() -> Parts:
    _, ratio, largest = densities()
    states, scores = np.empty((N, 2)), np.empty(N_SEQUENCES)

    def plain() -> Floats:
        forward_with_logarithms(ratio, largest, states, scores)
        return scores.copy()

    def chosen() -> Floats:
        forward_two(OFFSETS, CODES, STEPS, START, TRANSMAT, ratio, largest, states, scores)
        return scores.copy()

    return ("logarithms put off to the end of a sequence (forward)", plain, chosen, N)


@fresh
def blend_rows(weight: float, own: Floats, other: Floats, mixed: Floats) -> None:
    for i in range(2):
        total = 0.0
        for j in range(2):
            mixed[i, j] = (1.0 - weight) * own[i, j] + weight * other[i, j]
            total += mixed[i, j]
        for j in range(2):
            mixed[i, j] /= total


@fresh
def by_views(weights: Floats, table: Floats, mixed: Floats) -> None:
    """Smoothing in its natural form: a function of the rows of a pair, each row an array of its own."""
    for n in range(len(STEPS)):
        blend_rows(weights[n], table[STEPS[n]], table[CODES[n]], mixed[n])


@fresh
def by_expressions(weights: Floats, table: Floats, mixed: Floats) -> None:
    """The same with NumPy expressions, which create an array for every row."""
    for n in range(len(STEPS)):
        mixed[n] = (1.0 - weights[n]) * table[STEPS[n]] + weights[n] * table[CODES[n]]
        for i in range(2):
            mixed[n, i] /= mixed[n, i].sum()


@fresh
def by_indices(weights: Floats, table: Floats, mixed: Floats) -> None:
    for n in range(len(STEPS)):
        for i in range(2):
            total = 0.0
            for j in range(2):
                mixed[n, i, j] = (1.0 - weights[n]) * table[STEPS[n], i, j] + weights[n] * table[
                    CODES[n], i, j
                ]
                total += mixed[n, i, j]
            for j in range(2):
                mixed[n, i, j] /= total


def indices(name: str, plain: Any) -> Parts:
    weights, mixed = RNG.random(N), np.empty((N, 2, 2))

    def run(function: Any) -> Floats:
        function(weights, TRANSMAT, mixed)
        return mixed.copy()

    return (name, lambda: run(plain), lambda: run(by_indices), N)


KERNEL_CHOICES = (
    unrolled,
    without_beta,
    one_exponential,
    lambda: written_out("e^y written out", math.exp, exponential, RNG.uniform(-30.0, 0.0, 20_000)),
    lambda: written_out("ln x written out", math.log, logarithm, np.exp(RNG.normal(5.0, 1.0, 20_000))),
    deferred,
    lambda: indices("rows indexed, no views handed to a function (smoothing)", by_views),
    lambda: indices("rows indexed, no array expressions (smoothing)", by_expressions),
)
