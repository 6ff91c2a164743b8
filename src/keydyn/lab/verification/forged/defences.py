"""What judges forged typing, learnt from other people than those who are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Truths
from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.liveness.hands import Hands
from keydyn.decisions.liveness.measures import measured
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.lab.typed_or_forged import Material, learn, material
from keydyn.lab.verification.forged.attacked import Defence
from keydyn.population import PopulationModel, Template


@dataclass(frozen=True, eq=False)
class Learnt:
    """A detector of forgeries with the population that it measures by."""

    hands: Hands
    people: PopulationModel

    def llr(self, samples: Samples, template: Template) -> Floats:
        """(n,) evidence that each sample was typed."""
        return self.hands.llr(*measured(self.people, samples, template))

    def alarms(self, samples: Samples, template: Template) -> Truths:
        """(n,) which samples are called forged."""
        found = self.hands.judged(self.people, samples, template)
        return np.array([one.answer == "no" for one in found], dtype=bool)


def shipped(places: Sequence[Samples], seed: int) -> Defence:
    """What comes with keydyn, its detector learnt anew without each family of attacks from these places."""
    return _defence(shipped_background(), Material.joined(_across(places, seed)))


def elsewhere(place: Samples, seed: int) -> Defence:
    """All is learnt from one place; for the detector, half of its people are measured by the other half."""
    codes, _ = place.people
    halves = _across([place[codes % 2 == half] for half in range(2)], seed)
    return _defence(Background.learnt(PopulationDetector(), place), Material.joined(halves))


def _across(groups: Sequence[Samples], seed: int) -> list[Material]:
    """What is learnt from two groups of people, each measured by a population of the other."""
    found = []
    for n, group in enumerate(groups):
        people = PopulationModel().fit(groups[1 - n], n_jobs=1)
        found.append(material(group, people, n, np.random.default_rng([seed, n]), enrolled=True))
    return found


def _defence(background: Background, known: Material) -> Defence:
    def without(*families: str) -> Learnt:
        return Learnt(learn(known, families), background.population)

    return Defence(background, without(), {family: without(family) for family in known.forged})
