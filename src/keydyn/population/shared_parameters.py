"""What a population model has learnt, and a person as it knows one; immutable values."""

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
    """One person, immutable; only the population that enrolled it can use it.

    Attributes
    ----------
    population : SHA-256 of the population
    mean, scale : (C,) of y in each cell
    slopes : (F, 3); gain : (F,)
    n_samples, n_events : how many it was learnt from
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

    # λ and κ, variance of a person's own effect in a cell and in all cells of a key
    cell: Floats
    key: Floats
    tempo: Floats  # η, variance of a sample's tempo
    noise: Floats  # σ², what is left
    # β0 and τ², (F, 3)
    slope: Floats
    slope_variance: Floats
    gain: Floats  # g², the share of the noise that the slopes leave
    # (3,) pseudo-observations: a cell's noise leans on its key's, that on the person's, that on the
    # population's
    noise_leans: Floats
    degrees: Floats  # (1,) ν of the Student t by which values are weighted


@dataclass(frozen=True, eq=False)
class SharedParameters:
    """Everything that people share."""

    features: tuple[str, ...]  # names, interval and hold first
    cells: Cells  # the contexts
    # (C,) of values in them
    location: Floats
    scale: Floats
    wide: WideEffects  # effects of wider contexts
    loadings: Floats  # V, (C, R)
    support: Floats  # (C,) how much is known of each row of V: the sum of people's precisions
    variances: Variances
    chain: Chain  # the hidden states; one state if there are none
    # How many it was learnt from
    n_people: int
    n_samples: int

    @property
    def parents(self) -> Integers:
        return parents(len(self.features))

    @cached_property
    def classes(self) -> Integers:
        """The class of each key's code."""
        return classes_of(self.cells.vocabulary)

    @cached_property
    def contexts(self) -> Contexts:
        """What people share in each context."""
        return Contexts.of(self.cells, (self.location, self.scale), self.wide)

    def seen(self, samples: Samples) -> Observations:
        """The samples as the population sees them."""
        return observations(samples, self.features, self.cells.places(samples.sequences.event_types))
