"""The arrays that a fit works on, by what they are for.

N events in S sequences, K features, M states, m event types, P observed pairs of types and V pairs of which
one type is unknown. An unknown type has the code m, and row m of a table holds the marginals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.model.arrays import Floats, Integers


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


class Chain(NamedTuple):
    """The event chain as observed, and the smoothing weights that follow from it.

    Attributes
    ----------
    before, after : (P + V,) the types of each row of the transition table
    pair_prob : (P,) a[ψ, ω]; leaving : (m,) f(ψ,·); prob : (m,) Π[ω]
    keep_start, keep_emission : (m,) what a type's own estimates weigh
    weight_before, weight_after : (P,) what a[i, j | ψ] and a[i, j | ω] weigh
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


class Rules(NamedTuple):
    """The settings of a fit as numbers.

    Attributes
    ----------
    df : (K,) degrees of freedom of each feature, inf for the normal; log_scale : (K,) 1 where x is ln x
    log_floor : ln of the least density, −inf for none
    min_scale : (K,) ; count_floor : least divisor
    fixed_start, fixed_transitions, fixed_emission : what is not estimated
    exact : exact marginals; first_occurrence : how π is estimated
    smooth_start, smooth_transitions, smooth_emission : what is smoothed
    """

    df: Floats
    log_scale: Floats
    log_floor: float
    min_scale: Floats
    count_floor: float
    fixed_start: bool
    fixed_transitions: bool
    fixed_emission: bool
    exact: bool
    first_occurrence: bool
    smooth_start: bool
    smooth_transitions: bool
    smooth_emission: bool
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
    floored: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


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


def new_sums(n_features: int, n_types: int, n_states: int, n_steps: int) -> Sums:
    """Room for the sums of an expectation step."""
    cells, moments = (n_types, n_states), (n_features, n_types, n_states)
    return Sums(
        np.zeros(cells),
        np.zeros(n_states),
        np.zeros(cells),
        np.zeros(cells),
        np.zeros((n_steps, n_states, n_states)),
        np.zeros(moments),
        np.zeros(moments),
        np.zeros(moments),
        np.zeros(moments),
        np.zeros(moments),
    )


def new_scratch(n_sequences: int, n_events: int, n_features: int, n_types: int, n_states: int) -> Scratch:
    """Room for the events' densities and probabilities."""
    return Scratch(
        np.empty((n_events, n_states if n_states != 2 else 1)),
        np.empty(n_events),
        np.empty((n_events, n_states)),
        np.empty(n_sequences),
        np.empty((n_features, n_types + 1, 3, n_states)),
    )
