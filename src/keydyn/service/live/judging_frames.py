"""Judging the frames of many sessions together, with one call per pool."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.watching.watch import WatchedPool
from keydyn.decisions.watching.watched import Watched
from keydyn.service.live.frame_text import Keys
from keydyn.service.live.session import FrameAnswer, Live, Waiting

log = logging.getLogger(__name__)
# A frame, and its keystrokes, of which there are some.
WithKeys = tuple[Waiting, Keys]


def judged(frames: Sequence[Waiting]) -> list[FrameAnswer | None]:
    """Judge frames and return the answer to each; None for a frame that could not be judged.

    The frames of each session must be in order. Frames of locked sessions, and those without keystrokes, are
    answered without being judged.
    """
    answers: list[FrameAnswer | None] = [
        FrameAnswer(frame, [], [], None, frame.live.locked_at is not None) for frame in frames
    ]
    by_pool: dict[WatchedPool, list[int]] = {}
    for n, frame in enumerate(frames):
        if frame.keys is not None and frame.live.locked_at is None and not frame.live.lost:
            by_pool.setdefault(frame.live.pool, []).append(n)
    for pool, numbers in by_pool.items():
        some = [(frames[n], keys) for n in numbers if (keys := frames[n].keys) is not None]
        for n, answer in zip(numbers, _of_pool(pool, some), strict=True):
            answers[n] = answer
    return answers


def _of_pool(pool: WatchedPool, some: Sequence[WithKeys]) -> Sequence[FrameAnswer | None]:
    try:
        return _together(pool, some)
    except Exception:
        # This should never happen; if it does, an error in one session must not affect the others.
        log.exception("%d frames could not be judged together", len(some))
    answers: list[FrameAnswer | None] = []
    broken: set[Live] = set()
    for frame, keys in some:
        if frame.live not in broken:
            try:
                answers += _together(pool, [(frame, keys)])
                continue
            except Exception:
                broken.add(frame.live)
        answers.append(None)
    return answers


def _together(pool: WatchedPool, some: Sequence[WithKeys]) -> list[FrameAnswer]:
    sizes = [len(keys.names) for _, keys in some]
    places = np.repeat([frame.live.place for frame, _ in some], sizes)
    names = list(chain.from_iterable(keys.names for _, keys in some))
    presses = list(chain.from_iterable(keys.presses for _, keys in some))
    releases = list(chain.from_iterable(keys.releases for _, keys in some))
    # A release that was not seen, None, becomes NaN.
    times = np.array([presses, releases], dtype=np.float64)
    return _split(pool.advance(places, names, times), some, [0, *accumulate(sizes)])


def _split(watched: Watched, some: Sequence[WithKeys], offsets: list[int]) -> list[FrameAnswer]:
    trusts, suspicions = watched.trust.tolist(), watched.suspicion.tolist()
    free = np.add.reduceat(~watched.locked, offsets[:-1], dtype=np.int64).tolist()
    pausing = _or_none(watched.pausing[np.array(offsets[1:]) - 1])
    answers = []
    locked: set[Live] = set()
    for n, (frame, keys) in enumerate(some):
        if frame.live in locked:
            answers.append(FrameAnswer(frame, [], [], None, locked=True))
            continue
        begin, end = offsets[n], offsets[n + 1]
        at, reason = frame.live.playback.take(*keys[1:]) or (end, None)
        if at > free[n]:
            at, reason = free[n], watched.forged(begin + free[n])
        # A session that locks is not judged after the keystroke that locked it.
        locks = begin + at < end
        if locks:
            locked.add(frame.live)
            end = begin + at + 1
        looks = [look.typed.answer for look in watched.looks if begin <= look.event < end]
        # The states at each keystroke are only for clients that asked for them.
        states = _or_none(watched.pausing[begin:end]) if frame.live.states else None
        answers.append(
            FrameAnswer(
                frame=frame,
                trust=trusts[begin:end],
                suspicion=suspicions[begin:end],
                pausing=pausing[n],
                locked=locks,
                states=states,
                reason=reason,
                typed=looks[-1] if looks else None,
            )
        )
    return answers


def _or_none(numbers: Floats) -> list[float | None]:
    """Return numbers as a list for JSON, with None in place of NaN."""
    found = numbers.astype(object)
    found[np.isnan(numbers)] = None
    shown: list[float | None] = found.tolist()
    return shown
