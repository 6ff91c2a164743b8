"""Detection of recordings played back in a watched session, and of keys that no person types.

A session is checked in blocks of fifty keys. A block is a recording if a part of it repeats an earlier block
of the session, or a known sample of the person, more closely than anyone types; a block that is too regular
or too fast was not typed. A session stores keyed hashes: of half the keys of its latest blocks, together with
their times, and of the keys of the incomplete block, whose times are stored too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.liveness.copies import (
    KEYS,
    MOVES,
    PURPOSE,
    Fingerprints,
    Words,
    fingerprints_bytes,
    fingerprints_of,
    hashes_of_contexts,
    key_for,
    part_evidence,
    probes_of,
    word_of,
)
from keydyn.decisions.liveness.not_typed import SampleTimes, times_reasons
from keydyn.files import marked, unmarked
from keydyn.keystrokes.one_sample import out_of_reach

# The number of keys in a block, and of blocks that are remembered per session.
BLOCK, BLOCKS = 50, 20
# The least evidence for a recording, in nats; a recording has about a hundred. In 212,000 keys of the paper's
# datasets one block has 23, and only blocks of a sample that is in the data twice have more.
LIMIT = 30.0
RECORDED = "a recording: keys repeat earlier ones more closely than anybody types"
MARK = b"KDR1"
# The keys before a block that are kept for the hashes of its first keys and for its first interval.
BEFORE = KEYS - 1
_KEY = np.dtype([("word", "<u8"), ("press", "<f8"), ("release", "<f8")])
_LENGTH = np.dtype("<u4")


class PlaybackCheck:
    """Detects recordings in one session; `known` are fingerprints of the person's samples.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions.liveness.copies import Fingerprints
    >>> from keydyn.decisions.watching.playback import PlaybackCheck
    >>> check = PlaybackCheck(Fingerprints.none(), bytes(range(32)))
    >>> typed = make_typists(1, 1, "free", 100)
    >>> once = [typed[name].tolist() for name in ("keyname", "timepress", "timerelease")]
    >>> check.take(*once) is None
    True
    >>> at, reason = check.take(*once)  # the second time it is a copy
    >>> at
    49
    """

    def __init__(self, known: Fingerprints, secret: bytes) -> None:
        self._known, self._key, self._word = known, key_for(PURPOSE, secret), word_of(secret)
        self._seen = Fingerprints.none()
        self.restart()

    def restart(self) -> None:
        """Begin a new block; earlier blocks are still known."""
        self._words = [0] * BEFORE
        self._press = [math.nan] * BEFORE
        self._release = [math.nan] * BEFORE

    def take(
        self, keys: Sequence[str], press: Sequence[float], release: Sequence[float | None]
    ) -> tuple[int, str] | None:
        """Take the next keys; if they were not typed, return the key at which this shows and the reason."""
        before = len(self._words) - BEFORE
        self._words += map(self._word, keys)
        self._press += press
        # A release that was not seen, None, becomes NaN.
        self._release += np.array(release, dtype=np.float64).tolist()
        found = None
        for begin in range(0, len(self._words) - BEFORE - BLOCK + 1, BLOCK):
            reason = self._reason(slice(begin, begin + BEFORE + BLOCK))
            if reason is not None and found is None:
                found = begin + BLOCK - before - 1, reason
        done = (len(self._words) - BEFORE) // BLOCK * BLOCK
        if done:
            self._words, self._press = self._words[done:], self._press[done:]
            self._release = self._release[done:]
        return found

    def _reason(self, block: slice) -> str | None:
        """The reason why a block, preceded by three earlier keys, cannot have been typed, if there is one."""
        typed = _times(np.array(self._press[block]), np.array(self._release[block]))[BEFORE:]
        times, tick, *_ = seen = SampleTimes.among(typed)
        words: Words = np.array(self._words[block], dtype=np.uint64)
        hashes = hashes_of_contexts(words, np.array([0, len(words)]), self._key, 1)[0, BEFORE:]
        # Repeated keys, as in a password or while a key is held, count once: one is always near another.
        first = np.unique(hashes, return_index=True)[1]
        chosen = np.sort(first[hashes[first] % np.uint64(2) == 0])
        probes = probes_of(hashes[None, chosen], times[chosen], MOVES, self._key)
        copied = max(part_evidence(probes, known, tick) for known in (self._known, self._seen))
        own = probes.hashes[0, :, len(MOVES) // 2].copy()
        self._seen = Fingerprints.joined([self._seen, Fingerprints(own, np.array([0, len(own)]))], BLOCKS)
        reasons = [RECORDED] if copied > LIMIT else times_reasons(seen)
        return reasons[0] if reasons else None

    def packed_with(self, session: bytes) -> bytes:
        """The state that another process needs to continue, followed by that of the session itself."""
        keys = np.empty(len(self._words), dtype=_KEY)
        keys["word"], keys["press"], keys["release"] = self._words, self._press, self._release
        count = np.array([len(keys)], dtype=_LENGTH)
        own = marked(MARK, count.tobytes() + keys.tobytes() + fingerprints_bytes(self._seen))
        return np.array([len(own)], dtype=_LENGTH).tobytes() + own + session

    def resume(self, contents: bytes) -> bytes:
        """Continue from the result of `packed_with`, and return the state of the session itself.

        A `ValueError` says what is wrong with the contents.
        """
        payload, size = contents[_LENGTH.itemsize :], _length(contents)
        own = unmarked(MARK, payload[:size], "a state of recordings")
        n, rest = _length(own), own[_LENGTH.itemsize :]
        if not BEFORE <= n < BEFORE + BLOCK or len(rest) < n * _KEY.itemsize:
            raise ValueError("the state of recordings does not have as many keys as it states")
        keys = np.frombuffer(rest, _KEY, n)
        if np.isinf(keys["press"]).any() or np.isinf(keys["release"]).any():
            raise ValueError("the state of recordings has times that are not finite")
        self._seen = Fingerprints.joined([fingerprints_of(rest[n * _KEY.itemsize :])], BLOCKS)
        self._words, self._press = keys["word"].tolist(), keys["press"].tolist()
        self._release = keys["release"].tolist()
        return payload[size:]


def _times(press: Floats, release: Floats) -> Floats:
    """(N, 2) interval and hold of each key; NaN where hands cannot have produced them."""
    times = np.column_stack([np.diff(press, prepend=np.nan), release - press])
    for column, wrong in zip(times.T, out_of_reach(times[:, 0], times[:, 1]), strict=True):
        column[wrong] = np.nan
    return times


def _length(contents: bytes) -> int:
    if len(contents) < _LENGTH.itemsize:
        raise ValueError("the state of recordings is cut short")
    return int(np.frombuffer(contents, _LENGTH, 1)[0])
