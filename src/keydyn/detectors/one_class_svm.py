"""The one-class support vector machine."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.svm import OneClassSVM

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples


@register
class OneClass(Detector):
    """Distance to the boundary that holds about half of the training vectors.

    Radial basis functions, ν = 0.5, γ = 1 / number of features. Features are scaled to 0 … 1 over all samples
    of all users through `prepare` (the published protocol) or, with `scale="template"`, to mean 0 and
    standard deviation 1 over the training samples.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import OneClass
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(4, 8))
    >>> detector = OneClass().prepare(samples).fit(samples[:6])  # of the first person
    >>> own, other = detector.score(samples[6:8]), detector.score(samples[8:])
    >>> bool(own.mean() > other.mean())
    True
    """

    name: ClassVar[str] = "svm"
    title: ClassVar[str] = "SVM (one-class)"

    def __init__(self, nu: float = 0.5, scale: str = "everyone") -> None:
        self.nu = nu
        self.scale = scale

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        if self.scale == "everyone":
            prepared.prepared_range_ = _range(everyone.vectors)
        return prepared

    def fit(self, samples: Samples) -> Self:
        if self.scale == "template":
            self.range_ = _mean_and_deviation(samples.vectors)
        elif self.scale == "everyone":
            if not hasattr(self, "prepared_range_"):
                raise ValueError("svm needs everyone's ranges: call prepare before fit")
            self.range_ = self.prepared_range_
        else:
            raise ValueError(f"scale must be 'everyone' or 'template', not {self.scale!r}")
        self.svm_ = OneClassSVM(kernel="rbf", nu=self.nu, gamma="auto").fit(self._scaled(samples))
        return self

    def score(self, samples: Samples) -> Floats:
        return np.asarray(self.svm_.decision_function(self._scaled(samples)), dtype=np.float64)

    def _scaled(self, samples: Samples) -> Floats:
        origin, unit = self.range_
        return (samples.vectors - origin) / unit


def _range(vectors: Floats) -> tuple[Floats, Floats]:
    """Least value and range of each feature; the range is 1 where all values are equal."""
    lowest = vectors.min(axis=0)
    width = vectors.max(axis=0) - lowest
    return lowest, np.where(width > 0, width, 1.0)


def _mean_and_deviation(vectors: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; the deviation is 1 where all values are equal."""
    deviation = vectors.std(axis=0, ddof=1) if len(vectors) > 1 else np.zeros(vectors.shape[1])
    return vectors.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
