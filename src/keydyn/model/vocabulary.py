"""Event types: from labels to codes and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.model.kernels import Integers

Types = NDArray[Any]
MISSING = -1
# The one event type of a model that was fitted without any.
SINGLE_TYPE = "<any>"


def as_labels(events: Any) -> NDArray[Any]:
    """One flat array of labels; what is no array yet keeps its Python objects, so that 1 and "1" stay two."""
    if isinstance(events, (np.ndarray, pd.Series, pd.Index)) or hasattr(events, "__array__"):
        labels = np.asarray(events)
    else:
        labels = np.empty(len(events), dtype=object)
        labels[:] = list(events)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"events must be one label an event; got an array of shape {labels.shape}")
    return labels


def encode(labels: NDArray[Any]) -> tuple[Integers, Types]:
    """Codes into the sorted distinct labels; `None`, NaN and NA are missing, −1.

    Labels are text or whole numbers, not both. Numbers that were turned into floats by a missing
    neighbour are taken as the whole numbers they are.
    """
    codes, distinct = pd.factorize(labels, use_na_sentinel=True)
    types = np.array(_as_types(list(distinct)))
    if len(types) == 0:
        return codes.astype(np.int64), np.array([], dtype=str)
    order = np.argsort(types, kind="stable")
    rank = np.empty(len(types) + 1, dtype=np.int64)
    rank[order] = np.arange(len(types))
    rank[MISSING] = MISSING
    return rank[codes], types[order]


def _as_types(distinct: list[Any]) -> list[str] | list[int]:
    if all(isinstance(label, str) for label in distinct):
        return [str(label) for label in distinct]
    numbers = []
    for label in distinct:
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, (int, float, np.number)):
            raise ValueError(
                f"event types must be all text or all whole numbers; found {label!r} ({type(label).__name__})"
            )
        if not float(label).is_integer():
            raise ValueError(f"event types must be text or whole numbers; found {label!r}")
        numbers.append(int(label))
    return numbers


def check_types(event_types: Sequence[Any] | Types) -> Types:
    """A vocabulary given by the caller, in the caller's order: distinct, none missing."""
    codes, types = encode(as_labels(event_types))
    if len(codes) == 0:
        raise ValueError("event_types is empty")
    if (codes == MISSING).any():
        raise ValueError(f"event_types has a missing label at position {int(np.argmin(codes))}")
    given: Types = types[codes]
    if len(types) < len(given):
        counts = np.bincount(codes)
        raise ValueError(f"event_types names {types[np.argmax(counts)]!r} more than once")
    return given


def translation(source: Types, target: Types) -> Integers:
    """The place in `target` of each type of `source`, len(target) if it has none; a last entry for MISSING."""
    place = {label: n for n, label in enumerate(target.tolist())}
    unknown = len(target)
    return np.array([place.get(label, unknown) for label in source.tolist()] + [unknown], dtype=np.int64)


def is_single(types: Types) -> bool:
    """Whether this is the vocabulary of a model without event types, to which all events are one."""
    return len(types) == 1 and bool(types[0] == SINGLE_TYPE)


def find(codes: Integers, source: Types, target: Types) -> tuple[Integers, NDArray[np.bool_]]:
    """Codes into `target` of events coded into `source`, and which have a type that is not in `target`.

    Both those and events without a type get the code len(target).
    """
    if is_single(target):
        return np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=bool)
    places = translation(source, target)[codes]
    return places, (places == len(target)) & (codes != MISSING)


def union(known: Types, more: Types) -> Types:
    """The known types in their order, then the new ones in theirs."""
    new = translation(more, known)[:-1] == len(known)
    if not new.any():
        return known
    if known.dtype.kind != more.dtype.kind and len(known):
        raise ValueError("event types must be all text or all whole numbers, in every call")
    extended: Types = np.concatenate([known, more[new]])
    return extended
