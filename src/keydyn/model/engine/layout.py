"""Which variant of a loop is compiled: one model or many side by side, two states or any number.

The loops are written once. The last axis of their arrays is the lane: models that share their event sequences
stand side by side in the lanes of the vector instructions, and a model on its own is a single lane. The axis
before it is the state. Loops over lanes and states are unrolled where the compiler knows their number. It
knows the length of a tuple, which is part of the tuple's type, so a variant is a pair of tuples: the first is
empty for a single model, the second is empty for any number of states.
"""

from __future__ import annotations

from keydyn.arrays import inner

# Models side by side.
LANES = 64

Variant = tuple[tuple[int, ...], tuple[int, ...]]


def variant_of(n_states: int, *, in_lanes: bool = False) -> Variant:
    """The variant for this number of states."""
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

    A loop asks this first. Behind the answer the compiler knows these axes, so that it can tell where the
    elements of an array lie: that halves the time of most loops. And no loop runs beyond an array.
    """
    return shape[0] == n_states and shape[-2] == n_states and shape[-1] == n_lanes
