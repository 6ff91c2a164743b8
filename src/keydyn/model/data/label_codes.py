"""From the label of an event to its code, quickly, for events that come one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keydyn.arrays import Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.text_codes import TextCodes
from keydyn.model.data.vocabulary import Types


class Labels:
    """The codes of a vocabulary of V types: 0 … V − 1, then `missing` = V and `unseen` = V + 1."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._places = vocabulary.places_of(types)
        # Only these are looked up as they are: True is no event type, though it equals 1.
        self._plain = str if types.dtype.kind == "U" else int
        self.missing, self.unseen = len(types), len(types) + 1
        self._texts: TextCodes | None = None

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
        labels = events if isinstance(events, list) else vocabulary.as_labels(events)
        found = self._of_texts(labels) if self._plain is str else None
        if found is not None:
            return found
        # Some label is missing or no text: the general way takes it, or says what is wrong with it.
        codes, types = vocabulary.encode(vocabulary.as_labels(labels))
        found = vocabulary.translation(types, self._types, self._places)
        found[:-1][found[:-1] == self.missing] = self.unseen
        return found[codes]

    def _of_texts(self, labels: Any) -> Integers | None:
        """The code of each label, if all are texts, or known ones and missing."""
        if self._texts is None:
            # Made when it is first needed: a single stream never does.
            self._texts = TextCodes(self._types, self.unseen)
        if isinstance(labels, list):
            found = self._texts.of_list(labels)
            return self._of_known(labels) if found is None else found
        if labels.dtype.kind == "U":
            return self._texts.of_array(labels)
        return self._of_texts(labels.tolist()) if labels.dtype == object else None

    def _of_known(self, labels: list[Any]) -> Integers | None:
        places = self._places | {None: self.missing}
        try:
            return np.fromiter(map(places.get, labels), np.int64, len(labels))
        except TypeError:
            # A label that is not known has no place, and one that cannot be a key is none.
            return None

    def check(self, codes: Any, n: int, what: str) -> Integers:
        """Codes that the caller gives: one for each of n streams or sessions (`what`), from `encode`."""
        given = np.asarray(codes)
        if given.shape != (n,) or given.dtype.kind not in "iu":
            raise ValueError(f"codes must be one whole number per {what}: {n} are needed")
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
