"""Templates that follow a person who changes, from accepted samples, one at a time and never far.

People are taken to change as people differ, only less: the drift since the last sample has the population's
own covariance, times a small factor. Its posterior, given one sample, moves the whole template, keys that the
sample lacks included. The template's scales, slopes and gains stay as enrolled: only a person's means drift,
so that no attacker can widen a template.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from keydyn.arrays import Floats
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel, Template
from keydyn.population.person.fitting import Chosen, Prior, fit_people

# Variance of the drift between two samples, in units of that between people.
DRIFT = 0.05
# How far a mean may go from where it was enrolled, in units of the template's scale there. With less, people
# who change are lost; with more, an impostor who is accepted now and then pulls the template along.
BOUND = 0.5


@dataclass(frozen=True, eq=False)
class Updating:
    """A template that follows a person, and the one that was enrolled; immutable.

    Attributes
    ----------
    enrolled : what the person was enrolled as, from which no update leads far
    template : what it is now
    """

    enrolled: Template
    template: Template

    @classmethod
    def of(cls, template: Template) -> Updating:
        """A template that has just been enrolled."""
        return cls(template, template)

    def updated(
        self,
        population: PopulationModel,
        sample: Samples,
        confident: bool,
        weight: float = 1.0,
        bound: float = BOUND,
    ) -> Updating:
        """After a sample; unchanged unless it was accepted with confidence.

        `weight`, from 0 to 1, is how certain it is that the person typed the sample.
        """
        if not 0.0 <= weight <= 1.0:
            raise ValueError(f"weight must be from 0 to 1, not {weight}")
        if not bound > 0.0:
            raise ValueError(f"bound must be above 0, not {bound}")
        if not confident or weight == 0.0:
            return self
        mean = self.template.mean + weight * drift(population, self.template, sample)
        reach = bound * self.enrolled.scale
        mean = np.clip(mean, self.enrolled.mean - reach, self.enrolled.mean + reach)
        return replace(self, template=replace(self.template, mean=mean))


def drifted(population: PopulationModel, enrolled: Template, template: Template) -> float:
    """How far a template has gone from its enrolment, from 0 to 1, which no update passes.

    It is the root mean square over all means of their distance as a share of the farthest that they may go.
    Means count by how much the population knows of them: which keys a person has typed is not kept, and of
    rarely typed keys nothing would be noticed. The largest distance would not do, because one
    rare pair of keys reaches its bound after a few samples of any person.
    """
    away = (template.mean - enrolled.mean) / (BOUND * enrolled.scale)
    # Where nothing is known of any mean, all count the same.
    weights = population.parameters.support + np.finfo(np.float64).tiny
    return float(np.sqrt(np.average(away**2, weights=weights)))


def drift(population: PopulationModel, template: Template, sample: Samples) -> Floats:
    """(C,) how far the person's means are expected to have moved, given samples typed since."""
    if population.sha256 != template.population:
        raise ValueError("the template belongs to another population: enrol the person with this one")
    known, ready = population.parameters, population.ready_for(sample)
    variances = replace(known.variances, cell=DRIFT * known.variances.cell, key=DRIFT * known.variances.key)
    prior = Prior.of(known.cells, np.sqrt(DRIFT) * known.loadings, variances)
    typing = ready.typing._replace(y=ready.typing.y - template.mean[ready.cell], cell=ready.cell)
    moved = fit_people(typing, Chosen.one_person(len(typing.offsets) - 1), prior)
    found: Floats = moved.mean[0]
    return found
