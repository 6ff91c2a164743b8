"""The recommended POHMM, trained on so that people stand out from one another, as a detector."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.keystrokes.samples import Samples
from keydyn.model import POHMMClassifier, TrainingCriterion

# Steps of the search: the models begin where each person's own likelihood has put them.
STEPS = 8


class TrainedTogether(RecommendedPOHMM):
    """The POHMM of a person, trained by a criterion that compares it with those of everyone else.

    `prepare` fits the models of all people who train, each to its own samples, and moves them by the
    criterion. `strength` is the criterion's sharpness times the mean number of keys in a sample, so that it
    means the same for samples of ten keys and of five hundred; `lean` is the criterion's.
    """

    learns_people: ClassVar[bool] = True
    stores_templates: ClassVar[bool] = False
    criterion: ClassVar[str]
    prepared_models_: dict[Any, Any]

    def __init__(self, strength: float = 1.0, lean: float = 1.0, df: float | None = 4.0) -> None:
        super().__init__(df)
        self.strength, self.lean = strength, lean

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        sharpness = self.strength / float(everyone.sequences.lengths.mean())
        criterion = TrainingCriterion(self.criterion, sharpness, self.lean, STEPS)
        codes, users = everyone.people
        classifier = POHMMClassifier(self.unfitted(everyone), criterion=criterion)
        classifier.fit(everyone.sequences, codes)
        prepared.prepared_models_ = dict(zip(users.tolist(), classifier.models_, strict=True))
        return prepared

    def fit(self, samples: Samples) -> Self:
        if not hasattr(self, "prepared_models_"):
            raise ValueError(f"{self.name} is trained on everyone at once: call prepare before fit")
        self.model_ = self.prepared_models_[samples.users.tolist()[0]]
        return self

    @property
    def limited(self) -> bool:
        """The number of steps is a setting, and no failure."""
        return False


class ConditionalPOHMM(TrainedTogether):
    """Trained by the probability of the right person, given the sample."""

    name: ClassVar[str] = "pohmm-conditional"
    title: ClassVar[str] = "POHMM (conditional)"
    criterion: ClassVar[str] = "conditional"


class MarginPOHMM(TrainedTogether):
    """Trained by how far the right person is ahead of all others."""

    name: ClassVar[str] = "pohmm-margin"
    title: ClassVar[str] = "POHMM (margin)"
    criterion: ClassVar[str] = "margin"
