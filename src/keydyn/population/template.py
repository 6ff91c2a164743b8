"""A person as a population model knows one."""

from __future__ import annotations

from dataclasses import dataclass

from keydyn.arrays import Floats


@dataclass(frozen=True, eq=False)
class Template:
    """One person, immutable; only the population that enrolled it can use it.

    Attributes
    ----------
    population : SHA-256 of the population
    mean, scale : (C,) of y in each cell
    slopes : (F, 3); gain : (F,)
    n_samples, n_events : how many it was learnt from
    """

    population: str
    mean: Floats
    scale: Floats
    slopes: Floats
    gain: Floats
    n_samples: int
    n_events: int

    def __post_init__(self) -> None:
        """Nobody can change the arrays."""
        for array in (self.mean, self.scale, self.slopes, self.gain):
            array.flags.writeable = False
