"""Vocabularies of event types: encoding of labels as codes, and translation between vocabularies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Integers, Truths

Types = NDArray[Any]
MISSING = -1
WHOLE = np.iinfo(np.int64)
# The only event type of a model that was fitted without event types.
SINGLE_TYPE = "<any>"
# Up to this number of labels, encoding does without pandas.
FEW = 10_000


class LabelError(ValueError):
    """The error for a label that cannot be an event type, with the number of its event."""

    def __init__(self, problem: str, event: int) -> None:
        super().__init__(f"event {event}: {problem}")
        self.problem = problem
        self.event = event


def as_labels(events: Any) -> NDArray[Any]:
    """Labels as one flat array; items of a list stay Python objects, so that 1 and "1" remain different."""
    if isinstance(events, np.ma.MaskedArray):
        labels = np.asarray(np.ma.getdata(events)).astype(object)
        labels[np.ma.getmaskarray(events)] = None
    elif hasattr(events, "__array__"):
        labels = np.asarray(events)
    elif not isinstance(events, Iterable):
        raise ValueError(f"events must be one label per event, not {events!r}")
    else:
        items = list(events)
        labels = np.empty(len(items), dtype=object)
        labels[:] = items
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"events must be one label per event; got an array of shape {labels.shape}")
    return labels


def encode(labels: NDArray[Any]) -> tuple[Integers, Types]:
    """The codes of labels, and the sorted distinct labels; `None`, NaN and NA are missing and have code −1.

    Labels are text or whole numbers, not both. Whole numbers that are floats, as in an array with a missing
    value, are accepted.
    """
    try:
        codes, distinct = _factorised(labels)
    except TypeError as error:
        raise ValueError(f"event types must be text or whole numbers: {error}") from None
    if len(distinct) == 0:
        return codes.astype(np.int64), np.array([], dtype=str)
    as_type = as_text if isinstance(distinct[0], str) else _as_number
    known = []
    for code, label in enumerate(distinct):
        try:
            known.append(as_type(label))
        except ValueError as error:
            raise LabelError(str(error), int(np.argmax(codes == code))) from None
    types = np.array(known)
    order = np.argsort(types, kind="stable")
    rank = np.empty(len(types) + 1, dtype=np.int64)
    rank[order] = np.arange(len(types))
    rank[MISSING] = MISSING
    return rank[codes], types[order]


def _factorised(labels: NDArray[Any]) -> tuple[Integers, Any]:
    """The codes of labels, −1 where missing, and the distinct labels in order of first appearance."""
    if len(labels) <= FEW:
        # Avoids importing pandas, which takes longer than this.
        items = labels.tolist()
        if set(map(type, items)) <= {str, int}:
            places: dict[Any, int] = {}
            codes = [places.setdefault(label, len(places)) for label in items]
            return np.array(codes, dtype=np.int64), list(places)
    import pandas as pd

    factorised: tuple[Integers, Any] = pd.factorize(labels, use_na_sentinel=True)
    return factorised


def as_text(label: Any) -> str:
    """A label of a vocabulary of text; raises a `ValueError` that says why it cannot be an event type."""
    if not isinstance(label, str):
        raise ValueError(
            f"event types must be all text or all whole numbers; found {label!r} ({type(label).__name__})"
        )
    # NumPy's strings do not distinguish "a" from "a\0".
    if label.endswith("\0"):
        raise ValueError(f"an event type cannot end in a null character; found {label!r}")
    return str(label)


def _as_number(label: Any) -> int:
    if isinstance(label, (bool, np.bool_)) or not isinstance(label, (int, float, np.integer, np.floating)):
        raise ValueError(
            f"event types must be all text or all whole numbers; found {label!r} ({type(label).__name__})"
        )
    if not (isinstance(label, (int, np.integer)) or float(label).is_integer()):
        raise ValueError(f"event types must be text or whole numbers; found {label!r}")
    if not WHOLE.min <= int(label) <= WHOLE.max:
        raise ValueError(f"an event type must fit into 64 bits; found {label!r}")
    return int(label)


def check_types(event_types: Sequence[Any] | Types) -> Types:
    """The caller's vocabulary, in the caller's order, checked: labels are distinct and none is missing."""
    codes, types = encode(as_labels(event_types))
    if len(codes) == 0:
        raise ValueError("event_types is empty")
    if (codes == MISSING).any():
        raise ValueError(f"event_types has a missing label at position {int(np.argmin(codes))}")
    given: Types = types[codes]
    if len(types) < len(given):
        counts = np.bincount(codes)
        raise ValueError(f"event_types names {types[np.argmax(counts)].item()!r} more than once")
    return given


def places_of(types: Types) -> dict[Any, int]:
    """A dict from each type to its place in the vocabulary."""
    return {label: n for n, label in enumerate(types.tolist())}


def translation(source: Types, target: Types, places: Mapping[Any, int] | None = None) -> Integers:
    """The place in `target` of each type of `source`, len(target) if absent; the last entry is for MISSING.

    `places` is `places_of(target)`, if already known.
    """
    known = places_of(target) if places is None else places
    unknown = len(target)
    return np.array([known.get(label, unknown) for label in source.tolist()] + [unknown], dtype=np.int64)


def is_single(types: Types) -> bool:
    """Whether this is the vocabulary of a model without event types, for which all events are alike."""
    return len(types) == 1 and bool(types[0] == SINGLE_TYPE)


def find(
    codes: Integers, source: Types, target: Types, places: Mapping[Any, int] | None = None
) -> tuple[Integers, Truths]:
    """Recode events from `source` to `target`; also return a mask of events whose type `target` lacks.

    Those events, and events without a type, get the code len(target).
    """
    if is_single(target):
        return np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=bool)
    found = translation(source, target, places)[codes]
    return found, (found == len(target)) & (codes != MISSING)


def union(known: Types, more: Types) -> Types:
    """The known types in their order, then the new ones in theirs."""
    if len(known) == 0:
        return more
    new = translation(more, known)[:-1] == len(known)
    if not new.any():
        return known
    if known.dtype.kind != more.dtype.kind:
        raise ValueError("event types must be all text or all whole numbers, in every call")
    extended: Types = np.concatenate([known, more[new]])
    return extended
