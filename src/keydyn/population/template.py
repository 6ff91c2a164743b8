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

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import Samples
    >>> from keydyn.population import PopulationModel
    >>> people = PopulationModel.shipped()
    >>> template = people.enrol(Samples.of(make_typists(1, 2, "free", 60)))
    >>> template.n_samples, template.population == people.sha256
    (2, True)
    """

    population: str
    mean: Floats
    scale: Floats
    slopes: Floats
    gain: Floats
    n_samples: int
    n_events: int

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.mean, self.scale, self.slopes, self.gain):
            array.flags.writeable = False
