"""The features of an event, the keys around it, and the parents of each feature's residual."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.vocabulary import Types

INTERVAL, HOLD = "tau", "duration"
SPACES = ("space", " ")
# The parents of a residual: (feature, number of events before); feature 0 is the interval, 1 the hold, −1
# none.
INTERVAL_PARENTS = ((0, 1), (1, 1), (1, 2))
HOLD_PARENTS = ((0, 0), (1, 1), (0, 1))
# A parent's residual is clipped at ± this value.
CLIP = 3.0


class Around(NamedTuple):
    """The keys and positions around events, (N,) each; a missing or unknown key has code len(vocabulary)."""

    # Codes of keys
    two_before: Integers
    before: Integers
    key: Integers
    after: Integers
    position: Integers  # index of the event within its sample
    in_word: Integers  # number of keys since the last space; −1 if the vocabulary has no space


class Typing(NamedTuple):
    """Samples without what people share.

    `y` and `cell` are (N, F), `offsets`, (n + 1,), tell where samples begin, `classes`, (N,), are of keys.
    """

    y: Floats
    cell: Integers
    offsets: Integers
    classes: Integers


def spaces_of(vocabulary: Types) -> Integers:
    """The codes of the keys that end a word."""
    return np.array([code for code, name in enumerate(vocabulary.tolist()) if name in SPACES], dtype=np.int64)


def parents(n_features: int) -> Integers:
    """(F, 3, 2) the parents of each feature's residual; a further feature's is its own previous residual."""
    others = [((f, 1), (-1, 0), (-1, 0)) for f in range(2, n_features)]
    return np.array([INTERVAL_PARENTS, HOLD_PARENTS, *others], dtype=np.int64)
