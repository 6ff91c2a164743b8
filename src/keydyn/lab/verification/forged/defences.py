"""Defences against forged typing, learnt from people other than those judged."""

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
    """A detector of forgeries with the population that its measures are based on."""

    hands: Hands
    people: PopulationModel

    def llr(self, samples: Samples, template: Template) -> Floats:
        """Evidence that each sample was typed, (n,)."""
        return self.hands.llr(*measured(self.people, samples, template), manner_of(template))

    def judged(self, samples: Samples, template: Template) -> list[Typed]:
        """The judgement whether each sample was typed by hand."""
        return self.hands.judged(self.people, samples, template)


def shipped(places: Sequence[Samples], seed: int) -> Defence:
    """The shipped background, with detectors learnt from these places, each without one family of attacks."""
    return _defence(shipped_background(), material_of(places, seed, enrolled=True))


def elsewhere(place: Samples, seed: int) -> Defence:
    """A defence learnt entirely from one place."""
    background = Background.learnt(PopulationDetector(), place)
    return _defence(background, material_of([place], seed, enrolled=True))


def _defence(background: Background, known: Material) -> Defence:
    def without(*families: str) -> Learnt:
        return Learnt(learn(known, families), background.population)

    return Defence(background, without(), {family: without(family) for family in known.forged})
