"""From the label of an event to its code, quickly, for events that come one at a time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Integers, compiled
from keydyn.model.data import vocabulary
from keydyn.model.data.vocabulary import Types


class LabelCodes:
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


Characters = NDArray[np.uint32]
Words = NDArray[np.uint64]

BETWEEN = "\0"
NATIVE = f"utf-32-{sys.byteorder[0]}e"
EMPTY = -1
# Bytes of a character in NumPy's arrays of texts.
CHARACTER = 4
UPPER = np.uint64(32)


class TextCodes:
    """A vocabulary of V texts; the code of a text is its place in it, that of any other text is `unseen`."""

    def __init__(self, types: Types, unseen: int) -> None:
        self._unseen = unseen
        # Two characters to a word. Two places more than any known text has: they tell a longer one.
        longest = types.dtype.itemsize // CHARACTER
        self._width = longest + 2 + longest % 2
        self._known = _padded(types, self._width).view(np.uint64)
        # A text's place in the table is a weighted sum of its words. Any weights will do.
        draw = np.random.default_rng(0)
        self._weights: Words = draw.integers(0, 2**64, (self._width // 2,), dtype=np.uint64)
        self._table = np.full(1 << (4 * len(types)).bit_length(), EMPTY, dtype=np.int64)
        fill_table(self._known, self._weights, self._table)

    def of_list(self, labels: list[Any]) -> Integers | None:
        """The code of each text, (B,); None if something in the list is no text, or has a null character."""
        try:
            joined = BETWEEN.join(labels)
        except TypeError:
            return None
        text = np.frombuffer(joined.encode(NATIVE, "surrogatepass"), dtype=np.uint32)
        rows = np.zeros((len(labels), self._width), dtype=np.uint32)
        return self._of_rows(rows) if lay_out(text, rows) else None

    def of_array(self, labels: Types) -> Integers:
        """The code of each text of an array of texts, (B,)."""
        return self._of_rows(_padded(labels, self._width))

    def _of_rows(self, rows: Characters) -> Integers:
        codes = np.full(len(rows), self._unseen)
        look_up(rows.view(np.uint64), self._known, self._weights, self._table, codes)
        return codes


def _padded(texts: Types, width: int) -> Characters:
    """(B, width) characters of texts, zeros behind each; the last place is not zero if a text is longer."""
    own = texts.dtype.itemsize // CHARACTER
    together = np.ascontiguousarray(texts.astype(texts.dtype.newbyteorder("="), copy=False))
    characters = np.frombuffer(together, dtype=np.uint32).reshape(len(texts), own)
    rows = np.zeros((len(texts), width), dtype=np.uint32)
    rows[:, :own] = characters[:, :width]
    rows[:, -1] |= characters[:, width:].any(axis=1)
    return rows


@compiled
def fill_table(known: Words, weights: Words, table: Integers) -> None:
    """Every text of a vocabulary into the next empty slot from where its search begins."""
    for code in range(len(known)):
        number = np.uint64(0)
        for n in range(len(weights)):
            number += known[code, n] * weights[n]
        slot = np.int64(number >> UPPER) & (len(table) - 1)
        while table[slot] != EMPTY:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = code


@compiled
def look_up(rows: Words, known: Words, weights: Words, table: Integers, codes: Integers) -> None:
    """The code of each row; as it was where the text is not known."""
    for row in range(len(rows)):
        number = np.uint64(0)
        for n in range(len(weights)):
            number += rows[row, n] * weights[n]
        slot = np.int64(number >> UPPER) & (len(table) - 1)
        while table[slot] != EMPTY:
            code = table[slot]
            different = np.uint64(0)
            for n in range(len(weights)):
                different |= rows[row, n] ^ known[code, n]
            if different == 0:
                codes[row] = code
                break
            slot = (slot + 1) & (len(table) - 1)


@compiled
def lay_out(text: Characters, rows: Characters) -> bool:
    """Texts that were joined by a null character, one per row of zeros; whether they are as many as rows.

    What is too long for its row is written over the row's last place. Where a text ends there is a choice by
    value and no branch, for a processor cannot guess it.
    """
    width = rows.shape[1]
    places = rows.ravel()
    place, next_row = 0, width
    for character in text:
        if place >= len(places):
            return False
        places[place] = character
        ended = character == 0
        place = next_row if ended else min(place + 1, next_row - 1)
        next_row += width if ended else 0
    return len(places) == 0 or next_row == len(places)
