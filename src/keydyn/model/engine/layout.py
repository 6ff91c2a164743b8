"""The data layout of the compiled loops: named tuples of arrays, and the variants that are compiled.

The loops are written once. The last axis of their arrays is the lane: models that share their event sequences
stand side by side in the lanes of the vector instructions, and a model on its own is a single lane. The axis
before it is the state. Loops over lanes and states are unrolled if the compiler knows their number. It knows
the length of a tuple, which is part of the tuple's type, so a variant is made of tuples: the first is empty
for a single model, the second is empty for any number of states, and a third says that all families are
normal or log-normal. The code for other families, which costs a quarter of a fit with two states, is then
left out.

R, T and P are the numbers of table rows, steps and pairs of event types of all models together; N, S and K
those of events, sequences and features; M is the number of states, L that of lanes. Python calls the `check`
of a tuple before compiled code sees the arrays, because compiled loops do not check their bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, inner, plain

# Number of models side by side.
LANES = 64
# Columns of a span, the part of the arrays that belongs to one model: first and end of its sequences, of its
# table rows (the last is for unknown types) and of its pairs of types, and its first row of transitions.
SEQUENCE, ROW, PAIR, STEP, SPAN = 0, 2, 4, 6, 7
# Columns of `of_types`: Π[ω], f(ψ,·), and the weights of a type's own start and emission estimates in
# smoothing.
PROB, LEAVING, KEEP_START, KEEP_EMISSION, OF_TYPES = range(5)
# Columns of `of_pairs`: a[ψ, ω], and the weights of a[i, j | ψ] and a[i, j | ω] in smoothing.
PAIR_PROB, WEIGHT_BEFORE, WEIGHT_AFTER, OF_PAIRS = range(4)

Variant = tuple[tuple[int, ...], ...]
# The length of a variant that has code for every family.
ANY_FAMILY = 2


class FitEvents(NamedTuple):
    """The events of all models, one model after the other.

    Attributes
    ----------
    x : (N, K, L) values on the scale of their densities
    codes : (N,) the row of each event's type in the tables
    steps : (N,) the row of the transition table that leads to each event; any row at the start of a sequence
    offsets : (S + 1,) bounds of the sequences; weights : (S,) their weights
    start_rows : (S,) the row of each first event's type
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
        """Raise `ValueError` if an array has a shape that does not fit the others."""
        n, n_sequences = len(self.codes), len(self.weights)
        check_shape("x", self.x, (n, n_features, n_lanes))
        check_shape("steps", self.steps, (n,))
        check_shape("offsets", self.offsets, (n_sequences + 1,))
        check_shape("start_rows", self.start_rows, (n_sequences,))
        if len(self.given):
            check_shape("given", self.given, (n, n_states, n_lanes))


class Observed(NamedTuple):
    """The part of `FitEvents` from which densities are computed."""

    x: Floats
    codes: Integers
    given: Floats


class Tables(NamedTuple):
    """The parameters θ in lanes; the last row of a model is the marginal.

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
        """Raise `ValueError` if an array has a shape that does not fit the others."""
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
    start : (R, M, L) Σγ at the first events of sequences, by type; in the last row over all types
    first_seen : (R, M, L) Σγ at the first event of each type in each sequence
    transitions : (T, M, M, L) Σξ
    moments : (R, K, W, M, L) sums of each feature, see `engine.expectation`
    latest : (R,) the sequence in which a type was last seen
    """

    start: Floats
    first_seen: Floats
    transitions: Floats
    moments: Floats
    latest: Integers

    def check(self, tables: Tables) -> None:
        """Raise `ValueError` if an array has a shape that does not fit the tables."""
        check_shape("sums of starts", self.start, tables.start.shape)
        check_shape("sums of first events", self.first_seen, tables.start.shape)
        check_shape("sums of steps", self.transitions, tables.transitions.shape)
        check_shape("moments", self.moments, tables.cells.shape)
        check_shape("latest", self.latest, (len(tables.start),))


class FitRoom(NamedTuple):
    """Workspace of the recursions, reused in each iteration.

    Attributes
    ----------
    density : (n, M, L), largest : (n, L) densities of a block of sequences; states : (N, M, L) α, then γ
    inverse : (M, L); scores : (S, L) ln P(x | Ω); worst : (L,) with lanes, the smallest probability in each
    increments : (N,) ln P of each event given those before it; empty if not wanted
    """

    density: Floats
    largest: Floats
    states: Floats
    inverse: Floats
    scores: Floats
    worst: Floats
    increments: Floats

    def check(self, events: FitEvents) -> None:
        """Raise `ValueError` if the shape of an array does not fit the others, or a sequence is too long."""
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
    """Quantities that depend on the event types alone, shared by models with the same event sequences.

    Attributes
    ----------
    pairs : (P, 2) the rows of the earlier and the later type
    of_pairs : (P, 3) and of_types : (R, 4), with the columns defined above
    """

    pairs: Integers
    of_pairs: Floats
    of_types: Floats

    def check(self, n_rows: int) -> None:
        """Raise `ValueError` if an array has a shape that does not fit the others."""
        check_shape("pairs", self.pairs, (len(self.of_pairs), 2))
        check_shape("of_pairs", self.of_pairs, (len(self.of_pairs), OF_PAIRS))
        check_shape("of_types", self.of_types, (n_rows, OF_TYPES))


class Rules(NamedTuple):
    """The settings of a fit in the form that the engine takes.

    Attributes
    ----------
    features : (K, 4) the families, see `engine.densities`
    log_floor : ln of the smallest density, −inf for none; count_floor : smallest divisor
    fixed_start, fixed_transitions, fixed_emission : whether each part is kept instead of estimated
    exact : whether marginals are exact; first_occurrence : whether π is estimated from first occurrences
    smooth_start, smooth_transitions, smooth_emission : whether each part is smoothed
    tol, max_iter : the stopping rule
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
    """The progress and outcome of fits, one entry per model.

    Attributes
    ----------
    reason : why the fit stopped, or `GOES_ON`; n_iter : number of expectation steps
    log_likelihood : the log-likelihood of the result; history : (B, n) that at each expectation step
    """

    reason: Integers
    n_iter: Integers
    log_likelihood: Floats
    history: Floats


class FitJob(NamedTuple):
    """All data of Algorithm 1; `spans` (B, 7) has the part of the arrays that belongs to each model."""

    rules: Rules
    spans: Integers
    events: FitEvents
    chain: TypeChain
    tables: Tables
    sums: Sums
    work: FitRoom
    outcome: Outcome

    def check(self, n_parameters: int) -> None:
        """Raise `ValueError` if an array has a shape that does not fit the others."""
        n_features, n_rows = len(self.rules.features), len(self.tables.start)
        _, n_states, n_lanes = self.tables.start.shape
        check_shape("spans", self.spans, (len(self.spans), SPAN))
        self.events.check(n_features, n_states, n_lanes)
        self.chain.check(n_rows)
        self.tables.check(n_features, n_parameters)
        self.sums.check(self.tables)
        self.work.check(self.events)


class Walk(NamedTuple):
    """The path of the recursions: sequences, and the rows of a model's tables that their events use.

    Attributes
    ----------
    offsets : (S + 1,) bounds of the sequences; weights : (S,) their weights
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
        """A walk with a single model's tables, without lanes; raises `ValueError` if shapes do not fit."""
        n_states = start.shape[1]
        check_shape("start_rows", start_rows, (len(offsets) - 1,))
        check_shape("steps", steps, (int(offsets[-1]),))
        check_shape("transitions", transitions, (len(transitions), n_states, n_states))
        tables = plain(start)[..., None], plain(transitions)[..., None]
        return cls(plain(offsets), np.ones(len(offsets) - 1), plain(start_rows), plain(steps), *tables)


def variant_of(n_states: int, *, in_lanes: bool = False) -> Variant:
    """The variant for this number of states, with code for every family; see also `families.compiled`."""
    return (LANES,) if in_lanes else (), (2,) if n_states == 2 else ()


@inner
def lanes_of(variant: Variant) -> int:
    """The number of lanes, as a constant for the compiler."""
    return LANES if len(variant[0]) > 0 else 1


@inner
def states_of(variant: Variant, n_states: int) -> int:
    """The number of states, as a constant for the compiler if it is two."""
    return 2 if len(variant[1]) > 0 else n_states


@inner
def fits(n_states: int, n_lanes: int, shape: tuple[int, ...]) -> bool:
    """Whether the last axes of an array are (M, L) or (M, M, L), whatever comes before.

    Loops test this first, although Python has checked it: it tells the compiler the size of these axes and
    thus where the elements of the array are, which halves the time of most loops.
    """
    return shape[0] == n_states and shape[-2] == n_states and shape[-1] == n_lanes


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` if an array does not have this shape."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} where {shape} is needed")
