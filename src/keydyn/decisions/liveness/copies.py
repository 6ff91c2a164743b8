"""Detection of copies: samples that repeat an earlier one too closely to have been typed again.

For each time in a sample, two keyed hashes of 32 bits are stored. Both combine the time, in steps of 5 ms,
with its context: in one hash the last four keys, which finds copies of parts; in the other the place in the
sample, which finds copies with other names of keys. Without the secret, hashes only show that two times were
alike. A new sample is hashed with each of its times moved by up to seven steps; if a hash is known, the two
times differ by that number of steps. The evidence for a copy is how much more probable these differences are
between a sample and its copy, with some jitter, than between two samples that one person has typed.

The hash is SipHash-2-4 (Aumasson and Bernstein, 2012), which is made for short messages: without the key,
hashed values can neither be read off nor found by trial. Fingerprints as bytes are, in little-endian order:
`MARK`, the CRC-32 of all that follows, the number of samples, the number of hashes of each, and the hashes;
32 bits each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.decisions.liveness.not_typed import SampleTimes, times_of
from keydyn.files import marked, unmarked
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

# The length of a step in milliseconds, the most steps that a time may be moved, and the keys of its context.
STEP, FARTHEST, KEYS = 5.0, 7, 4
MOVES = np.arange(-FARTHEST, FARTHEST + 1)
# Standard deviation of the displacement of each press and release in copies, in milliseconds.
JITTERS = (0.0, 1.0, 5.0, 10.0)
# The expected share of times that a copy has changed altogether.
LOST = 0.03
# Spread of the logarithm of an interval and of a hold between samples of one person: a Student t with two
# degrees of freedom.
SPREAD: Floats = np.array([0.2, 0.15])
# The most samples, and the most hashes in total, that are kept as fingerprints of one person.
MOST_SAMPLES, MOST_HASHES = 200, 400_000
# Nats by which evidence from places must exceed evidence from keys. This keeps false alarms as rare as with
# keys alone; a copy sent as another text, which it is meant to find, has hundreds.
BY_PLACE = math.log(1000.0)
# The least probability of any difference between fresh samples, and the largest that their times are near.
LEAST, NEAR = 1e-4, 0.95

Hashes = NDArray[np.uint32]
MARK, PURPOSE = b"KDF1", "keydyn copies"
_WORD = np.dtype("<u4")
Words = NDArray[np.uint64]
Round = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

SHORTEST_SECRET, LONGEST_SECRET = 16, 64
START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


class Probes(NamedTuple):
    """The V known times of some keystrokes, with their hashes, keystrokes and kinds (interval or hold)."""

    hashes: Hashes  # (2, V, moves), by the last keys and by the place in the sample, or only by keys
    row: Integers
    times: Floats
    kind: Integers


class Fresh(NamedTuple):
    """The distribution of V times if they are not copied, given another sample of the person."""

    times: Floats  # milliseconds
    spread: Floats  # of the logarithm of each
    often: float  # the factor by which steps that a coarse clock can show occur more often

    @classmethod
    def of(cls, times: Floats, kind: Integers, tick: float) -> Fresh:
        """Describe intervals and holds, as `kind` says, measured by a clock with this tick."""
        return cls(np.maximum(times, 1.0), SPREAD.take(kind), max(1.0, tick / STEP))


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Keyed hashes of samples that serve to recognise copies of them; immutable.

    Attributes
    ----------
    hashes : (V,) two hashes per time, grouped by sample, the oldest sample first
    offsets : (n + 1,) the index at which each sample begins, and the end

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Fingerprints, recorded_samples
    >>> secret = bytes(range(32))  # yours, random and kept apart
    >>> kept = Fingerprints.of(recorded_samples(make_typists(1, 2, "free", 80)), secret)
    >>> len(Fingerprints.none().added(kept).offsets) - 1  # samples
    2
    """

    hashes: Hashes
    offsets: Integers

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Check that the parts belong together, and make them read-only."""
        kinds = self.hashes.dtype == np.uint32, self.offsets.dtype == np.int64
        if not all(kinds) or self.hashes.ndim != 1 or self.offsets.ndim != 1:
            raise ValueError("fingerprints are a list of hashes of 32 bits and a list of offsets")
        ends = self.offsets[[0, -1]].tolist() if len(self.offsets) else None
        if ends != [0, len(self.hashes)] or (self.offsets[1:] < self.offsets[:-1]).any():
            raise ValueError("the offsets of fingerprints must rise from 0 to the number of hashes")
        for array in (self.hashes, self.offsets):
            array.flags.writeable = False

    @classmethod
    def none(cls) -> Fingerprints:
        """Fingerprints of no samples."""
        return cls(np.zeros(0, dtype=np.uint32), np.zeros(1, dtype=np.int64))

    @classmethod
    def of(cls, samples: Samples, secret: bytes) -> Fingerprints:
        """Fingerprints of samples, in their order."""
        # A single sample is usually also compared with known ones, which needs all moves.
        probes = _probes(samples, secret, MOVES if len(samples) == 1 else MOVES[[FARTHEST]])
        begins = np.searchsorted(probes.row, samples.sequences.offsets)
        sample = np.repeat(np.arange(len(samples)), np.diff(begins))
        by_sample = np.argsort(np.tile(sample, 2), kind="stable")
        hashes = probes.hashes[:, :, probes.hashes.shape[2] // 2].ravel()[by_sample]
        return cls(hashes, 2 * begins.astype(np.int64))

    @classmethod
    def joined(cls, several: Sequence[Fingerprints], most: int | None = None) -> Fingerprints:
        """Join fingerprints, the oldest first; only the latest `most` samples, by default 200, are kept."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint32), *(one.hashes for one in several)])
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(np.diff(one.offsets) for one in several)])
        offsets = np.cumsum(lengths)
        first = max(0, len(offsets) - 1 - (most or MOST_SAMPLES))
        first = max(first, int(np.searchsorted(offsets, len(hashes) - MOST_HASHES)))
        return cls(hashes[offsets[first] :], offsets[first:] - offsets[first])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def latest(self) -> Fingerprints:
        """The fingerprints of the latest sample."""
        first = int(self.offsets[-2])
        return Fingerprints(self.hashes[first:].copy(), self.offsets[-2:] - first)

    def added(self, later: Fingerprints) -> Fingerprints:
        """Add the fingerprints of later samples; if there are too many, the oldest are dropped."""
        return Fingerprints.joined([self, later])


def copy_evidence(samples: Samples, known: Fingerprints, secret: bytes) -> Floats:
    """(n,) log-likelihood ratio of a copy of a known sample to a fresh sample; −∞ if nothing is known."""
    evidence = np.full(len(samples), -np.inf)
    if len(known.hashes) == 0:
        check_secret(secret)
        return evidence
    for s, sample in enumerate(samples):
        probes, tick = _probes(sample, secret, MOVES), SampleTimes.of(sample).tick
        if len(probes.times):
            whole = _evidence(probes.hashes, known, Fresh.of(probes.times, probes.kind, tick))[:, :, 0]
            by_keys, by_place = whole.max(axis=1).tolist()
            evidence[s] = max(by_keys, by_place - BY_PLACE) - math.log(len(known))
    return evidence


def part_evidence(probes: Probes, known: Fingerprints, tick: float) -> float:
    """The evidence that some part of a sample is a copy of a part of a known one, from the last keys."""
    if len(known.hashes) == 0 or len(probes.times) == 0:
        return -math.inf
    parts = _evidence(probes.hashes[:1], known, Fresh.of(probes.times, probes.kind, tick))[0, :, 1]
    # Each known sample, and each place where a part may begin, is another chance of a false alarm.
    return float(parts.max()) - math.log(len(known) * len(probes.times))


def _evidence(hashes: Hashes, known: Fingerprints, fresh: Fresh) -> Floats:
    """(C, n, 2) evidence for a copy of each known sample: of the whole, and of the best part."""
    found = np.empty((len(hashes), len(known), 2))
    fill_copy_evidence(hashes, known.hashes, known.offsets, fresh, _copied(), found)
    return found


def _probes(samples: Samples, secret: bytes, moves: Integers) -> Probes:
    """The probes of samples; those of a single sample are cached in it."""
    check_secret(secret)
    if len(samples) > 1:
        return _hashed(samples, secret, moves)
    kept = f"copies {secret.hex()}"
    if kept not in samples.kept:
        samples.kept[kept] = _hashed(samples, secret, MOVES)
    probes: Probes = samples.kept[kept]
    return probes


def _hashed(samples: Samples, secret: bytes, moves: Integers) -> Probes:
    sequences = samples.sequences
    names = ["", *map(str, sequences.event_types.tolist())]
    words = np.fromiter(map(word_of(secret), names), np.uint64, len(names)).take(sequences.codes + 1)
    times = SampleTimes.of(samples).times if len(samples) == 1 else times_of(samples)
    key = key_for(PURPOSE, secret)
    return probes_of(hashes_of_contexts(words, sequences.engine_arrays[2], key, 2), times, moves, key)


def hashes_of_contexts(words: Words, offsets: Integers, key: tuple[int, int], n_kinds: int) -> Words:
    """(C, N) hashes of each keystroke's last keys, given words (N,), and of its place if C is 2."""
    hashes = np.empty((n_kinds, len(words)), dtype=np.uint64)
    fill_contexts(words, offsets, start_of(key), hashes)
    return hashes


def probes_of(of_context: Words, times: Floats, moves: Integers, key: tuple[int, int]) -> Probes:
    """Make probes of keystrokes from hashes of their context, (C, N), and times, (N, 2)."""
    place = np.isfinite(times).ravel().nonzero()[0]
    row, kind, x = place >> 1, place & 1, times.ravel().take(place)
    # The last bit tells intervals from holds; steps may be negative.
    steps = 2 * np.floor(x / STEP).astype(np.int64) + kind
    hashes = np.empty((len(of_context), len(x), len(moves)), dtype=np.uint32)
    fill_moved(of_context.take(row, axis=1), steps, moves, start_of(key), hashes)
    return Probes(hashes, row, x, kind)


@cache
def _copied() -> Floats:
    """(jitters, moves + 1) ln P that a copy's time is this many steps away; the last, that it is farther."""
    away = np.linspace(-100.0, 100.0, 8001)
    found = []
    for jitter in JITTERS:
        # A time is the difference of two displaced ones.
        density = np.exp(-0.5 * (away / max(np.sqrt(2) * jitter, 0.05)) ** 2)
        overlap = np.maximum(0.0, 1.0 - np.abs(away / STEP - MOVES[:, None]))
        near = (1.0 - LOST) * (overlap @ density / density.sum()) + LOST / 3 / len(MOVES)
        found.append(np.log(np.append(near, 1.0 - near.sum())))
    return np.array(found)


@compiled
def fill_copy_evidence(
    probes: Hashes, known: Hashes, offsets: Integers, fresh: Fresh, copied: Floats, evidence: Floats
) -> None:
    """Fill the log-likelihood ratio for a copy of each known sample, with the jitter that fits best.

    `evidence` is (C, n, 2), of whole samples and of their best parts. `probes` (C, v, m) are hashes of each
    time of the sample, moved by −m // 2 to m // 2 steps, and `known` those of the known samples, sample s
    from offsets[s] to offsets[s + 1]. `copied` (jitters, m + 1) has the logarithm of the probability of each
    move to a copy; the last is for a time without a match. If several moves lead to a known sample, the
    smallest counts; if two are equally small, the forward one.
    """
    C, v, m = probes.shape
    size = 64
    while size < 2 * v * m:
        size *= 2
    last = np.uint32(size - 1)
    first, following = np.empty(size, dtype=np.int32), np.empty(v * m, dtype=np.int32)
    nearest, lost = np.empty(v, dtype=np.int64), np.empty(v)
    scale, expected = np.empty(v), np.empty(v)
    for time in range(v):
        near = fresh.often * (_below(fresh, time, m - m // 2) - _below(fresh, time, -(m // 2)))
        scale[time] = fresh.often * min(1.0, NEAR / near)
        lost[time] = math.log(max(1.0 - min(near, NEAR), LEAST))
    # What a known sample without a match gives: the same for all.
    nearest[:] = m
    no_whole, no_part = _best_jitter(copied, nearest, lost)
    for c in range(C):
        # A hash table of the probes: the first one in each slot, and the next one in the same slot.
        own = probes[c].reshape(v * m)
        first[:] = -1
        for i in range(v * m):
            place = np.int64(own[i] & last)
            following[i] = first[place]
            first[place] = i
        for s in range(len(offsets) - 1):
            matches = 0
            for k in range(offsets[s], offsets[s + 1]):
                i = first[np.int64(known[k] & last)]
                while i >= 0:
                    if own[i] == known[k]:
                        time, move, matches = i // m, i % m, matches + 1
                        away, least = abs(move - m // 2), abs(nearest[time] - m // 2)
                        if nearest[time] == m or away < least or (away == least and move > nearest[time]):
                            nearest[time] = move
                    i = following[i]
            evidence[c, s, 0], evidence[c, s, 1] = no_whole, no_part
            if matches > 0:
                for time in range(v):
                    expected[time], move = lost[time], nearest[time] - m // 2
                    if nearest[time] < m:
                        share = _below(fresh, time, move + 1) - _below(fresh, time, move)
                        expected[time] = math.log(max(scale[time] * share, LEAST))
                evidence[c, s, 0], evidence[c, s, 1] = _best_jitter(copied, nearest, expected)
                nearest[:] = m


@inner
def _best_jitter(copied: Floats, nearest: Integers, expected: Floats) -> tuple[float, float]:
    """The evidence of whole samples and of their best parts, with the jitter that fits best."""
    whole, best = -np.inf, -np.inf
    for j in range(len(copied)):
        ratio, part = 0.0, 0.0
        for time in range(len(nearest)):
            gain = copied[j, nearest[time]] - expected[time]
            ratio, part = ratio + gain, max(part, 0.0) + gain
            best = max(best, part)
        whole = max(whole, ratio)
    return whole, best


@inner
def _below(fresh: Fresh, time: int, steps: int) -> float:
    """The share of fresh times below the beginning of a step, numbered from the step that a time is in."""
    x = fresh.times[time]
    z = math.log(max((math.floor(x / STEP) + steps) * STEP, 0.01) / x) / fresh.spread[time]
    share: float = 0.5 + z / (2.0 * math.sqrt(2.0 + z * z))
    return share


def fingerprints_bytes(fingerprints: Fingerprints) -> bytes:
    """Pack fingerprints, for `fingerprints_of` to read.

    Examples
    --------
    >>> from keydyn.decisions import Fingerprints, fingerprints_bytes
    >>> fingerprints_bytes(Fingerprints.none())[:4]
    b'KDF1'
    """
    lengths = np.diff(fingerprints.offsets).astype(_WORD)
    count = np.array([len(lengths)], dtype=_WORD)
    parts = (count, lengths, fingerprints.hashes.astype(_WORD))
    return marked(MARK, b"".join(part.tobytes() for part in parts))


def fingerprints_of(contents: bytes) -> Fingerprints:
    """Restore fingerprints from the result of `fingerprints_bytes`; a `ValueError` says what is wrong.

    Examples
    --------
    >>> from keydyn.decisions import Fingerprints, fingerprints_bytes, fingerprints_of
    >>> len(fingerprints_of(fingerprints_bytes(Fingerprints.none())).hashes)
    0
    """
    payload = unmarked(MARK, contents, "fingerprints")
    if len(payload) < _WORD.itemsize or len(payload) % _WORD.itemsize:
        raise ValueError("these bytes are not fingerprints, or they are cut short")
    words = np.frombuffer(payload, dtype=_WORD)
    n = int(words[0])
    lengths, hashes = words[1 : n + 1].astype(np.int64), words[n + 1 :].astype(np.uint32)
    if len(lengths) < n or int(lengths.sum()) != len(hashes):
        raise ValueError("the fingerprints do not have as many hashes as they state")
    return Fingerprints(hashes, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]))


def check_secret(secret: bytes) -> None:
    """Raise a `ValueError` unless the secret is 16 to 64 bytes."""
    if not isinstance(secret, bytes) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise ValueError(f"the secret must be {SHORTEST_SECRET} to {LONGEST_SECRET} bytes")


@lru_cache(maxsize=64)
def key_for(purpose: str, secret: bytes) -> tuple[int, int]:
    """Derive the two words of a key for one purpose from the secret."""
    check_secret(secret)
    key = blake2b(purpose.encode(), key=secret, digest_size=16).digest()
    return int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")


@lru_cache(maxsize=64)
def word_of(secret: bytes) -> Callable[[str], int]:
    """Return a cached function that maps key names to words, given a secret."""

    @lru_cache(maxsize=1024)
    def word(name: str) -> int:
        return int.from_bytes(blake2b(name.encode(), key=secret, digest_size=8).digest(), "little")

    return word


@lru_cache(maxsize=64)
def start_of(key: tuple[int, int]) -> Words:
    """The four words of the initial state of a hash."""
    return np.array([word ^ part for word, part in zip(START, (*key, *key), strict=True)], dtype=np.uint64)


@compiled
def fill_contexts(words: Words, offsets: Integers, start: Words, hashes: Words) -> None:
    """Fill in hashes (C, N) of the last keys of each keystroke, then of its place in its sample.

    The messages are `KEYS` words and their length; words that are not there are 0.
    """
    length, none = np.uint64(8 * KEYS << 56), np.uint64(0)
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            for k in range(len(hashes)):
                a, b, c, d = start[0], start[1], start[2], start[3]
                for back in range(KEYS):
                    word = none
                    if k == 1:
                        word = np.uint64(1 + n - offsets[q]) if back == 0 else none
                    elif n - back >= offsets[q]:
                        word = words[n - back]
                    a, b, c, d = _taken(a, b, c, d, word)
                a, b, c, d = _taken(a, b, c, d, length)
                hashes[k, n] = _hash(a, b, c, d)


@compiled
def fill_moved(contexts: Words, steps: Integers, moves: Integers, start: Words, hashes: Hashes) -> None:
    """Fill in the lower halves of hashes, (C, V, m), of contexts (C, V) and moved times, in steps (V,).

    The messages are two words and their length; a step counts twice in `steps`.
    """
    length = np.uint64(16 << 56)
    for k in range(len(contexts)):
        for v in range(len(steps)):
            a, b, c, d = _taken(start[0], start[1], start[2], start[3], contexts[k, v])
            for m in range(len(moves)):
                e, f, g, h = _taken(a, b, c, d, np.uint64(steps[v] + 2 * moves[m]))
                e, f, g, h = _taken(e, f, g, h, length)
                hashes[k, v, m] = np.uint32(_hash(e, f, g, h))


@inner
def _taken(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, block: np.uint64) -> Round:
    """The state after one more block of the message."""
    a, b, c, d = _round(a, b, c, d ^ block)
    a, b, c, d = _round(a, b, c, d)
    return a ^ block, b, c, d


@inner
def _hash(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> np.uint64:
    """The hash from the state after the last block."""
    c ^= np.uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@inner
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> Round:
    # Sums of 64 bits wrap round, as intended.
    a, c = a + b, c + d
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a = _turned(a, 32)
    c, a = c + b, a + d
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return a, b, _turned(c, 32), d


@inner
def _turned(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))
