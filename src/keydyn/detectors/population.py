"""A template for everybody: fitting and scoring a whole population in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from keydyn.detectors.detector import Detector, make_detector
from keydyn.keystrokes.samples import Samples
from keydyn.model.arrays import Floats
from keydyn.model.vocabulary import Types

Progress = Callable[[int], object]


@dataclass(frozen=True)
class Population:
    """Fitted detectors, one a user.

    Attributes
    ----------
    users : (U,) in the order of first appearance
    detectors : the template of each
    """

    users: Types
    detectors: list[Detector]

    def score(self, samples: Samples, n_jobs: int | None = None) -> Floats:
        """Every sample against every template, (n, U)."""
        scores = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(d.score)(samples) for d in self.detectors)
        return np.stack(scores, axis=1)

    def score_events(self, samples: Samples, n_jobs: int | None = None) -> Floats:
        """Every event of every sample against every template, (N, U)."""
        work = (delayed(d.score_events)(samples) for d in self.detectors)
        return np.stack(Parallel(n_jobs=n_jobs, prefer="threads")(work), axis=1)


def fit_population(
    detector: str | Detector,
    samples: Samples,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Population:
    """Fit a template to the samples of each user.

    `prepare` was called before if the detector needs it, with the samples that the protocol allows.
    `progress` is called with the number of users done. An error names the user.
    """
    pattern = make_detector(detector)
    codes, users = _first_appearance(samples.users)
    work = (delayed(_fit_one)(pattern, samples[codes == u], users[u]) for u in range(len(users)))
    fitted = []
    for template in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(work):
        fitted.append(template)
        if progress is not None:
            progress(len(fitted))
    return Population(users, fitted)


def _fit_one(pattern: Detector, samples: Samples, user: object) -> Detector:
    try:
        return pattern.fresh().fit(samples)
    except ValueError as error:
        raise ValueError(f"user {user}: {error}") from error


def _first_appearance(users: Types) -> tuple[Types, Types]:
    distinct, first, codes = np.unique(users, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], distinct[order]
