"""A hybrid detector: a POHMM of everyone describes a sample, and a support vector machine classifies it.

After Bicego, Pękalska, Tax and Duin (2009), who call it a generative embedding: a generative model turns
sequences of any length into vectors of one length, and a discriminative classifier tells these apart. Section
5.2 of the paper leaves it open whether that would help.
"""

from __future__ import annotations

import warnings
from typing import ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from keydyn.arrays import Floats, Truths
from keydyn.detectors.detector import Detector, register
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.keystrokes.samples import Samples
from keydyn.model import POHMM
from keydyn.model.data.vocabulary import find

# Residuals are clipped to this size, and the mean of a cell is drawn to 0 by this many pseudo-observations.
CLIP, LEANS = 3.0, 1.0
# A smaller gain in likelihood per event does not change the vectors.
TOLERANCE_PER_EVENT = 1e-5
# Components that vary less than this among the training samples are left out.
LEAST_DEVIATION = 1e-9


@register
class HybridPOHMM(Detector):
    """The signed distance of a sample to a boundary between the user's samples and everyone else's.

    `prepare` fits one POHMM to everyone's training samples. A sample's vector has, for each key, state and
    feature, the posterior mean of the standardised residual and of its square less one: the derivatives of
    the log-likelihood by location and scale (a Fisher score), per event, drawn towards 0 where a key is rare;
    and the share of each state at each key. Vectors are standardised by the training samples alone. `fit`
    trains a support vector machine with the given `kernel` and penalty `C`, giving the user's samples and all
    others equal weight. `gamma` is that of the kernel "rbf", in units of one over the number of components.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import HybridPOHMM
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(4, 6))
    >>> detector = HybridPOHMM().prepare(samples).fit(samples[:6])  # of the first person
    >>> own, others = detector.score(samples[:6]), detector.score(samples[6:])
    >>> bool(own.min() > others.max())
    True
    """

    name: ClassVar[str] = "pohmm-hybrid"
    title: ClassVar[str] = "POHMM hybrid"
    learns_people: ClassVar[bool] = True
    prepared_model_: POHMM
    prepared_vectors_: Floats
    prepared_range_: tuple[Floats, Floats, Truths]
    prepared_users_: list[object]

    def __init__(self, kernel: str = "linear", C: float = 0.01, gamma: float = 1.0) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        prepared.prepared_users_ = everyone.users.tolist()
        if len(set(prepared.prepared_users_)) < 2:
            raise ValueError(f"{self.name} learns to tell people apart, and needs samples of two or more")
        model = RecommendedPOHMM().unfitted(everyone)
        model.set_params(tol=TOLERANCE_PER_EVENT * everyone.sequences.n_events)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            prepared.prepared_model_ = model.fit(everyone.sequences)
        vectors = posterior_statistics(model, everyone)
        deviation = vectors.std(axis=0)
        prepared.prepared_range_ = vectors.mean(axis=0), deviation, deviation > LEAST_DEVIATION
        prepared.prepared_vectors_ = prepared._standardised(vectors)
        return prepared

    def fit(self, samples: Samples) -> Self:
        if not hasattr(self, "prepared_model_"):
            raise ValueError(f"{self.name} needs people to learn from: call prepare before fit")
        own = set(samples.users.tolist())
        others = np.array([user not in own for user in self.prepared_users_])
        if not others.any():
            raise ValueError(f"{self.name} learns to tell people apart, and there is nobody else")
        mine, theirs = self._vectors(samples), self.prepared_vectors_[others]
        gamma = self.gamma / max(mine.shape[1], 1)
        machine = SVC(kernel=self.kernel, C=self.C, gamma=gamma, class_weight="balanced")
        sides = np.repeat([1, -1], [len(mine), len(theirs)])
        self.machine_ = machine.fit(np.concatenate([mine, theirs]), sides)
        return self

    def score(self, samples: Samples) -> Floats:
        return np.asarray(self.machine_.decision_function(self._vectors(samples)), dtype=np.float64)

    def _vectors(self, samples: Samples) -> Floats:
        return self._standardised(posterior_statistics(self.prepared_model_, samples))

    def _standardised(self, vectors: Floats) -> Floats:
        mean, deviation, varied = self.prepared_range_
        return (vectors - mean)[:, varied] / deviation[varied]


def posterior_statistics(model: POHMM, samples: Samples) -> Floats:
    """(n, m·M·(2K + 1)) statistics of each sample under a fitted POHMM, key by key; see `HybridPOHMM`.

    Keys that the model does not know and missing values contribute nothing.

    Examples
    --------
    >>> from keydyn import POHMM
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors.hybrid import posterior_statistics
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(2, 3))
    >>> model = POHMM().fit(samples.sequences)
    >>> posterior_statistics(model, samples).shape  # 11 different keys, 2 states, 2 features
    (6, 110)
    """
    sequences, M = samples.sequences, model.n_states
    codes, m = find(sequences.codes, sequences.event_types, model.event_types_)[0], len(model.event_types_)
    posterior = model.predict_proba(sequences)
    known = codes < m
    cell = (np.repeat(np.arange(len(samples)), sequences.lengths) * m + codes)[known]

    def summed(values: Floats) -> Floats:
        """The sum of values (N, M) over the events of each sample and key: (n, m, M)."""
        sums: Floats = np.empty((len(samples) * m, M))
        for j in range(M):
            sums[:, j] = np.bincount(cell, values[known, j], len(sums))
        return sums.reshape(len(samples), m, M)

    occupied = summed(posterior)
    parts = [occupied / (occupied.sum(axis=2, keepdims=True) + LEANS)]
    for k, emission in enumerate(model.emission_):
        x = sequences.X[:, k]
        there = np.isfinite(x)
        row = np.minimum(codes, m - 1)
        with np.errstate(invalid="ignore"):
            working = emission.distribution.working(x)[:, None]
        residual = (working - emission.loc[row]) / emission.scale[row]
        residual = np.where(there[:, None], np.clip(residual, -CLIP, CLIP), 0.0)
        weight = posterior * there[:, None]
        count = summed(weight) + LEANS
        parts += [summed(weight * residual) / count, summed(weight * (residual**2 - 1.0)) / count]
    return np.concatenate([part.reshape(len(samples), m * M) for part in parts], axis=1)
