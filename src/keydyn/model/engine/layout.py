"""What the compiled loops see: a few named tuples of arrays, and the variants in which a loop is compiled.

The loops are written once. The last axis of their arrays is the lane: models that share their event sequences
stand side by side in the lanes of the vector instructions, and a model on its own is a single lane. The axis
before it is the state. Loops over lanes and states are unrolled where the compiler knows their number. It
knows the length of a tuple, which is part of the tuple's type, so a variant is made of tuples: the first is
empty for a single model, the second is empty for any number of states, and a third says that all families are
normal or log-normal. What other families need is then not compiled, a quarter of a fit with two states.

R, T and P are the rows of the tables, the steps and the pairs of event types of all models together; N, S and
K are events, sequences and features; M states, L lanes. Python calls the `check` of a tuple before compiled
code sees the arrays: a loop that runs beyond one would not say so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, inner, plain

# Models side by side.
LANES = 64
# Columns of a span, the part of the arrays that belongs to one model: sequences, rows of the tables (the last
# is that of unknown types), pairs of types, the first row of the transition table.
SEQUENCE, ROW, PAIR, STEP, SPAN = 0, 2, 4, 6, 7
# Columns of `of_types`: Π[ω], f(ψ,·), and what a type's own start and emission estimates weigh in smoothing.
PROB, LEAVING, KEEP_START, KEEP_EMISSION, OF_TYPES = range(5)
# Columns of `of_pairs`: a[ψ, ω], and what a[i, j | ψ] and a[i, j | ω] weigh in smoothing.
PAIR_PROB, WEIGHT_BEFORE, WEIGHT_AFTER, OF_PAIRS = range(4)

Variant = tuple[tuple[int, ...], ...]
# The length of a variant that has code for every family.
ANY_FAMILY = 2


class FitEvents(NamedTuple):
    """The events of all models, one model after the other.

    Attributes
    ----------
    x : (N, K, L) values on the scale on which densities are taken
    codes : (N,) the row of each event's type in the tables
    steps : (N,) the row of the transition table that leads to each event; any at the start of a sequence
    offsets : (S + 1,) sequences; weights : (S,); start_rows : (S,) the row of the first event's type
    given : (N, M, L) ln f of the features whose family is not compiled; no rows if there are none
    """

    x: Floats
    codes: Integers
    steps: Integers
    offsets: Integers
    weights: Floats
    start_rows: Integers
    given: Floats

    def check(self, n_features: int, n_states: int, n_lanes: int) -> None:
        """`ValueError` if an array has a shape that does not fit the others."""
        n, n_sequences = len(self.codes), len(self.weights)
        check_shape("x", self.x, (n, n_features, n_lanes))
        check_shape("steps", self.steps, (n,))
        check_shape("offsets", self.offsets, (n_sequences + 1,))
        check_shape("start_rows", self.start_rows, (n_sequences,))
        if len(self.given):
            check_shape("given", self.given, (n, n_states, n_lanes))


class Observed(NamedTuple):
    """What densities are taken of: see `FitEvents`."""

    x: Floats
    codes: Integers
    given: Floats


class Tables(NamedTuple):
    """θ in lanes; the last row of a model is the marginal.

    Attributes
    ----------
    start : (R, M, L)
    transitions : (T, M, M, L) of the observed pairs; then a[i, j | ψ] of each earlier type, a[i, j | ω] of
        each later one, and a[i, j]
    emission : (R, F, M, L) the parameters of all features; cells : (R, K, W, M, L) coefficients of densities
    least : (R, K, L) the least scale of each feature; of a categorical, its pseudocount
    floored : (R, K, M, L) where the least scale acted in the last maximisation step
    """

    start: Floats
    transitions: Floats
    emission: Floats
    cells: Floats
    least: Floats
    floored: Truths

    def check(self, n_features: int, n_parameters: int) -> None:
        """`ValueError` if an array has a shape that does not fit the others."""
        n_rows, n_states, n_lanes = self.start.shape
        check_shape("transitions", self.transitions, (len(self.transitions), n_states, n_states, n_lanes))
        check_shape("emission", self.emission, (n_rows, n_parameters, n_states, n_lanes))
        check_shape("cells", self.cells, (n_rows, n_features, self.cells.shape[2], n_states, n_lanes))
        check_shape("least", self.least, (n_rows, n_features, n_lanes))
        check_shape("floored", self.floored, (n_rows, n_features, n_states, n_lanes))


class Sums(NamedTuple):
    """Expected counts, laid out like the tables.

    Attributes
    ----------
    start : (R, M, L) Σγ at the first events of sequences, by type; the last row of all types
    first_seen : (R, M, L) Σγ at the first event of each type in each sequence
    transitions : (T, M, M, L) Σξ
    moments : (R, K, W, M, L) of each feature, see `engine.expectation`
    latest : (R,) the sequence in which a type was last seen
    """

    start: Floats
    first_seen: Floats
    transitions: Floats
    moments: Floats
    latest: Integers

    def check(self, tables: Tables) -> None:
        """`ValueError` if an array has a shape that does not fit the tables."""
        check_shape("sums of starts", self.start, tables.start.shape)
        check_shape("sums of first events", self.first_seen, tables.start.shape)
        check_shape("sums of steps", self.transitions, tables.transitions.shape)
        check_shape("moments", self.moments, tables.cells.shape)
        check_shape("latest", self.latest, (len(tables.start),))


class FitRoom(NamedTuple):
    """Room for the recursions, used again at each iteration.

    Attributes
    ----------
    density : (n, M, L), largest : (n, L) of a block of sequences; states : (N, M, L) α, then γ
    inverse : (M, L); scores : (S, L) ln P(x | Ω); worst : (L,) the smallest probability, in lanes
    increments : (N,) ln P of each event given those before it; no rows if not wanted
    """

    density: Floats
    largest: Floats
    states: Floats
    inverse: Floats
    scores: Floats
    worst: Floats
    increments: Floats

    def check(self, events: FitEvents) -> None:
        """`ValueError` if an array has a shape that does not fit the others, or a sequence has no room."""
        n_states, n_lanes = self.density.shape[1:]
        check_shape("largest", self.largest, (len(self.density), n_lanes))
        check_shape("states", self.states, (len(events.codes), n_states, n_lanes))
        check_shape("inverse", self.inverse, (n_states, n_lanes))
        check_shape("scores", self.scores, (len(events.weights), n_lanes))
        check_shape("worst", self.worst, (n_lanes,))
        longest = int((events.offsets[1:] - events.offsets[:-1]).max(initial=0))
        if longest > len(self.density):
            raise ValueError(f"there is room for {len(self.density)} events of a sequence of {longest}")


class TypeChain(NamedTuple):
    """What follows from the event types alone; models that share these share it.

    Attributes
    ----------
    pairs : (P, 2) the rows of the earlier and the later type
    of_pairs : (P, 3) and of_types : (R, 4), see the columns above
    """

    pairs: Integers
    of_pairs: Floats
    of_types: Floats

    def check(self, n_rows: int) -> None:
        """`ValueError` if an array has a shape that does not fit the others."""
        check_shape("pairs", self.pairs, (len(self.of_pairs), 2))
        check_shape("of_pairs", self.of_pairs, (len(self.of_pairs), OF_PAIRS))
        check_shape("of_types", self.of_types, (n_rows, OF_TYPES))


class Rules(NamedTuple):
    """The settings of a fit as numbers.

    Attributes
    ----------
    features : (K, 4) the families, see `engine.densities`
    log_floor : ln of the least density, −inf for none; count_floor : least divisor
    fixed_start, fixed_transitions, fixed_emission : what is not estimated
    exact : exact marginals; first_occurrence : how π is estimated
    smooth_start, smooth_transitions, smooth_emission : what is smoothed
    tol, max_iter : when to stop
    """

    features: Integers
    log_floor: float
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


class Outcome(NamedTuple):
    """How fits ended, one entry per model.

    Attributes
    ----------
    reason : of stopping, or `GOES_ON`; n_iter : expectation steps
    log_likelihood : of the result; history : (B, n) at each expectation step
    """

    reason: Integers
    n_iter: Integers
    log_likelihood: Floats
    history: Floats


class FitJob(NamedTuple):
    """All that Algorithm 1 works on; `spans` (B, 7) tells which part of the arrays belongs to which model."""

    rules: Rules
    spans: Integers
    events: FitEvents
    chain: TypeChain
    tables: Tables
    sums: Sums
    work: FitRoom
    outcome: Outcome

    def check(self, n_parameters: int) -> None:
        """`ValueError` if an array has a shape that does not fit the others."""
        n_features, n_rows = len(self.rules.features), len(self.tables.start)
        _, n_states, n_lanes = self.tables.start.shape
        check_shape("spans", self.spans, (len(self.spans), SPAN))
        self.events.check(n_features, n_states, n_lanes)
        self.chain.check(n_rows)
        self.tables.check(n_features, n_parameters)
        self.sums.check(self.tables)
        self.work.check(self.events)


class Walk(NamedTuple):
    """What the recursions walk along: sequences, and the rows of a model's tables that their events use.

    Attributes
    ----------
    offsets : (S + 1,) sequences; weights : (S,)
    start_rows : (S,) the row of `start` for each sequence; steps : (N,) that of `transitions` for each event
    start : (R, M, L); transitions : (T, M, M, L)
    """

    offsets: Integers
    weights: Floats
    start_rows: Integers
    steps: Integers
    start: Floats
    transitions: Floats

    @classmethod
    def along(
        cls, offsets: Integers, start_rows: Integers, start: Floats, steps: Integers, transitions: Floats
    ) -> Walk:
        """Of a single model's tables without lanes; a `ValueError` if shapes do not fit each other."""
        n_states = start.shape[1]
        check_shape("start_rows", start_rows, (len(offsets) - 1,))
        check_shape("steps", steps, (int(offsets[-1]),))
        check_shape("transitions", transitions, (len(transitions), n_states, n_states))
        tables = plain(start)[..., None], plain(transitions)[..., None]
        return cls(plain(offsets), np.ones(len(offsets) - 1), plain(start_rows), plain(steps), *tables)


def variant_of(n_states: int, *, in_lanes: bool = False) -> Variant:
    """The variant for this number of states, with code for every family; see `families.compiled`, too."""
    return (LANES,) if in_lanes else (), (2,) if n_states == 2 else ()


@inner
def lanes_of(variant: Variant) -> int:
    """The number of lanes, a constant to the compiler."""
    return LANES if len(variant[0]) > 0 else 1


@inner
def states_of(variant: Variant, n_states: int) -> int:
    """The number of states, a constant to the compiler if it is two."""
    return 2 if len(variant[1]) > 0 else n_states


@inner
def fits(n_states: int, n_lanes: int, shape: tuple[int, ...]) -> bool:
    """Whether the last axes of an array are (M, L) or (M, M, L), whatever comes before.

    A loop asks this first, though Python has checked it. Behind the answer the compiler knows these axes, so
    that it can tell where the elements of an array lie: that halves the time of most loops.
    """
    return shape[0] == n_states and shape[-2] == n_states and shape[-1] == n_lanes


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """`ValueError` if an array does not have this shape."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} where {shape} is needed")
