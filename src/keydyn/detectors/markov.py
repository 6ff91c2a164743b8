"""Detectors that wrap hidden Markov models; the score is the log-likelihood of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from keydyn.arrays import Floats, Truths
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.model import HMM, POHMM, fit_many
from keydyn.model.data.vocabulary import find, is_single
from keydyn.model.families.family import Family
from keydyn.model.families.student import LogStudent, Student
from keydyn.model.fit.many import score_many
from keydyn.model.fit.threads import parameter_names
from keydyn.model.model_files import MODEL, packed

# Fitting fewer than MANY models of the same text together is no faster than one by one, and more than
# SIDE_BY_SIDE in one call gain nothing more.
MANY, SIDE_BY_SIDE = 128, 256


class Markov(Detector):
    """A hidden Markov model fitted to all samples of a user; `model` replaces the detector's own pattern.

    Many templates are fitted, or scored, in one call of the functions for many models.

    Examples
    --------
    >>> from keydyn import POHMM
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import Markov
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(1, 8))
    >>> detector = Markov(POHMM(n_states=3)).fit(samples[:6])
    >>> detector.model_.n_states, detector.score(samples[6:]).shape
    (3, (2,))
    """

    scores_events: ClassVar[bool] = True
    stores_templates: ClassVar[bool] = True

    def __init__(self, model: POHMM | None = None) -> None:
        self.model = model

    def pattern(self) -> POHMM:
        """The unfitted model."""
        raise NotImplementedError

    def families(self, samples: Samples) -> list[str | Family]:
        """The family of each feature, as the samples name it: log-normal for times, normal for sensors."""
        return list(samples.emission)

    def unfitted(self, samples: Samples) -> POHMM:
        """The model with the families of these samples' features, not fitted yet."""
        pattern = self.pattern() if self.model is None else self.model
        parameters = {name: getattr(pattern, name) for name in parameter_names(type(pattern))}
        # A tuple cannot be changed in place, so many models can share it.
        parameters["emission"] = tuple(self.families(samples))
        return type(pattern)(**parameters)

    def fit(self, samples: Samples) -> Self:
        self.model_ = self.unfitted(samples).fit(samples.sequences)
        return self

    def fit_many(self, groups: Sequence[Samples]) -> list[Self]:
        same_features = len({samples.emission for samples in groups}) == 1
        # A subclass may fit in a way of its own, unknown to the function for many models.
        if not same_features or type(self).fit is not Markov.fit:
            return super().fit_many(groups)
        try:
            # One thread, because the caller already distributes batches to threads or to a cluster.
            models = fit_many(self.unfitted(groups[0]), [samples.sequences for samples in groups], n_jobs=1)
        except ValueError:
            # Fitting one by one gives an error that names the user.
            return super().fit_many(groups)
        fresh = self.fresh()
        templates = []
        for model in models:
            template = copy(fresh)
            template.model_ = model
            templates.append(template)
        return templates

    def batch_size(self, groups: Sequence[Samples]) -> int:
        """A large batch for models of the same text, which are fitted side by side; 1 for others."""
        if len(groups) < MANY:
            return 1
        text = _text(groups[0])
        return SIDE_BY_SIDE if all(_text(samples) == text for samples in groups) else 1

    @classmethod
    def score_many(cls, templates: Sequence[Self], samples: Samples) -> Floats:
        if cls.score is not Markov.score:
            return super().score_many(templates, samples)
        return score_many([template.model_ for template in templates], samples.sequences, n_jobs=1).T

    @property
    def limited(self) -> bool:
        return self.model_.stop_reason_ == "max_iter"

    def recognised(self, samples: Samples) -> tuple[Truths, Truths] | None:
        types, pairs, sequences = self.model_.event_types_, self.model_.event_pairs_, samples.sequences
        if is_single(types):
            return None
        m = len(types)
        places, _ = find(sequences.codes, sequences.event_types, types)
        follows = np.zeros(len(places), dtype=bool)
        follows[1:] = np.isin(places[:-1] * (m + 1) + places[1:], pairs[:, 0] * (m + 1) + pairs[:, 1])
        follows[sequences.offsets[:-1]] = False
        return places < m, follows

    def packed_template(self) -> bytes:
        return packed(self.model_)

    def with_template(self, contents: bytes, path: str | PathLike[str], features: Sequence[str]) -> Self:
        model = MODEL.parsed(contents, path)
        kind = type(self.pattern() if self.model is None else self.model)
        if type(model) is not kind or list(getattr(model, "feature_names_in_", [])) != list(features):
            raise ValueError(f"{path} is not a model as {self.name} fits it to {', '.join(features)}")
        template = self.fresh()
        template.model_ = model
        return template

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
    """The POHMM with the library's defaults and heavy tails, a proper density that is robust to outliers.

    Times have a log-Student-t and sensors a Student-t distribution with `df` degrees of freedom; None takes
    the log-normal and the normal. `spread_features` is the model's. `keydyn study recommended` chose the
    defaults.
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


def _text(samples: Samples) -> tuple[bytes, bytes, tuple[object, ...]]:
    """The events of all samples in order; equal if the same text was typed the same number of times."""
    sequences = samples.sequences
    types: tuple[object, ...] = tuple(sequences.event_types.tolist())
    return sequences.codes.tobytes(), sequences.offsets.tobytes(), types
