"""Join short samples to longer ones, and cut samples to their first keys."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Integers
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Names, Samples
from keydyn.lab.forgeries.made_up import made_up
from keydyn.model import Sequences


def joined(samples: Samples, keys: int) -> Samples:
    """Join consecutive samples of each person until they have at least this many keys; rests are left out.

    The interval across a join is missing, like that before a first key. Joined samples are numbered within
    each user.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import joined
    >>> joined(Samples.of(make_typists(2, 8)), 30).sequences.lengths.tolist()
    [33, 33, 33, 33]
    """
    if keys < 1:
        raise ValueError(f"samples are joined to 1 key or more, not {keys}")
    people, users = samples.people
    lengths = samples.sequences.lengths
    chosen, sizes = [], []
    names: Names = []
    for u, user in enumerate(users.tolist()):
        own = np.flatnonzero(people == u)
        typed, number, first = 0, 0, 0
        for n, sample in enumerate(own.tolist()):
            typed += int(lengths[sample])
            if typed >= keys:
                chosen.append(own[first : n + 1])
                sizes.append(typed)
                names.append((user, number))
                typed, number, first = 0, number + 1, n + 1
    parts = made_up(samples, times_of(samples), rounded=False)
    parts = parts[np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)]
    return _with_offsets(parts, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), names)


def first_keys_of_each(samples: Samples, keys: int) -> Samples:
    """The first keys of every sample; shorter samples are left out.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import first_keys_of_each
    >>> first_keys_of_each(Samples.of(make_typists(1, 3)), 5).sequences.lengths.tolist()
    [5, 5, 5]
    """
    if keys < 1:
        raise ValueError(f"samples are cut to 1 key or more, not {keys}")
    long = samples[samples.sequences.lengths >= keys]
    rows = (long.sequences.offsets[:-1, None] + np.arange(keys)).ravel()
    return _with_offsets(long, np.arange(len(long) + 1) * keys, long.names, rows)


def _with_offsets(samples: Samples, offsets: Integers, names: Names, rows: Integers | None = None) -> Samples:
    """Samples made of some rows of others, with new boundaries."""
    of = samples.sequences
    X, codes = (of.X, of.codes) if rows is None else (of.X[rows], of.codes[rows])
    divided = Sequences(X, codes, of.event_types, offsets, of.feature_names, names)
    return Samples(names, divided, samples.emission)
