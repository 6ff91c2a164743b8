"""The parameters of a fitted population model, and the template of a person; immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.population.cells import Cells, Contexts, Observations, WideEffects, observations
from keydyn.population.chain import Chain, classes_of
from keydyn.population.features import parents
from keydyn.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class Template:
    """Template of one person, immutable; only the population that made it can use it.

    Attributes
    ----------
    population : SHA-256 of the population
    mean, scale : (C,) of y in each cell
    slopes : (F, 3); gain : (F,)
    n_samples, n_events : the numbers of samples and events that it was learnt from
    manner : measures of the enrolled samples, which help to notice forgeries; may be empty

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
    manner: Floats = field(default_factory=lambda: np.zeros(0))

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.mean, self.scale, self.slopes, self.gain, self.manner):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Variances:
    """How much people, samples and keys differ; one value per feature, or per feature and parent."""

    # λ and κ, variances of a person's own effects in a cell and in all cells of a key
    cell: Floats
    key: Floats
    tempo: Floats  # η, variance of a sample's tempo
    noise: Floats  # σ², variance of the rest
    # (F, 3) β0 and τ², mean and variance of slopes
    slope: Floats
    slope_variance: Floats
    gain: Floats  # g², the share of the noise that the slopes leave
    # (3,) pseudo-observations by which a cell's noise is shrunk towards its key's, that towards the person's,
    # and that towards the population's
    noise_leans: Floats
    degrees: Floats  # (1,) ν of the Student t that weights values


@dataclass(frozen=True, eq=False)
class SharedParameters:
    """All parameters of a fitted population."""

    features: tuple[str, ...]  # names, interval and hold first
    cells: Cells
    # (C,) of values in each cell
    location: Floats
    scale: Floats
    wide: WideEffects  # effects of wider contexts
    loadings: Floats  # V, (C, R)
    support: Floats  # (C,) the evidence for each row of V: the sum of people's precisions
    variances: Variances
    chain: Chain  # one state if there are no hidden states
    # The numbers of people and samples that it was learnt from
    n_people: int
    n_samples: int

    @property
    def parents(self) -> Integers:
        return parents(len(self.features))

    @cached_property
    def classes(self) -> Integers:
        """The class of the key that each code stands for."""
        return classes_of(self.cells.vocabulary)

    @cached_property
    def contexts(self) -> Contexts:
        """What people share in each context."""
        return Contexts.of(self.cells, (self.location, self.scale), self.wide)

    def seen(self, samples: Samples) -> Observations:
        """Convert samples to the form that the population takes."""
        return observations(samples, self.features, self.cells.places(samples.sequences.event_types))
