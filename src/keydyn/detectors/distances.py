"""Detectors that score feature vectors: distances (Killourhy and Maxion, 2009) and the one-class SVM."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.svm import OneClassSVM

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples

# A direction with less than this share of the largest variance is taken to have none: features depend on each
# other exactly there, and the rest is rounding.
RANK_TOLERANCE = 1e-10


class MeanTemplate(Detector):
    """Base class of detectors whose template is the mean of the training vectors."""

    mean_: Floats

    def fit(self, samples: Samples) -> Self:
        self.mean_ = samples.vectors.mean(axis=0)
        return self


@register
class Manhattan(MeanTemplate):
    """Negative city-block distance to the mean vector."""

    name: ClassVar[str] = "manhattan"
    title: ClassVar[str] = "Manhattan"

    def score(self, samples: Samples) -> Floats:
        return -_city_block(samples.vectors - self.mean_)


@register
class ScaledManhattan(MeanTemplate):
    """City-block distance with each feature divided by its mean absolute deviation (around the mean).

    The deviation is that of all samples of all users, as in the paper (`scale="everyone"`, learnt by
    `prepare`), or that of the training samples, as in Killourhy and Maxion (`scale="template"`). A feature
    without deviation is not scaled.
    """

    name: ClassVar[str] = "manhattan-scaled"
    title: ClassVar[str] = "Manhattan (scaled)"
    prepared_deviation_: Floats

    def __init__(self, scale: str = "everyone") -> None:
        self.scale = scale

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        if self.scale == "everyone":
            prepared.prepared_deviation_ = mean_absolute_deviation(everyone.vectors)
        return prepared

    def fit(self, samples: Samples) -> Self:
        super().fit(samples)
        if self.scale == "template":
            self.deviation_ = mean_absolute_deviation(samples.vectors)
        elif self.scale == "everyone":
            if not hasattr(self, "prepared_deviation_"):
                raise ValueError("manhattan-scaled needs everyone's deviations: call prepare before fit")
            self.deviation_ = self.prepared_deviation_
        else:
            raise ValueError(f"scale must be 'everyone' or 'template', not {self.scale!r}")
        return self

    def score(self, samples: Samples) -> Floats:
        return -_city_block((samples.vectors - self.mean_) / self.deviation_)


@register
class FilteredManhattan(Detector):
    """City-block distance to the mean of the values within three standard deviations of the mean."""

    name: ClassVar[str] = "manhattan-filtered"
    title: ClassVar[str] = "Manhattan (filtered)"

    def fit(self, samples: Samples) -> Self:
        vectors = samples.vectors
        spread = vectors.std(axis=0, ddof=1) if len(vectors) > 1 else np.zeros(vectors.shape[1])
        near = np.abs(vectors - vectors.mean(axis=0)) <= 3.0 * spread
        self.mean_ = np.mean(vectors, axis=0, where=near)
        return self

    def score(self, samples: Samples) -> Floats:
        return -_city_block(samples.vectors - self.mean_)


@register
class Euclidean(MeanTemplate):
    """Negative squared Euclidean distance to the mean vector."""

    name: ClassVar[str] = "euclidean"
    title: ClassVar[str] = "Euclidean"

    def score(self, samples: Samples) -> Floats:
        squares: Floats = ((samples.vectors - self.mean_) ** 2).sum(axis=1)
        return -squares


@register
class NormedEuclidean(Euclidean):
    """Negative squared Euclidean distance divided by the lengths of both vectors."""

    name: ClassVar[str] = "euclidean-normed"
    title: ClassVar[str] = "Euclidean (normed)"

    def score(self, samples: Samples) -> Floats:
        return super().score(samples) / _lengths(samples.vectors, self.mean_)


@register
class Mahalanobis(MeanTemplate):
    """Negative squared Mahalanobis distance, by the covariance of the training vectors (pseudo-inverse)."""

    name: ClassVar[str] = "mahalanobis"
    title: ClassVar[str] = "Mahalanobis"

    def fit(self, samples: Samples) -> Self:
        super().fit(samples)
        self.whitening_ = whitening(samples.vectors)
        return self

    def score(self, samples: Samples) -> Floats:
        squares: Floats = (((samples.vectors - self.mean_) @ self.whitening_) ** 2).sum(axis=1)
        return -squares


@register
class NormedMahalanobis(Mahalanobis):
    """Negative squared Mahalanobis distance divided by the lengths of both vectors."""

    name: ClassVar[str] = "mahalanobis-normed"
    title: ClassVar[str] = "Mahalanobis (normed)"

    def score(self, samples: Samples) -> Floats:
        return super().score(samples) / _lengths(samples.vectors, self.mean_)


@register
class NearestNeighbour(Detector):
    """Negative squared Mahalanobis distance to the nearest training vector."""

    name: ClassVar[str] = "nearest-neighbour"
    title: ClassVar[str] = "Nearest neighbour (Mahalanobis)"

    def fit(self, samples: Samples) -> Self:
        self.whitening_ = whitening(samples.vectors)
        self.vectors_ = samples.vectors @ self.whitening_
        return self

    def score(self, samples: Samples) -> Floats:
        distances: Floats = cdist(samples.vectors @ self.whitening_, self.vectors_, "sqeuclidean")
        nearest: Floats = np.min(distances, axis=1)
        return -nearest


@register
class OutlierCount(MeanTemplate):
    """Minus the number of features more than 1.96 standard deviations from the mean."""

    name: ClassVar[str] = "outlier-count"
    title: ClassVar[str] = "Outlier count (z-score)"

    def fit(self, samples: Samples) -> Self:
        super().fit(samples)
        if len(samples) < 2:
            raise ValueError("outlier-count needs at least 2 samples of a user to know their spread")
        self.spread_ = samples.vectors.std(axis=0, ddof=1)
        return self

    def score(self, samples: Samples) -> Floats:
        far = np.abs(samples.vectors - self.mean_) > 1.96 * self.spread_
        counts: Floats = far.sum(axis=1, dtype=np.float64)
        return -counts


@register
class NearestMean(Detector):
    """Negative Euclidean distance to the nearest of the means that k-means finds."""

    name: ClassVar[str] = "k-means"
    title: ClassVar[str] = "k-means"

    def __init__(self, n_clusters: int = 3, random_state: int = 0) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, samples: Samples) -> Self:
        n_clusters = min(self.n_clusters, len(np.unique(samples.vectors, axis=0)))
        self.means_ = KMeans(n_clusters, n_init=10, random_state=self.random_state).fit(samples.vectors)
        return self

    def score(self, samples: Samples) -> Floats:
        distances: Floats = self.means_.transform(samples.vectors)
        nearest: Floats = np.min(distances, axis=1)
        return -nearest


def mean_absolute_deviation(vectors: Floats) -> Floats:
    """Mean absolute deviation around the mean of each feature; 1 where there is none."""
    deviation: Floats = np.abs(vectors - vectors.mean(axis=0)).mean(axis=0)
    return np.where(deviation > 0, deviation, 1.0)


def whitening(vectors: Floats) -> Floats:
    """W such that WW' is the pseudo-inverse of the covariance; |xW − yW| is the Mahalanobis distance."""
    if len(vectors) < 2:
        raise ValueError("a covariance needs at least 2 samples of a user")
    values, directions = np.linalg.eigh(np.atleast_2d(np.cov(vectors, rowvar=False)))
    varied = values > RANK_TOLERANCE * values.max()
    matrix: Floats = directions[:, varied] / np.sqrt(values[varied])
    return matrix


def _city_block(differences: Floats) -> Floats:
    lengths: Floats = np.abs(differences).sum(axis=1)
    return lengths


def _lengths(vectors: Floats, centre: Floats) -> Floats:
    """The product of each vector's length and that of the centre; 1 where it would be 0."""
    lengths: Floats = np.linalg.norm(vectors, axis=1) * float(np.linalg.norm(centre))
    return np.where(lengths > 0, lengths, 1.0)


@register
class OneClass(Detector):
    """Distance to the boundary that holds about half of the training vectors.

    Radial basis functions, ν = 0.5, γ = 1 / number of features. Features are scaled to 0 … 1 over all samples
    of all users through `prepare` (the published protocol) or, with `scale="template"`, to mean 0 and
    standard deviation 1 over the training samples.
    """

    name: ClassVar[str] = "svm"
    title: ClassVar[str] = "SVM (one-class)"
    prepared_range_: tuple[Floats, Floats]

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
