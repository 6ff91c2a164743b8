"""Forged typing that pretends to have come through a connection that delays keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.forger import Forger
from keydyn.lab.forgeries.made_up import made_up

# Milliseconds between keys that arrive together. Intervals below 10 would not count as times.
APART = 15.0


@dataclass(frozen=True)
class InBursts:
    """The keys of another forger, with this share of them delayed until just before the next key.

    This could evade a detector that tolerates unusual times where a connection may have caused them.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import InBursts, Robot
    >>> samples = Samples.of(make_typists(1, 2, "free", 40))
    >>> forged = InBursts(Robot(), 1.0).forge(samples[:0], samples[1:], np.random.default_rng(0))
    >>> forged.sequences.X[1:5, 1].tolist()  # every other one
    [345.0, 15.0, 345.0, 15.0]
    """

    of: Forger
    share: float = 0.08

    @property
    def family(self) -> str:
        """The family of the other forger."""
        return self.of.family

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The knowledge that the other forger can use."""
        return self.of.knowledge

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts`, with some of them delayed."""
        forged = self.of.forge(recorded, texts, random)
        times = times_of(forged)
        late = random.random(len(times)) < self.share
        last = False
        for n in range(1, len(times) - 1):
            wait = times[n + 1, 0] - APART
            # Never two keys in a row; the last key of a sample has no next key to wait for.
            last = bool(late[n]) and not last and bool(wait > 0.0) and bool(np.isfinite(times[n, 0]))
            if last:
                times[n, 0] += wait
                times[n + 1, 0] = APART
        return made_up(texts, times, rounded=False)
