"""The interface of an attacker, who makes up times from some knowledge of the victim."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from keydyn.keystrokes.samples import Samples

# What an attacker has. All but the last are recordings of the victim: none at all, some that were not
# enrolled, or the enrolled ones. The template is the one made from the enrolled samples.
NOTHING, ENROLLED, TEMPLATE = "the population", "the enrolled samples", "the template"
STOLEN = {"3 samples": 3, "10 samples": 10, "50 samples": 50}
RECORDINGS = (*STOLEN, ENROLLED)
KNOWLEDGE = (NOTHING, *RECORDINGS, TEMPLATE)


class Forger(Protocol):
    """A way to forge typing.

    `family` is shared with similar attacks, so that a detector can be evaluated on kinds of attacks that it
    was not trained on; `knowledge` are the entries of `KNOWLEDGE` that the attack can use.

    Examples
    --------
    Any object with these two properties and this method is a forger.

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
        """The name shared by the attack and similar ones."""

    @property
    def knowledge(self) -> tuple[str, ...]:
        """The entries of `KNOWLEDGE` that the attacker may have."""

    def forge(self, recorded: Samples, texts: Samples, random: np.random.Generator) -> Samples:
        """Forge the keys of `texts`, with times made up from the samples `recorded` of the victim."""


def stolen(knowledge: str, enrolled: Samples, others: Samples) -> Samples:
    """The victim's samples that an attacker with this knowledge has; `others` were not enrolled.

    A template is represented by the enrolled samples it was made from, which hold the same information. If
    the victim has fewer samples than the attacker steals, all of them are returned.

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
