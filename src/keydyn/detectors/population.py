"""A template for everybody: fitting and scoring a whole population in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, make_detector
from keydyn.engine import Progress, each
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types
from keydyn.model.fit.many import parts


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

    def score(self, samples: Samples, n_jobs: int | None = None, progress: Progress | None = None) -> Floats:
        """Every sample against every template, (n, U); `progress` is called with the number of users done."""
        return self._each(lambda detector: detector.score(samples), n_jobs, progress)

    def score_events(
        self, samples: Samples, n_jobs: int | None = None, progress: Progress | None = None
    ) -> Floats:
        """Every event of every sample against every template, (N, U)."""
        return self._each(lambda detector: detector.score_events(samples), n_jobs, progress)

    def _each(
        self, scores: Callable[[Detector], Floats], n_jobs: int | None, progress: Progress | None
    ) -> Floats:
        """The scores of every template, one a column."""
        return np.stack(_done(scores, self.detectors, n_jobs, progress), axis=1)

    def of(self, users: Types) -> Population:
        """The templates of these users in this order; a `ValueError` names one who has none.

        Folds need it: with a sample left out, users may appear in another order.
        """
        place = {user: u for u, user in enumerate(self.users.tolist())}
        absent = [user for user in users.tolist() if user not in place]
        if absent:
            raise ValueError(f"user {absent[0]} has no sample to learn from")
        return Population(users, [self.detectors[place[user]] for user in users.tolist()])


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
    codes, users = pd.factorize(samples.users)
    together = samples[np.argsort(codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(users)))
    groups = [together[first:end] for first, end in zip([0, *ends[:-1]], ends, strict=True)]
    return Population(users, fit_templates(make_detector(detector), groups, n_jobs, progress))


def fit_templates(
    pattern: Detector, groups: Sequence[Samples], n_jobs: int | None = None, progress: Progress | None = None
) -> list[Detector]:
    """Fit a template to each group of samples, all of one user; `progress` is told the number done.

    On a cluster where `keydyn.engine.using` names one.
    """
    tasks = [(pattern, [groups[k] for k in some]) for some in parts(len(groups), n_jobs)]
    fitted: list[Detector] = []
    for done in each(_fit_some, tasks, n_jobs=n_jobs, names=[""] * len(tasks)):
        fitted.extend(done)
        if progress is not None:
            progress(len(fitted))
    return fitted


def _done(
    work: Callable[[Any], Any], items: Sequence[Any], n_jobs: int | None, progress: Progress | None
) -> list[Any]:
    """What `work` makes of each item, in order; threads take some items at a time."""
    results: list[Any] = []
    tasks = (delayed(_some)(work, [items[k] for k in some]) for some in parts(len(items), n_jobs))
    for done in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
        results.extend(done)
        if progress is not None:
            progress(len(results))
    return results


def _some(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [work(item) for item in items]


def _fit_some(task: tuple[Detector, list[Samples]]) -> list[Detector]:
    pattern, groups = task
    fitted = []
    for samples in groups:
        try:
            fitted.append(pattern.fresh().fit(samples))
        except ValueError as error:
            raise ValueError(f"user {samples.users[0]}: {error}") from error
    return fitted
