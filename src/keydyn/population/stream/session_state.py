"""What streams must know to go on, as plain arrays: checked, and as bytes, a record per session."""

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

# What all sessions of a state have in common: SHA-256 of the population, and of the cohort.
SHARED = ("population", "cohort")
# What the records of sessions are marked with, and the bytes of what they have in common, which come first.
MARK = b"KDS1"
HEAD = 64
# Beyond this no residual, tempo or logarithm of a time can come.
LARGEST_VALUE = 1e12


def fingerprint(arrays: Sequence[Floats]) -> NDArray[np.uint8]:
    """(32,) SHA-256 of what is known of templates."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def checked(state: Tensors, present: Tensors, unknown: int, times: Truths) -> Tensors:
    """The state, if it can replace the `present` one; `unknown` is the largest code, `times` are logs."""

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
    # The hidden states are probabilities once an event's term is known.
    total = np.where((state["count"] > 1)[:, None], 1.0, 0.0)
    if not (np.abs(state["states"].sum(axis=1) - total) < SUM_TOLERANCE).all():
        raise ValueError("states has values that do not add up to one")
    return state


def record_of(state: Tensors) -> np.dtype[Any]:
    """What a state holds of one session, as one record."""
    own = [(name, array) for name, array in state.items() if name not in SHARED]
    return np.dtype([(name, array.dtype.newbyteorder("<"), array.shape[1:]) for name, array in own])


def packed(state: Tensors) -> bytes:
    """All sessions of a state in one."""
    return marked(MARK, _head(state) + _records(state).tobytes())


def packed_each(state: Tensors) -> list[bytes]:
    """Each session of a state on its own, as `packed` would give it alone."""
    head = _head(state)
    return [marked(MARK, head + record.tobytes()) for record in _records(state)]


def parsed(contents: bytes, record: np.dtype[Any]) -> Tensors:
    """The state in what `packed` gave, in records like these; only the values are not checked here."""
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
    """In this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def joined(several: Sequence[bytes]) -> bytes:
    """The states of several sessions, each on its own, in one; a `ValueError` if they do not go together."""
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
