"""The hidden Markov models as detectors: the score is the log-likelihood of a sample."""

from __future__ import annotations

from typing import ClassVar, Self

from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.model import HMM, POHMM
from keydyn.model.arrays import Floats
from keydyn.model.fitted import parameter_names


class Markov(Detector):
    """A model fitted to all samples of a user; `model` replaces the detector's own pattern."""

    scores_events: ClassVar[bool] = True

    def __init__(self, model: POHMM | None = None) -> None:
        self.model = model

    def pattern(self) -> POHMM:
        """The unfitted model."""
        raise NotImplementedError

    def fit(self, samples: Samples) -> Self:
        pattern = self.pattern() if self.model is None else self.model
        parameters = {name: getattr(pattern, name) for name in parameter_names(type(pattern))}
        self.model_ = type(pattern)(**parameters | {"emission": list(samples.emission)}).fit(
            samples.sequences
        )
        return self

    def score(self, samples: Samples) -> Floats:
        return self.model_.score_sequences(samples.sequences)

    def score_events(self, samples: Samples) -> Floats:
        return self.model_.score_samples(samples.sequences)


@register
class PublishedHMM(Markov):
    """The two-state HMM with the settings of the published tables."""

    name: ClassVar[str] = "hmm"
    title: ClassVar[str] = "HMM"

    def pattern(self) -> POHMM:
        return HMM.published()


@register
class PublishedPOHMM(Markov):
    """The two-state POHMM with the settings of the published tables."""

    name: ClassVar[str] = "pohmm"
    title: ClassVar[str] = "POHMM"

    def pattern(self) -> POHMM:
        return POHMM.published()


@register
class RecommendedPOHMM(Markov):
    """The POHMM with the library's own defaults."""

    name: ClassVar[str] = "pohmm-recommended"
    title: ClassVar[str] = "POHMM (recommended)"

    def pattern(self) -> POHMM:
        return POHMM()
