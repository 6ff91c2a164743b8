"""Recorded times by context: the key and the keys before it, as many as the recording supports.

This is finite-context modelling of typing (González and Calot, BIOSIG 2015): a time is made up from those
recorded after the longest run of preceding keys that occurs often enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import translation, union


class KeyContexts(NamedTuple):
    """The contexts of recorded keys and of keys to forge, with numbers that both share.

    Both arrays are (L, n). Row c numbers contexts of c keys, the key itself included; −1 where fewer keys
    were typed. `age` is, for each recorded key, the number of samples recorded after its own.
    """

    recorded: Integers
    forged: Integers
    age: Integers


class ValueGroups(NamedTuple):
    """The recorded values that each key is forged from."""

    values: Floats  # (M,) group after group, in the order recorded
    age: Integers  # (M,) number of samples that were recorded later
    starts: Integers  # (G,) where each group begins; none is empty
    sizes: Integers  # (G,)
    group: Integers  # (N,) the group of each key to forge


def contexts_of(recorded: Samples, texts: Samples, longest: int, least: int) -> KeyContexts:
    """Number the contexts of up to `longest` keys that were recorded `least` times or more."""
    if longest < 1 or least < 1:
        raise ValueError(f"contexts have 1 key or more, seen once or more, not {longest} and {least}")
    if recorded.sequences.n_events == 0:
        raise ValueError("nothing was recorded that times could be made up from")
    both = recorded.sequences, texts.sequences
    types = union(both[0].event_types, both[1].event_types)
    keys = np.concatenate([translation(one.event_types, types)[one.codes] for one in both])
    lengths = np.concatenate([one.lengths for one in both])
    position = np.arange(len(keys)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    R = both[0].n_events
    numbers = np.zeros(len(keys), dtype=np.int64)
    found = [numbers]
    for length in range(1, longest + 1):
        pairs = np.roll(numbers, 1) * (len(types) + 1) + keys
        pairs[position < length - 1] = -1
        different, numbers = np.unique(pairs, return_inverse=True)
        numbers = numbers.ravel() - int(len(different) > 0 and different[0] < 0)
        counts = np.bincount(numbers[:R][numbers[:R] >= 0], minlength=len(different))
        if not (counts[numbers[R:][numbers[R:] >= 0]] >= least).any():
            break
        found.append(numbers)
    stacked = np.stack(found)
    age = np.repeat(np.arange(len(recorded))[::-1], both[0].lengths)
    return KeyContexts(stacked[:, :R], stacked[:, R:], age)


def grouped(values: Floats, contexts: KeyContexts, least: int) -> ValueGroups:
    """For each key to forge, the recorded values in the longest context that has at least `least` of them.

    Missing values do not count. If even the key alone was recorded too rarely, all values are used.
    """
    known = np.flatnonzero(np.isfinite(values))
    if len(known) == 0:
        raise ValueError("nothing was recorded that times could be made up from")
    N = contexts.forged.shape[1]
    chosen = np.zeros(N, dtype=np.int64)
    for length in range(1, len(contexts.forged)):
        here, there = contexts.forged[length], contexts.recorded[length][known]
        counts = np.bincount(there[there >= 0], minlength=int(here.max(initial=-1)) + 1)
        chosen[(here >= 0) & (counts[here] >= least)] = length
    group = np.empty(N, dtype=np.int64)
    rows, sizes = [], []
    n_groups = 0
    for length in np.unique(chosen).tolist():
        here = chosen == length
        needed, which = np.unique(contexts.forged[length][here], return_inverse=True)
        there = contexts.recorded[length][known]
        place = np.minimum(np.searchsorted(needed, there), len(needed) - 1)
        fits = np.flatnonzero(needed[place] == there)
        order = fits[np.argsort(place[fits], kind="stable")]
        group[here] = n_groups + which.ravel()
        rows.append(known[order])
        sizes.append(np.bincount(place[order], minlength=len(needed)))
        n_groups += len(needed)
    if n_groups == 0:
        return ValueGroups(values[:0], contexts.age[:0], group[:0], group[:0], group)
    every, size = np.concatenate(rows), np.concatenate(sizes)
    return ValueGroups(values[every], contexts.age[every], np.cumsum(size) - size, size, group)
