"""Forged typing that pretends to have come through a connection that holds keys back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.forger import Forger
from keydyn.lab.forgeries.made_up import made_up

# Milliseconds between keys that arrive together. Less than 10 would not count as times.
APART = 15.0


@dataclass(frozen=True)
class InBursts:
    """Another forger's keys, of which this share is held back until just before the next one.

    A detector that forgives odd times where a connection may have made them could be evaded so.

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
        """That of the other forger."""
        return self.of.family

    @property
    def knowledge(self) -> tuple[str, ...]:
        """What the other forger may have."""
        return self.of.knowledge

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """The keys of `texts`, some of them late."""
        forged = self.of.forge(recorded, texts, random)
        times = times_of(forged)
        late = random.random(len(times)) < self.share
        last = False
        for n in range(1, len(times) - 1):
            wait = times[n + 1, 0] - APART
            # One key at a time; that before a sample's first has nothing to wait for.
            last = bool(late[n]) and not last and bool(wait > 0.0) and bool(np.isfinite(times[n, 0]))
            if last:
                times[n, 0] += wait
                times[n + 1, 0] = APART
        return made_up(texts, times, rounded=False)
