"""The features of an event, what stands around it, and which residuals lean on which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.vocabulary import Types

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


def parents(n_features: int) -> Integers:
    """(F, 3, 2) the parents of each feature's residual; a further feature leans on its own last value."""
    others = [((f, 1), (-1, 0), (-1, 0)) for f in range(2, n_features)]
    return np.array([INTERVAL_PARENTS, HOLD_PARENTS, *others], dtype=np.int64)
