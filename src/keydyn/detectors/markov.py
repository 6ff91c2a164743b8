"""The hidden Markov models as detectors: the score is the log-likelihood of a sample."""

from __future__ import annotations

from typing import ClassVar, Self

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.model import HMM, POHMM
from keydyn.model.families.family import Family
from keydyn.model.families.student import LogStudent, Student
from keydyn.model.fit.fitted import parameter_names


class Markov(Detector):
    """A model fitted to all samples of a user; `model` replaces the detector's own pattern."""

    scores_events: ClassVar[bool] = True

    def __init__(self, model: POHMM | None = None) -> None:
        self.model = model

    def pattern(self) -> POHMM:
        """The unfitted model."""
        raise NotImplementedError

    def families(self, samples: Samples) -> list[str | Family]:
        """The family of each feature: as the samples have it, log-normal for times and normal for sensors."""
        return list(samples.emission)

    def fit(self, samples: Samples) -> Self:
        pattern = self.pattern() if self.model is None else self.model
        parameters = {name: getattr(pattern, name) for name in parameter_names(type(pattern))}
        parameters["emission"] = self.families(samples)
        self.model_ = type(pattern)(**parameters).fit(samples.sequences)
        return self

    @property
    def limited(self) -> bool:
        return self.model_.stop_reason_ == "max_iter"

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
    """The POHMM with the library's own defaults and heavy tails: robust to outliers by a proper density.

    Times have a log-Student-t, sensors a Student-t with `df` degrees of freedom; None takes the log-normal
    and the normal. `spread_features` is the model's. `keydyn study recommended` chose the defaults.
    """

    name: ClassVar[str] = "pohmm-recommended"
    title: ClassVar[str] = "POHMM (recommended)"

    def __init__(
        self, df: float | None = 4.0, spread_features: str = "all", model: POHMM | None = None
    ) -> None:
        super().__init__(model)
        self.df = df
        self.spread_features = spread_features

    def pattern(self) -> POHMM:
        emission = "lognormal" if self.df is None else LogStudent(df=self.df)
        return POHMM(emission=emission, spread_features=self.spread_features)

    def families(self, samples: Samples) -> list[str | Family]:
        if self.df is None:
            return list(samples.emission)
        heavy: dict[str, Family] = {"lognormal": LogStudent(df=self.df), "normal": Student(df=self.df)}
        return [heavy[name] for name in samples.emission]
