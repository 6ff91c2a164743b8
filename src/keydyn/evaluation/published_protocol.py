"""The protocol of Monaco and Tappert's recognition tables. Closed set: every impostor is enrolled.

Password: of each user's 400 repetitions 150–199 (from 0) train and 200–399 are queries. Other data: leave one
sample out, as many folds as samples a user. Every query is scored against every user's template, and its
scores are scaled to 0 … 1 over all templates. Scaled Manhattan and SVM take their scales from all samples of
the dataset, queries included, as published.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.detectors import Detector, fit_population, make_detector
from keydyn.detectors.population import Progress
from keydyn.evaluation.rates import equal_error_rate
from keydyn.keystrokes.samples import Samples
from keydyn.model.arrays import Floats
from keydyn.model.vocabulary import Types

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """Queries scored against all templates.

    Attributes
    ----------
    owners : (Q,) who typed each query; users : (U,) whose templates
    raw : (Q, U) the detector's scores
    """

    owners: Types
    users: Types
    raw: Floats

    @property
    def normalised(self) -> Floats:
        """Each query's scores scaled to 0 … 1 over all templates; all 0 where they are equal."""
        lowest = self.raw.min(axis=1, keepdims=True)
        width = self.raw.max(axis=1, keepdims=True) - lowest
        scaled = np.zeros_like(self.raw)
        np.divide(self.raw - lowest, width, out=scaled, where=width > 0)
        return scaled


def folds(samples: Samples, password: bool) -> Iterator[tuple[Mask, Mask]]:
    """Training samples and queries of each fold."""
    number = samples.numbers
    if password:
        yield (number >= 150) & (number < 200), number >= 200
        return
    for fold in range(int(number.max()) + 1):
        yield number != fold, number == fold


def score_all(
    detector: str | Detector,
    samples: Samples,
    password: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Every query of every fold against every template; users in the order of first appearance."""
    prepared = make_detector(detector).prepare(samples)
    owners, raw = [], []
    users: Types = pd.unique(samples.users)
    for train, query in folds(samples, password):
        population = fit_population(prepared, samples[train], n_jobs, progress).of(users)
        owners.append(samples.users[query])
        raw.append(population.score(samples[query], n_jobs))
    return Scores(np.concatenate(owners), users, np.concatenate(raw))


def recognition(scores: Scores) -> pd.DataFrame:
    """Identification accuracy and equal error rate of each user.

    A query is identified if its owner's template scores highest; templates that tie for it share it. The
    equal error rate pools all queries against the user's template.
    """
    best = scores.raw == scores.raw.max(axis=1, keepdims=True)
    identified = best / best.sum(axis=1, keepdims=True)
    normalised = scores.normalised
    rows = []
    for u, user in enumerate(scores.users):
        own = scores.owners == user
        accuracy = float(identified[own, u].mean())
        rows.append((user, accuracy, equal_error_rate(normalised[own, u], normalised[~own, u])))
    return pd.DataFrame(rows, columns=["user", "acc", "eer"]).set_index("user")
