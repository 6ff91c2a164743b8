"""From the label of an event to its code, quickly, for events that come one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keydyn.model import vocabulary
from keydyn.model.arrays import Integers
from keydyn.model.vocabulary import Types


class Labels:
    """The codes of a vocabulary of V types: 0 … V − 1, then `missing` = V and `unseen` = V + 1."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._places = vocabulary.places_of(types)
        # Only these are looked up as they are: True is no event type, though it equals 1.
        self._plain = str if types.dtype.kind == "U" else int
        self.missing, self.unseen = len(types), len(types) + 1

    def one(self, event: Any) -> int:
        """The code of one label."""
        if type(event) is self._plain:
            code = self._places.get(event)
            if code is not None:
                return code
        if event is None:
            return self.missing
        # What no vocabulary could hold is refused with the general path's message.
        if type(event) is str and not event.endswith("\0"):
            return self.unseen
        labels = np.empty(1, dtype=object)
        labels[0] = event
        return int(self.many(labels)[0])

    def many(self, events: Any) -> Integers:
        """The code of each label, (B,)."""
        if isinstance(events, list) and self._plain is str:
            try:
                return np.fromiter(map(self._places.get, events), np.int64, len(events))
            except TypeError:
                # Some label is missing, unseen or no label.
                pass
        labels = vocabulary.as_labels(events)
        codes, types = vocabulary.encode(labels)
        found = vocabulary.translation(types, self._types, self._places)
        found[:-1][found[:-1] == self.missing] = self.unseen
        return found[codes]

    def check(self, codes: Any, n: int, what: str) -> Integers:
        """Codes that the caller gives: one for each of n streams or sessions (`what`), from `encode`."""
        given = np.asarray(codes)
        if given.shape != (n,) or given.dtype.kind not in "iu":
            raise ValueError(f"codes must be one whole number a {what}: {n} are needed")
        if n and (given.min() < 0 or given.max() > self.unseen):
            raise ValueError(f"codes are numbered 0 to {self.unseen}, as `encode` gives them")
        return given.astype(np.int64, copy=False)


def translations(models: Sequence[Types], union: Types) -> Integers:
    """(U, V + 2): the code in each model of each type of the union, of missing and of unseen ones."""
    table = np.empty((len(models), len(union) + 2), dtype=np.int64)
    for row, types in zip(table, models, strict=True):
        row[:] = 0 if vocabulary.is_single(types) else len(types)
        if not vocabulary.is_single(types):
            row[: len(union)] = vocabulary.translation(union, types)[:-1]
    return table
