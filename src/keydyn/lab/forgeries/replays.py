"""Recorded typing sent again: unchanged, displaced, in another order, or assembled from pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.by_context import before
from keydyn.lab.forgeries.draws import resampled
from keydyn.lab.forgeries.forger import RECORDINGS
from keydyn.lab.forgeries.key_contexts import KeyContexts, contexts_of, grouped
from keydyn.lab.forgeries.made_up import made_up
from keydyn.population.features import SPACES


def replayed(
    samples: Samples, jitter: float = 0.0, random: int | np.random.Generator | None = None
) -> Samples:
    """Recorded samples sent again, with normally distributed displacements of presses and releases.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import replayed
    >>> len(replayed(Samples.of(make_typists(1, 3)), jitter=5.0, random=0))
    3
    """
    times = times_of(samples)
    if jitter > 0:
        times = displaced(times, np.random.default_rng(random).normal(0.0, jitter, (2, len(times))))
    return made_up(samples, times, rounded=False)


def displaced(times: Floats, by: Floats) -> Floats:
    """Intervals and holds (N, 2) after moving every press and release by `by`, (2, N)."""
    press, release = by
    moved = np.array(times)
    # A sample's first interval is missing and stays missing.
    moved[1:, 0] += np.diff(press)
    moved[:, 1] += release - press
    return moved


def in_the_rhythm_of(samples: Samples, others: Samples) -> Samples:
    """The samples' keys with another person's times in their order, regardless of the keys."""
    times, theirs = times_of(samples), times_of(others)
    for f in range(2):
        known = theirs[np.isfinite(theirs[:, f]), f]
        if len(known) == 0:
            raise ValueError(f"the other person has no {'holds' if f else 'intervals'}")
        times[:, f] = np.resize(known, len(times))
    return made_up(samples, times, rounded=False)


def shuffled(samples: Samples, random: np.random.Generator) -> Samples:
    """The samples' own times in random order: intervals and holds are each permuted within a sample."""
    times, offsets = times_of(samples), samples.sequences.offsets
    for s in range(len(samples)):
        for f in range(2):
            rows = slice(offsets[s] + (f == 0), offsets[s + 1])
            times[rows, f] = random.permutation(times[rows, f])
    return made_up(samples, times, rounded=False)


@dataclass(frozen=True)
class CutTogether:
    """Join recorded pieces to a new text: whole words, or runs of `run` keys, from any of the samples.

    A piece that was never recorded is halved, down to single keys; a key that was never recorded gets the
    times of some other key. With a jitter, in milliseconds, every press and release is displaced.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import CutTogether
    >>> samples = Samples.of(make_typists(1, 8))
    >>> len(CutTogether(run=4).forge(samples[:6], samples[6:], np.random.default_rng(0)))
    2
    """

    run: int | None = None
    jitter: float = 0.0
    rounded: bool = True
    family: str = "cut together"

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The kinds of recordings of the victim."""
        return RECORDINGS

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts` with times of recorded pieces; a `ValueError` if nothing was recorded."""
        lengths = pieces_of(texts, self.run)
        contexts = contexts_of(recorded, texts, int(lengths.max(initial=1)), 1)
        source = _sources(contexts, lengths, random)
        theirs = times_of(recorded)
        times = np.where(source[:, None] >= 0, theirs[source], np.nan)
        # A key copied from the start of a recorded sample has no interval, and an unrecorded key has no
        # times.
        for f in range(2):
            spare = resampled(grouped(theirs[:, f], contexts, 1), random)
            times[:, f] = np.where(np.isfinite(times[:, f]), times[:, f], spare)
        if self.jitter > 0:
            times = displaced(times, random.normal(0.0, self.jitter, (2, len(times))))
        return made_up(texts, times, self.rounded)


def pieces_of(texts: Samples, run: int | None) -> Integers:
    """The lengths of the pieces that texts are cut into: `run` keys, or a word and the space after it."""
    sequences = texts.sequences
    lengths = sequences.lengths
    first = np.repeat(sequences.offsets[:-1], lengths)
    place = np.arange(sequences.n_events)
    if run is None:
        spaces = np.flatnonzero(np.isin(sequences.event_types, SPACES))
        begins = np.isin(before(sequences.codes), spaces)
    else:
        if run < 1:
            raise ValueError(f"a piece has 1 key or more, not {run}")
        begins = (place - first) % run == 0
    begins |= place == first
    pieces: Integers = np.diff(np.flatnonzero(begins), append=sequences.n_events)
    return pieces


def _sources(contexts: KeyContexts, lengths: Integers, random: np.random.Generator) -> Integers:
    """The recorded key that each key is copied from, (N,); −1 if it was never recorded.

    A piece of L keys is found where the context of L keys at its end was recorded.
    """
    ends = np.cumsum(lengths) - 1
    source = np.full(int(lengths.sum()), -1, dtype=np.int64)
    while len(ends):
        left_ends, left_lengths = [], []
        for length in np.unique(lengths).tolist():
            mine = ends[lengths == length]
            found = np.full(len(mine), -1)
            if length < len(contexts.forged):
                found = _occurrences(contexts.recorded[length], contexts.forged[length][mine], random)
            back = np.arange(length)
            source[mine[found >= 0][:, None] - back] = found[found >= 0][:, None] - back
            if length > 1:
                absent, half = mine[found < 0], length // 2
                left_ends += [absent, absent - half]
                left_lengths += [np.full(len(absent), half), np.full(len(absent), length - half)]
        ends = np.concatenate(left_ends) if left_ends else ends[:0]
        lengths = np.concatenate(left_lengths) if left_lengths else lengths[:0]
    return source


def _occurrences(numbers: Integers, wanted: Integers, random: np.random.Generator) -> Integers:
    """For each wanted number, a random one of its positions; −1 if it does not occur."""
    order = np.argsort(numbers, kind="stable")
    first, end = (np.searchsorted(numbers[order], wanted, side) for side in ("left", "right"))
    chosen = order[np.minimum(first + random.integers(0, np.maximum(end - first, 1)), len(order) - 1)]
    found: Integers = np.where(end > first, chosen, -1)
    return found
