"""The state from which streams go on, as checked plain arrays and as bytes, with one record per session."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Truths
from keydyn.files import (
    MOST_COUNTED,
    SUM_TOLERANCE,
    Bounds,
    Tensor,
    Tensors,
    check_tensors,
    marked,
    unbounded,
    unmarked,
    within,
)
from keydyn.population.cells import LAST_IN_WORD

# The arrays that all sessions of a state share: SHA-256 of the population, and of the cohort.
SHARED = ("population", "cohort")
# The mark of a state in bytes, and the size of the shared arrays, which come first.
MARK = b"KDS1"
HEAD = 64
# The largest residual, tempo or logarithm of a time that is accepted.
LARGEST_VALUE = 1e12


def fingerprint(arrays: Sequence[Floats]) -> NDArray[np.uint8]:
    """(32,) SHA-256 of the arrays of templates."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def checked(state: Tensors, present: Tensors, unknown: int, times: Truths) -> Tensors:
    """Check that a state can replace the `present` one, and return it.

    `unknown` is the largest code; `times` tells which features are logarithms of times.
    """

    def values(name: str, found: Floats) -> None:
        within(-LARGEST_VALUE, LARGEST_VALUE)(name, found[:, times][~np.isnan(found[:, times])])
        if np.isinf(found).any():
            raise ValueError(f"{name} has values that are not finite")

    bounds: dict[str, Bounds] = {
        **dict.fromkeys(("population", "cohort", "claimed"), unbounded),
        "count": within(0, MOST_COUNTED),
        "codes": within(0, unknown),
        "in_word": within(-1, LAST_IN_WORD),
        "values": values,
        "residuals": within(-LARGEST_VALUE, LARGEST_VALUE),
        "tempo": within(-LARGEST_VALUE, LARGEST_VALUE),
        "variance": within(0.0, LARGEST_VALUE),
        "states": within(0.0, 2.0),
    }
    declared = {name: Tensor(now.shape, bounds[name], now.dtype.type) for name, now in present.items()}
    check_tensors({name: state[name] for name in present if name in state}, declared)
    for name, what in (("population", "population"), ("cohort", "cohort"), ("claimed", "claimed template")):
        if (state[name] != present[name]).any():
            raise ValueError(f"the state belongs to another {what}")
    # The hidden states are probabilities from the first scored event on; before, they are 0.
    total = np.where((state["count"] > 1)[:, None], 1.0, 0.0)
    if not (np.abs(state["states"].sum(axis=1) - total) < SUM_TOLERANCE).all():
        raise ValueError("states has values that do not add up to one")
    return state


def record_of(state: Tensors) -> np.dtype[Any]:
    """The type of the record that holds one session of a state."""
    own = [(name, array) for name, array in state.items() if name not in SHARED]
    return np.dtype([(name, array.dtype.newbyteorder("<"), array.shape[1:]) for name, array in own])


def packed(state: Tensors) -> bytes:
    """Pack all sessions of a state together."""
    return marked(MARK, _head(state) + _records(state).tobytes())


def packed_each(state: Tensors) -> list[bytes]:
    """Pack each session of a state separately, as `packed` does for a single one."""
    head = _head(state)
    return [marked(MARK, head + record.tobytes()) for record in _records(state)]


def parsed(contents: bytes, record: np.dtype[Any]) -> Tensors:
    """Read a state from what `packed` returned, with records of this type; values are not checked here."""
    payload = _whole(contents)
    if (len(payload) - HEAD) % record.itemsize:
        raise ValueError("the state does not fit these sessions: it is of another population or cohort")
    first, second = (np.frombuffer(payload, np.uint8, 32, 32 * n) for n in range(2))
    records = np.frombuffer(payload, record, offset=HEAD)
    own = {name: _native(records[name]) for name in record.names or ()}
    return {"population": first, "cohort": second} | own


def _whole(contents: bytes) -> bytes:
    payload = unmarked(MARK, contents, "a state of streams")
    if len(payload) < HEAD:
        raise ValueError("these bytes are not a state of streams, or they are cut short")
    return payload


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Convert values to this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def joined(several: Sequence[bytes]) -> bytes:
    """Join separate states of sessions in one; a `ValueError` if populations or cohorts differ."""
    if not several:
        raise ValueError("there are no states")
    payloads = [_whole(contents) for contents in several]
    heads = {payload[:HEAD] for payload in payloads}
    if len(heads) > 1:
        raise ValueError("the states are of different populations or cohorts")
    return marked(MARK, heads.pop() + b"".join(payload[HEAD:] for payload in payloads))


def _head(state: Tensors) -> bytes:
    return b"".join(state[name].tobytes() for name in SHARED)


def _records(state: Tensors) -> NDArray[Any]:
    record = record_of(state)
    records = np.empty(len(state["count"]), dtype=record)
    for name in record.names or ():
        records[name] = state[name]
    return records
