"""What streams must know to go on, as plain arrays: checked, and as the contents of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Truths
from keydyn.model.files import storage
from keydyn.model.files.restoring import MOST_COUNTED, Tensors
from keydyn.population.wide_effects import LAST_IN_WORD

CLASS = "StreamState"
FIELDS = {"format", "version", "class", "sha256"}
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


def packed(state: Tensors) -> bytes:
    """The contents of a file with this state: safetensors, with a digest."""
    return storage.packed({"format": storage.FORMAT, "version": storage.VERSION, "class": CLASS}, state)


def parsed(contents: bytes) -> Tensors:
    """The state in what `packed` gave; a `ModelFileError` says what is wrong with anything else."""
    state = storage.parsed(contents, "the state")
    if not isinstance(state, dict):
        raise storage.ModelFileError(f"this is a {type(state).__name__}, not the state of a stream")
    return state


def _restored(header: dict[str, Any], tensors: Tensors) -> Tensors:
    strange = set(header) - FIELDS
    if strange:
        raise ValueError(f"the header has fields that belong to no state: {', '.join(sorted(strange))}")
    return tensors


storage.READERS |= {CLASS: _restored}
