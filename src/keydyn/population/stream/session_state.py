"""What streams must know to go on, as plain arrays: checked, and as bytes, a record per session."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Truths
from keydyn.files import MOST_COUNTED, Tensors
from keydyn.population.wide_effects import LAST_IN_WORD

# What all sessions of a state have in common: SHA-256 of the population, and of the cohort.
SHARED = ("population", "cohort")
# Before the records of sessions: the mark, the CRC-32 of all that follows, and what they have in common.
MARK = b"KDS1"
HEAD = len(MARK) + 4 + 64
# Beyond this no residual, tempo or logarithm of a time can come.
LARGEST = 1e12


def fingerprint(arrays: Sequence[Floats]) -> NDArray[np.uint8]:
    """(32,) SHA-256 of what is known of templates."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def checked(state: Tensors, present: Tensors, unknown: int, times: Truths) -> Tensors:
    """The state, if it can take the place of the present one; a `ValueError` says why it cannot.

    `unknown` is the largest code of a key, `times` tells which values are logarithms.
    """
    for name, now in present.items():
        if name not in state:
            raise ValueError(f"the state has no {name}")
        found = np.asarray(state[name])
        if found.shape != now.shape or found.dtype != now.dtype:
            raise ValueError(
                f"the state's {name} is {found.dtype} of shape {found.shape}; here it is {now.dtype} of "
                f"shape {now.shape}"
            )
    same = {
        "population": "the state belongs to another population",
        "cohort": "the state belongs to another cohort",
        "claimed": "the state belongs to another claimed template",
    }
    for name, problem in same.items():
        if (state[name] != present[name]).any():
            raise ValueError(problem)
    count, states = state["count"], state["states"]
    # The hidden states are probabilities once an event's term is known.
    total = np.where((count > 1)[:, None], 1.0, 0.0)
    numbers = {
        "count": ((count >= 0) & (count <= MOST_COUNTED)).all(),
        "codes": ((state["codes"] >= 0) & (state["codes"] <= unknown)).all(),
        "in_word": ((state["in_word"] >= -1) & (state["in_word"] <= LAST_IN_WORD)).all(),
        "values": (np.isnan(state["values"]) | (np.abs(state["values"]) < LARGEST) | ~times).all()
        and not np.isinf(state["values"]).any(),
        "residuals": (np.abs(state["residuals"]) < LARGEST).all(),
        "tempo": (np.abs(state["tempo"]) < LARGEST).all(),
        "variance": ((state["variance"] >= 0) & (state["variance"] < LARGEST)).all(),
        "states": (states >= 0).all() and (np.abs(states.sum(axis=1) - total) < 1e-6).all(),
    }
    wrong = [name for name, right in numbers.items() if not right]
    if wrong:
        raise ValueError(f"the state has values out of range: {', '.join(wrong)}")
    return state


def record_of(state: Tensors) -> np.dtype[Any]:
    """What a state holds of one session, as one record."""
    own = [(name, array) for name, array in state.items() if name not in SHARED]
    return np.dtype([(name, array.dtype.newbyteorder("<"), array.shape[1:]) for name, array in own])


def packed(state: Tensors) -> bytes:
    """All sessions of a state in one."""
    return _packed(_head(state), _records(state).tobytes())


def packed_each(state: Tensors) -> list[bytes]:
    """Each session of a state for itself, as `packed` would give it alone."""
    head = _head(state)
    return [_packed(head, record.tobytes()) for record in _records(state)]


def parsed(contents: bytes, record: np.dtype[Any]) -> Tensors:
    """The state in what `packed` gave; a `ValueError` says what is wrong with anything else.

    `record` is that of the streams which are to go on from it. The values are not checked here.
    """
    _check_whole(contents)
    if (len(contents) - HEAD) % record.itemsize:
        raise ValueError("the state does not fit these sessions: it is of another population or cohort")
    first, second = (np.frombuffer(contents, np.uint8, 32, HEAD - 64 + 32 * n) for n in range(2))
    records = np.frombuffer(contents, record, offset=HEAD)
    own = {name: _native(records[name]) for name in record.names or ()}
    return {"population": first, "cohort": second} | own


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """In this machine's byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def joined(several: Sequence[bytes]) -> bytes:
    """The states of several sessions, each for itself, in one; a `ValueError` if they do not go together."""
    if not several:
        raise ValueError("there are no states")
    for contents in several:
        _check_whole(contents)
    heads = {contents[HEAD - 64 : HEAD] for contents in several}
    if len(heads) > 1:
        raise ValueError("the states are of different populations or cohorts")
    return _packed(heads.pop(), b"".join(contents[HEAD:] for contents in several))


def _check_whole(contents: bytes) -> None:
    if contents[: len(MARK)] != MARK or len(contents) < HEAD:
        raise ValueError("this is not a state of streams, or it is cut short")
    if crc32(contents[len(MARK) + 4 :]) != int.from_bytes(contents[len(MARK) : len(MARK) + 4], "little"):
        raise ValueError("the state is damaged: its contents do not match its checksum")


def _head(state: Tensors) -> bytes:
    return b"".join(state[name].tobytes() for name in SHARED)


def _records(state: Tensors) -> NDArray[Any]:
    record = record_of(state)
    records = np.empty(len(state["count"]), dtype=record)
    for name in record.names or ():
        records[name] = state[name]
    return records


def _packed(head: bytes, records: bytes) -> bytes:
    return MARK + crc32(records, crc32(head)).to_bytes(4, "little") + head + records
