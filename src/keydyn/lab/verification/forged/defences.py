"""What judges forged typing, learnt from other people than those who are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keydyn.arrays import Floats
from keydyn.decisions.calibration.background import Background, shipped_background
from keydyn.decisions.decision import Typed
from keydyn.decisions.liveness.hands import Hands, manner_of
from keydyn.decisions.liveness.measures import measured
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.lab.typed_or_forged import Material, learn, material_of
from keydyn.lab.verification.forged.attacked import Defence
from keydyn.population import PopulationModel, Template


@dataclass(frozen=True, eq=False)
class Learnt:
    """A detector of forgeries with the population that it measures by."""

    hands: Hands
    people: PopulationModel

    def llr(self, samples: Samples, template: Template) -> Floats:
        """(n,) evidence that each sample was typed."""
        return self.hands.llr(*measured(self.people, samples, template), manner_of(template))

    def judged(self, samples: Samples, template: Template) -> list[Typed]:
        """Whether a hand typed each sample."""
        return self.hands.judged(self.people, samples, template)


def shipped(places: Sequence[Samples], seed: int) -> Defence:
    """What comes with keydyn, its detector learnt anew without each family of attacks from these places."""
    return _defence(shipped_background(), material_of(places, seed, enrolled=True))


def elsewhere(place: Samples, seed: int) -> Defence:
    """All is learnt from one place."""
    background = Background.learnt(PopulationDetector(), place)
    return _defence(background, material_of([place], seed, enrolled=True))


def _defence(background: Background, known: Material) -> Defence:
    def without(*families: str) -> Learnt:
        return Learnt(learn(known, families), background.population)

    return Defence(background, without(), {family: without(family) for family in known.forged})
