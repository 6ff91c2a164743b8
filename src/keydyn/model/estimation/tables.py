"""The arrays that a fit works on, by what they are for.

N events in S sequences, K features, M states, m event types, P observed pairs of types and V pairs of which
one type is unknown. An unknown type has the code m, and row m of a table holds the marginals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, on_both_sides

Truths = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
# (K, m, M, P, P + V)
Shape = tuple[int, int, int, int, int]


class Events(NamedTuple):
    """The training data, which a fit never changes.

    Attributes
    ----------
    codes : (N,) event types; offsets : (S + 1,) sequences; weights : (S,)
    steps : (N,) the row of the transition table that leads to each event; 0 at the start of a sequence
    x : (N, K) values on the family's working scale, NaN where missing
    first_seen : events that are the first of their type in their sequence
    """

    codes: Integers
    offsets: Integers
    steps: Integers
    weights: Floats
    x: Floats
    first_seen: Integers


class Basis(NamedTuple):
    """What follows from the data once for a whole fit: the event chain, smoothing weights, scale floors.

    Attributes
    ----------
    before, after : (P + V,) the types of each row of the transition table
    pair_prob : (P,) a[ψ, ω]; leaving : (m,) f(ψ,·); prob : (m,) Π[ω]
    keep_start, keep_emission : (m,) what a type's own estimates weigh
    weight_before, weight_after : (P,) what a[i, j | ψ] and a[i, j | ω] weigh
    min_scale : (K,) least scale of each feature
    """

    before: Integers
    after: Integers
    pair_prob: Floats
    leaving: Floats
    prob: Floats
    keep_start: Floats
    keep_emission: Floats
    weight_before: Floats
    weight_after: Floats
    min_scale: Floats


class Counted(NamedTuple):
    """The rest of what counting types and pairs gives; see `Counts` and `EventChain`.

    Attributes
    ----------
    types, starts : (m,) f(ω), and the sequences that begin with ω; pair : (P,) f(ψ, ω)
    entering : (m,) f(·,ω); startprob : (m,) π[ω]
    """

    types: Floats
    starts: Floats
    pair: Floats
    entering: Floats
    startprob: Floats


class Density(NamedTuple):
    """How densities are computed.

    Attributes
    ----------
    df : (K,) degrees of freedom of each feature, inf for the normal; log_scale : (K,) 1 where x is ln x
    log_floor : ln of the least density, −inf for none
    """

    df: Floats
    log_scale: Floats
    log_floor: float


class Rules(NamedTuple):
    """The settings of a fit as numbers.

    Attributes
    ----------
    density : how densities are computed
    min_scale : least scale, NaN for "auto"; count_floor : least divisor
    fixed_start, fixed_transitions, fixed_emission : what is not estimated
    exact : exact marginals; first_occurrence : how π is estimated
    smooth_start, smooth_transitions, smooth_emission : smoothing rules; published : transition weights
    displacements : (K, M) of the states at the start, in deviations; own_spread : of each type's own
    """

    density: Density
    min_scale: float
    count_floor: float
    fixed_start: bool
    fixed_transitions: bool
    fixed_emission: bool
    exact: bool
    first_occurrence: bool
    smooth_start: float
    smooth_transitions: float
    smooth_emission: float
    published: bool
    displacements: Floats
    own_spread: bool
    tol: float
    max_iter: int


class Tables(NamedTuple):
    """The parameters, changed in place.

    Attributes
    ----------
    startprob : (m + 1, M); transmat : (P + V, M, M); loc, scale : (K, m + 1, M)
    from_type, to_type : (m, M, M) a[i, j | ψ] and a[i, j | ω]; of_all : (M, M) a[i, j]
    floored : (K, m, M) where the scale floor acted
    """

    startprob: Floats
    transmat: Floats
    loc: Floats
    scale: Floats
    from_type: Floats
    to_type: Floats
    of_all: Floats
    floored: Truths


class Sums(NamedTuple):
    """What an expectation step leaves: expected counts, and moments of each feature.

    Attributes
    ----------
    start, first_occurrence, occupancy : (m, M); start_all : (M,); transitions : (P + V, M, M)
    mass : (K, m, M) Σγ of events with a value
    mean, square : (K, m, M) moments of x weighted by γ, for the t families by γ times the precision
    precision, log_precision : (K, m, M) Σ of the t families' weights and of their expected logarithms
    """

    start: Floats
    start_all: Floats
    first_occurrence: Floats
    occupancy: Floats
    transitions: Floats
    mass: Floats
    mean: Floats
    square: Floats
    precision: Floats
    log_precision: Floats


class Scratch(NamedTuple):
    """Room that is used again at each iteration.

    Attributes
    ----------
    density : (N, M) densities divided by the largest of their event; of two states (N, 1), the ratio of the
        smaller to the larger, negative if state 0's is the larger
    largest : (N,) logarithm of the largest
    states : (N, M) α, then γ; scores : (S,) ln P(x | Ω)
    cells : (K, m + 1, 3, M) location, 1 / scale and ln f at the location, side by side
    """

    density: Floats
    largest: Floats
    states: Floats
    scores: Floats
    cells: Floats


class Fit(NamedTuple):
    """All that a fit leaves behind."""

    tables: Tables
    sums: Sums
    basis: Basis
    counted: Counted
    overall: Floats
    stationary: Floats


@on_both_sides
def carve_tables(memory: Floats, shape: Shape, floored: Truths) -> tuple[Tables, int]:
    """Tables in the first part of a piece of memory, and where they end."""
    k, m, j, _, t = shape
    startprob, at = _matrix(memory, 0, m + 1, j)
    transmat, at = _stack(memory, at, t, j, j)
    loc, at = _stack(memory, at, k, m + 1, j)
    scale, at = _stack(memory, at, k, m + 1, j)
    from_type, at = _stack(memory, at, m, j, j)
    to_type, at = _stack(memory, at, m, j, j)
    of_all, at = _matrix(memory, at, j, j)
    return Tables(startprob, transmat, loc, scale, from_type, to_type, of_all, floored), at


@on_both_sides
def carve_sums(memory: Floats, shape: Shape, at: int) -> tuple[Sums, int]:
    """Sums from `at` on, and where they end."""
    k, m, j, _, t = shape
    start, at = _matrix(memory, at, m, j)
    start_all, at = _row(memory, at, j)
    first_occurrence, at = _matrix(memory, at, m, j)
    occupancy, at = _matrix(memory, at, m, j)
    transitions, at = _stack(memory, at, t, j, j)
    mass, at = _stack(memory, at, k, m, j)
    mean, at = _stack(memory, at, k, m, j)
    square, at = _stack(memory, at, k, m, j)
    precision, at = _stack(memory, at, k, m, j)
    log_precision, at = _stack(memory, at, k, m, j)
    by_type = (start, start_all, first_occurrence, occupancy)
    return Sums(*by_type, transitions, mass, mean, square, precision, log_precision), at


@on_both_sides
def carve_basis(
    memory: Floats, shape: Shape, at: int, before: Integers, after: Integers
) -> tuple[Basis, int]:
    """The basis from `at` on, and where it ends."""
    k, m, _, p, _ = shape
    pair_prob, at = _row(memory, at, p)
    leaving, at = _row(memory, at, m)
    prob, at = _row(memory, at, m)
    keep_start, at = _row(memory, at, m)
    keep_emission, at = _row(memory, at, m)
    weight_before, at = _row(memory, at, p)
    weight_after, at = _row(memory, at, p)
    min_scale, at = _row(memory, at, k)
    chain = (before, after, pair_prob, leaving, prob)
    return Basis(*chain, keep_start, keep_emission, weight_before, weight_after, min_scale), at


@on_both_sides
def carve(memory: Floats, shape: Shape, before: Integers, after: Integers, floored: Truths) -> Fit:
    """Everything that a fit of this shape leaves, in one piece of memory of `room(shape)` numbers.

    One array is quick to hand over between compiled code and Python, forty are not.
    """
    k, m, j, p, _ = shape
    tables, at = carve_tables(memory, shape, floored)
    sums, at = carve_sums(memory, shape, at)
    basis, at = carve_basis(memory, shape, at, before, after)
    types, at = _row(memory, at, m)
    starts, at = _row(memory, at, m)
    pair, at = _row(memory, at, p)
    entering, at = _row(memory, at, m)
    startprob, at = _row(memory, at, m)
    overall, at = _matrix(memory, at, k, 4)
    stationary, at = _matrix(memory, at, m, j)
    return Fit(tables, sums, basis, Counted(types, starts, pair, entering, startprob), overall, stationary)


@on_both_sides
def room(shape: Shape) -> int:
    """How many numbers `carve` gives out."""
    k, m, j, p, t = shape
    tables = (m + 1) * j + t * j * j + 2 * k * (m + 1) * j + 2 * m * j * j + j * j
    sums = 3 * m * j + j + t * j * j + 5 * k * m * j
    return tables + sums + (4 * m + 3 * p + k) + (4 * m + p) + 4 * k + m * j


@on_both_sides
def _row(memory: Floats, at: int, n: int) -> tuple[Floats, int]:
    return memory[at : at + n], at + n


@on_both_sides
def _matrix(memory: Floats, at: int, rows: int, columns: int) -> tuple[Floats, int]:
    end = at + rows * columns
    return memory[at:end].reshape((rows, columns)), end


@on_both_sides
def _stack(memory: Floats, at: int, layers: int, rows: int, columns: int) -> tuple[Floats, int]:
    end = at + layers * rows * columns
    return memory[at:end].reshape((layers, rows, columns)), end


@compiled
def new_scratch(n_sequences: int, n_events: int, n_features: int, n_types: int, n_states: int) -> Scratch:
    """Room for the events' densities and probabilities."""
    return Scratch(
        np.empty((n_events, n_states if n_states != 2 else 1)),
        np.empty(n_events),
        np.empty((n_events, n_states)),
        np.empty(n_sequences),
        np.empty((n_features, n_types + 1, 3, n_states)),
    )
