"""What the model sees of samples: logarithms of times, other columns as they are, keys as codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types, translation

INTERVAL, HOLD = "tau", "duration"
SPACES = ("space", " ")
# The parents of a feature's residual: (feature, how many events before); −1 is none. Intervals come first.
INTERVAL_PARENTS = ((0, 1), (1, 1), (1, 2))
HOLD_PARENTS = ((0, 0), (1, 1), (0, 1))
# A parent's residual counts up to this size.
CLIP = 3.0


class Around(NamedTuple):
    """What stands around each event, (N,); len(vocabulary) is the code of no key and of an unknown one."""

    # Codes of keys
    two_before: Integers
    before: Integers
    key: Integers
    after: Integers
    position: Integers  # number of the event within its sample, from 0
    # Keys since the last space; −1 where the vocabulary has no space, so that there are no words
    in_word: Integers


@dataclass(frozen=True, eq=False)
class Observations:
    """The events of samples, one after the other."""

    values: Floats  # (N, F) interval, hold, then further features; logarithms of times; NaN where missing
    codes: Integers  # (N,) place of the key in the vocabulary, len(vocabulary) if it is not there
    offsets: Integers  # (n + 1,) where samples begin
    jacobian: Floats  # (N, F) ln |d value / d x|, which makes a density of values one of what was measured

    @cached_property
    def position(self) -> Integers:
        """The number of each event within its sample, from 0."""
        lengths = np.diff(self.offsets)
        place: Integers = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], lengths)
        return place

    def neighbour(self, step: int, none: int) -> Integers:
        """The code of the key `step` events later, or earlier if negative; `none` beyond the sample."""
        found = np.full(len(self.codes), none, dtype=np.int64)
        if step < 0:
            found[-step:] = self.codes[:step]
            found[self.position < -step] = none
        else:
            found[:-step] = self.codes[step:]
            # Position falls at the start of the next sample.
            found[:-step][self.position[step:] < step] = none
        return found

    def around(self, vocabulary: Types) -> Around:
        """What stands around each event."""
        m = len(vocabulary)
        before, first = self.neighbour(-1, m), self.position == 0
        in_word = position_in_word(before, first, spaces_of(vocabulary))
        return Around(self.neighbour(-2, m), before, self.codes, self.neighbour(1, m), self.position, in_word)


class Typing(NamedTuple):
    """Samples without what people share.

    `y` and `cell` are (N, F), `offsets`, (n + 1,), where samples begin, and `classes`, (N,), those of keys.
    """

    y: Floats
    cell: Integers
    offsets: Integers
    classes: Integers


def spaces_of(vocabulary: Types) -> Integers:
    """The codes of the keys that end a word."""
    return np.array([code for code, name in enumerate(vocabulary.tolist()) if name in SPACES], dtype=np.int64)


def position_in_word(before: Integers, begins: Truths, spaces: Integers) -> Integers:
    """Keys since the last space or the sample's beginning; −1 where the vocabulary has no space."""
    if len(spaces) == 0:
        return np.full(len(before), -1, dtype=np.int64)
    place = np.arange(len(before))
    known = begins.copy()
    for space in spaces:
        known |= before == space
    last = np.maximum.accumulate(np.where(known, place, 0))
    return place - last


def feature_order(samples: Samples) -> tuple[str, ...]:
    """The features in the model's order: interval, hold, then the others as the samples have them."""
    names = samples.sequences.feature_names or ()
    absent = [name for name in (INTERVAL, HOLD) if name not in names]
    if absent:
        raise ValueError(f"the samples have no feature {absent[0]!r}; the population model needs it")
    return (INTERVAL, HOLD, *(name for name in names if name not in (INTERVAL, HOLD)))


def observations(samples: Samples, features: tuple[str, ...], vocabulary: Types) -> Observations:
    """The samples as the model sees them; a time of 0, which has no logarithm, is missing."""
    if len(samples) == 0:
        raise ValueError("there are no samples")
    if feature_order(samples) != features:
        raise ValueError(
            f"the model knows the features {', '.join(features)}; the samples have "
            f"{', '.join(feature_order(samples))}"
        )
    sequences = samples.sequences
    names = sequences.feature_names or ()
    columns = [names.index(name) for name in features]
    values = np.array(sequences.X[:, columns])
    # A sample's first interval is unknown, whatever stands in for it.
    values[sequences.offsets[:-1], 0] = np.nan
    jacobian = np.zeros_like(values)
    for f, column in enumerate(columns):
        if samples.emission[column] != "lognormal":
            continue
        values[values[:, f] <= 0, f] = np.nan
        values[:, f] = np.log(values[:, f])
        jacobian[:, f] = -values[:, f]
    codes = translation(sequences.event_types, vocabulary)[sequences.codes]
    return Observations(values, codes, np.array(sequences.offsets), jacobian)


def parents(n_features: int) -> Integers:
    """(F, 3, 2) the parents of each feature's residual; a further feature leans on its own last value."""
    others = [((f, 1), (-1, 0), (-1, 0)) for f in range(2, n_features)]
    return np.array([INTERVAL_PARENTS, HOLD_PARENTS, *others], dtype=np.int64)
