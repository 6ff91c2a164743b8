"""Machines that press keys at times of their own, with at most the victim's medians to go by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.by_context import before
from keydyn.lab.forgeries.forger import ENROLLED, NOTHING
from keydyn.lab.forgeries.made_up import made_up
from keydyn.lab.forgeries.replays import displaced

FAMILY = "robots"
# Milliseconds between presses, and hold time in milliseconds, of a robot without any recordings.
TYPICAL = (180.0, 90.0)
# Milliseconds that Chromium 156 adds to the delays requested through Playwright, measured on 63 keys each in
# a page on the same machine with keyboard.type(text, delay=50 and 120) and keyboard.press(key, delay=80): a
# median of 3.5 per wait, with 2.7 to 5.5 for nine tenths of the waits; 0.9 before the next press; and a stall
# of 5 to 40 at about one key in thirty.
WAIT_MEDIAN, WAIT_SPREAD, NEXT_PRESS = 3.5, 0.22, 0.9
STALLS, STALL = 1 / 30, 15.0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The common part of all machines: the same two times for every key, apart from chance.

    With a `spread`, each time is multiplied by a random factor between 1 − spread and 1 + spread.
    """

    spread: float = 0.0
    rounded: bool = True
    family: str = FAMILY

    @property
    def knowledge(self) -> tuple[str, ...]:
        """No recordings, or the enrolled samples to take medians from."""
        return NOTHING, ENROLLED

    def repeated(self, times: Floats, keys: int, random: np.random.Generator) -> Floats:
        """The two times repeated for every key, (keys, 2), with the spread."""
        found = np.tile(times, (keys, 1))
        if self.spread > 0:
            found *= random.uniform(1.0 - self.spread, 1.0 + self.spread, (keys, 2))
        return found


@dataclass(frozen=True, kw_only=True)
class Robot(Machine):
    """A machine with constant times, the victim's medians if there are recordings, with or without chance.

    With a `jitter`, in milliseconds, presses and releases are displaced by normally distributed amounts; with
    a `spread`, each hold and interval is multiplied by a random factor between 1 − spread and 1 + spread.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import Robot
    >>> samples = Samples.of(make_typists(1, 2))
    >>> Robot().forge(samples[:0], samples, np.random.default_rng(0)).sequences.X[1].tolist()
    [90.0, 180.0]
    """

    jitter: float = 0.0

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts`, all with the same times apart from chance."""
        N = texts.sequences.n_events
        times = self.repeated(medians(recorded), N, random)
        if self.jitter > 0:
            times = displaced(times, random.normal(0.0, self.jitter, (2, N)))
        return made_up(texts, times, self.rounded)


@dataclass(frozen=True, kw_only=True)
class BrowserRobot(Machine):
    """A script that types through a browser's automation, which adds small delays of its own.

    `keyboard.type(text, delay=…)` holds each key for the delay and presses the next one at once. With `waits`
    the script holds a key, waits, and presses the next one in the victim's median times. With a `spread` it
    asks for delays that are uniformly distributed, as in `Robot`.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import BrowserRobot
    >>> samples = Samples.of(make_typists(1, 2))
    >>> forged = BrowserRobot().forge(samples[:0], samples, np.random.default_rng(0))
    >>> bool((forged.sequences.X[:, 0] > 90).all())
    True
    """

    waits: bool = False

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts` with the times that a page would see."""
        N = texts.sequences.n_events
        interval, hold = medians(recorded).tolist()
        pause = max(interval - hold, 1.0)
        asked = self.repeated(np.array([hold, pause]), N, random)
        waited = asked + WAIT_MEDIAN * np.exp(WAIT_SPREAD * random.normal(size=(N, 2)))
        waited += np.where(random.random((N, 2)) < STALLS, random.exponential(STALL, (N, 2)), 0.0)
        held = waited[:, 0]
        interval_of = before(held) + NEXT_PRESS + (waited[:, 1] if self.waits else 0.0)
        return made_up(texts, np.column_stack([interval_of, held]), self.rounded)


def medians(recorded: Samples) -> Floats:
    """The median interval and hold, (2,), in milliseconds; typical values if none was recorded."""
    times = times_of(recorded)
    known = np.isfinite(times).any(axis=0)
    found = np.array(TYPICAL)
    found[known] = np.nanmedian(times[:, known], axis=0)
    return found
