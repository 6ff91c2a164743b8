"""Fast lookup of the codes of event labels, one at a time or many, for online scoring."""

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
    """The codes of labels in a vocabulary of V types: 0 … V − 1, `missing` = V and `unseen` = V + 1."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._places = vocabulary.places_of(types)
        # Only labels of this very type are looked up directly: True is no event type, though it equals 1.
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
        # Labels that no vocabulary can hold are refused by the general path, with its message.
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
        # Some label is missing or no text: the general path handles it or raises a clear error.
        codes, types = vocabulary.encode(vocabulary.as_labels(labels))
        found = vocabulary.translation(types, self._types, self._places)
        found[:-1][found[:-1] == self.missing] = self.unseen
        return found[codes]

    def _of_texts(self, labels: Any) -> Integers | None:
        """The code of each label if all are texts, or all are known or None; otherwise None."""
        if self._texts is None:
            # Built on first use, because a single stream never needs it.
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
            # Some label is unknown, or not hashable.
            return None

    def check(self, codes: Any, n: int, what: str) -> Integers:
        """The caller's codes, checked: one from `encode` for each of n streams or sessions (`what`)."""
        given = np.asarray(codes)
        if given.shape != (n,) or given.dtype.kind not in "iu":
            raise ValueError(f"codes must be one whole number per {what}: {n} are needed")
        if n and (given.min() < 0 or given.max() > self.unseen):
            raise ValueError(f"codes are numbered 0 to {self.unseen}, as `encode` gives them")
        return given.astype(np.int64, copy=False)


def translations(models: Sequence[Types], union: Types) -> Integers:
    """The code in each model of each type of the union, of missing and of unseen types, (U, V + 2)."""
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
# Bytes per character in NumPy's arrays of texts.
CHARACTER = 4
UPPER = np.uint64(32)


class TextCodes:
    """A hash table of V texts; the code of a text is its place in the vocabulary, or `unseen`."""

    def __init__(self, types: Types, unseen: int) -> None:
        self._unseen = unseen
        # Two characters to a word. At least two places more than the longest known text, so that longer texts
        # are recognised.
        longest = types.dtype.itemsize // CHARACTER
        self._width = longest + 2 + longest % 2
        self._known = _padded(types, self._width).view(np.uint64)
        # The hash of a text is a weighted sum of its words, with arbitrary weights.
        draw = np.random.default_rng(0)
        self._weights: Words = draw.integers(0, 2**64, (self._width // 2,), dtype=np.uint64)
        self._table = np.full(1 << (4 * len(types)).bit_length(), EMPTY, dtype=np.int64)
        fill_table(self._known, self._weights, self._table)

    def of_list(self, labels: list[Any]) -> Integers | None:
        """The code of each text, (B,); None if an item is not text or contains a null character."""
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
    """The characters of texts, padded with zeros, (B, width); the last is not zero if a text is longer."""
    own = texts.dtype.itemsize // CHARACTER
    together = np.ascontiguousarray(texts.astype(texts.dtype.newbyteorder("="), copy=False))
    characters = np.frombuffer(together, dtype=np.uint32).reshape(len(texts), own)
    rows = np.zeros((len(texts), width), dtype=np.uint32)
    rows[:, :own] = characters[:, :width]
    rows[:, -1] |= characters[:, width:].any(axis=1)
    return rows


@compiled
def fill_table(known: Words, weights: Words, table: Integers) -> None:
    """Put each text of a vocabulary into the first empty slot at or after the one that its hash gives."""
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
    """Fill in the code of each row whose text is known; leave the others as they are."""
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
    """Split texts joined by null characters, one per row of zeros; return whether there is one for each row.

    The excess of a long text goes to the last place of its row. The ends of texts are handled without
    branches, because a processor could not predict them.
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
