"""What an attacker is: the times that they make up, and what they need to know for it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keydyn.keystrokes.samples import Samples

# What an attacker has. All but the last are recordings of the victim: none at all, some that were not
# enrolled, or the enrolled ones. The template is that of the enrolled samples.
NOTHING, ENROLLED, TEMPLATE = "the population", "the enrolled samples", "the template"
STOLEN = {"3 samples": 3, "10 samples": 10, "50 samples": 50}
RECORDINGS = (*STOLEN, ENROLLED)
KNOWLEDGE = (NOTHING, *RECORDINGS, TEMPLATE)


class Forger(Protocol):
    """A way to forge typing.

    `family` is shared with near relatives, so that a detector can be judged on an attack it has never met;
    `knowledge` are the entries of `KNOWLEDGE` with which the attack makes sense.

    Examples
    --------
    Any object with these three is a forger.

    >>> import numpy as np
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import FORGERS
    >>> samples = Samples.of(make_typists(1, 8))
    >>> forger = FORGERS["normal by pair"]
    >>> forger.family, forger.knowledge[0]
    ('normal', '3 samples')
    >>> forged = forger.forge(samples[:6], samples[6:], np.random.default_rng(0))
    """

    @property
    def family(self) -> str:
        """The attack and its near relatives."""

    @property
    def knowledge(self) -> tuple[str, ...]:
        """What the attacker may have."""

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """The keys of `texts`, with times made up from what was `recorded` of the victim."""


def stolen(knowledge: str, enrolled: Samples, others: Samples) -> Samples:
    """What an attacker with this knowledge has recorded of the victim, whose `others` were not enrolled.

    A template says as much as the enrolled samples that it was made from, and so stands for them. Where the
    victim has fewer samples than were to be stolen, all are.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.lab.forgeries import stolen
    >>> samples = Samples.of(make_typists(1, 8))
    >>> len(stolen("3 samples", samples[:2], samples[2:])), len(stolen("the population", samples, samples))
    (3, 0)
    """
    if knowledge in (ENROLLED, TEMPLATE):
        return enrolled
    if knowledge == NOTHING:
        return enrolled[:0]
    if knowledge not in STOLEN:
        raise ValueError(f"knowledge must be one of {', '.join(KNOWLEDGE)}, not {knowledge!r}")
    return others[: STOLEN[knowledge]]
