"""Holds and intervals made up one by one, each from the times recorded in the same context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries.draws import Draw
from keydyn.lab.forgeries.forger import RECORDINGS
from keydyn.lab.forgeries.key_contexts import contexts_of, grouped
from keydyn.lab.forgeries.made_up import made_up

# The longest context in keys, the key itself included, and how often a context must have been recorded.
LONGEST, LEAST = 16, 3


@dataclass(frozen=True)
class ByContext:
    """Forge times from those that were recorded after the same keys.

    Holds and flights are made up independently of each other. A flight is the time between two presses or,
    with `release_to_press`, between the release of a key and the press of the next, which is negative where
    keys overlap. `longest` is the longest context: 1 for the key alone, 2 for pairs. `least` is how often a
    context must have been recorded. With `rounded`, times are whole milliseconds.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import ByContext, histograms
    >>> samples = Samples.of(make_typists(1, 8))
    >>> forger = ByContext(histograms, "histograms")
    >>> forged = forger.forge(samples[:6], samples[6:], np.random.default_rng(0))
    >>> len(forged), forged.sequences.labels().tolist() == samples[6:].sequences.labels().tolist()
    (2, True)
    """

    draw: Draw
    family: str
    longest: int = LONGEST
    least: int = LEAST
    release_to_press: bool = False
    rounded: bool = True

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The kinds of recordings of the victim."""
        return RECORDINGS

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts` with times of their contexts; a `ValueError` if nothing was recorded."""
        contexts = contexts_of(recorded, texts, self.longest, self.least)
        intervals, holds = times_of(recorded).T
        flights = intervals - before(holds) if self.release_to_press else intervals
        hold, flight = (
            self.draw(grouped(values, contexts, self.least), random) for values in (holds, flights)
        )
        interval = flight + before(hold) if self.release_to_press else flight
        return made_up(texts, np.column_stack([interval, hold]), self.rounded)


def before(values: NDArray[Any]) -> NDArray[Any]:
    """The value at the key before each; undefined at a sample's first key."""
    return np.concatenate([values[:1], values[:-1]])
