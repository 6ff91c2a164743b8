"""Fitting and scoring the templates of all users in one call."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, make_detector
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types
from keydyn.parallel import Progress, each

# The most templates in one task, whose samples and templates must fit into memory and into a message.
LARGEST_BATCH = 256


@dataclass(frozen=True)
class Population:
    """Fitted detectors, one per user.

    Attributes
    ----------
    users : (U,) in the order of first appearance
    detectors : the template of each
    """

    users: Types
    detectors: list[Detector]

    def score(self, samples: Samples, n_jobs: int | None = None, progress: Progress | None = None) -> Floats:
        """Score every sample against every template, (n, U).

        `progress` is called with the number of users done.
        """
        kind = self._kind()
        return self._scored(lambda templates: kind.score_many(templates, samples), n_jobs, progress)

    def score_events(
        self, samples: Samples, n_jobs: int | None = None, progress: Progress | None = None
    ) -> Floats:
        """Score every event of every sample against every template, (N, U)."""
        kind = self._kind()
        return self._scored(lambda templates: kind.score_events_many(templates, samples), n_jobs, progress)

    def _kind(self) -> type[Detector]:
        """The class of all templates, which scores them together; `Detector` if they are of several."""
        kinds = {type(template) for template in self.detectors}
        return kinds.pop() if len(kinds) == 1 else Detector

    def _scored(
        self, scored: Callable[[list[Detector]], Floats], n_jobs: int | None, progress: Progress | None
    ) -> Floats:
        """Score all templates, one column each, in threads that take some templates at a time."""
        from joblib import Parallel, delayed

        batches = _batches(len(self.detectors), n_jobs)
        tasks = (delayed(scored)([self.detectors[u] for u in batch]) for batch in batches)
        columns = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks)
        scores: Floats | None = None
        for batch, some_columns in zip(batches, columns, strict=True):
            if scores is None:
                scores = np.empty((len(some_columns), len(self.detectors)))
            scores[:, batch.start : batch.stop] = some_columns
            if progress is not None:
                progress(batch.stop)
        if scores is None:
            raise ValueError("there are no templates to score against")
        return scores

    def of(self, users: Types) -> Population:
        """The templates of these users in this order; a `ValueError` names a user who has none.

        In a fold, where a sample is left out, users may appear in another order than in all samples.
        """
        place = {user: u for u, user in enumerate(self.users.tolist())}
        absent = [user for user in users.tolist() if user not in place]
        if absent:
            raise ValueError(f"user {absent[0]} has no sample to learn from")
        return Population(users, [self.detectors[place[user]] for user in users.tolist()])


def fit_population(
    detector: str | Detector, samples: Samples, n_jobs: int | None = None, progress: Progress | None = None
) -> Population:
    """Fit a template to the samples of each user.

    A detector that needs `prepare` must be prepared already, with the samples that the protocol allows.
    `progress` is called with the number of users done. Errors name the user.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.detectors import fit_population
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(3, 8))
    >>> train, queries = samples[samples.numbers < 6], samples[samples.numbers >= 6]
    >>> population = fit_population("manhattan", train)
    >>> population.score(queries).shape  # queries, people
    (6, 3)
    """
    codes, users = samples.people
    together = samples[np.argsort(codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(users)))
    groups = [together[first:end] for first, end in zip([0, *ends[:-1]], ends, strict=True)]
    return Population(users, fit_templates(make_detector(detector), groups, n_jobs, progress))


def fit_templates(
    pattern: Detector, groups: Sequence[Samples], n_jobs: int | None = None, progress: Progress | None = None
) -> list[Detector]:
    """Fit a template to each group of samples, each group being of one user.

    `progress` is called with the number done. If `keydyn.parallel.using` names a cluster, the work runs
    there, with a batch of groups as one task. One warning covers all templates that have not converged.
    """
    batches = _batches(len(groups), n_jobs, pattern.batch_size(groups))
    tasks = [(pattern, [groups[k] for k in batch]) for batch in batches]
    templates: list[Detector] = []
    with warnings.catch_warnings():
        # A model's own warning could only give its number in the batch; the warning below names the user.
        warnings.filterwarnings("ignore", ".*not converged after max_iter")
        # The names are empty because errors name the user already.
        for batch_templates in each(_fit_batch, tasks, n_jobs=n_jobs, names=[""] * len(tasks)):
            templates.extend(batch_templates)
            if progress is not None:
                progress(len(templates))
    limited = [k for k, template in enumerate(templates) if template.limited]
    if limited:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{len(limited)} of {len(templates)} templates had not converged at the limit of iterations, the "
            f"first of them that of user {groups[limited[0]].users[0]}: raise the model's max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    return templates


def _fit_batch(task: tuple[Detector, list[Samples]]) -> list[Detector]:
    pattern, groups = task
    return pattern.fit_many(groups)


def _batches(n_items: int, n_jobs: int | None, batch_size: int = 1) -> list[range]:
    """Divide items into about eight batches per worker, or fewer, so that none is below `batch_size`."""
    if n_items == 0:
        return []
    from joblib import effective_n_jobs

    n_workers = effective_n_jobs(n_jobs)
    wanted = min(8 * n_workers, max(n_items // batch_size, n_workers))
    n_batches = min(n_items, max(wanted, -(-n_items // LARGEST_BATCH)))
    ends = [n_items * k // n_batches for k in range(n_batches + 1)]
    return [range(first, end) for first, end in itertools.pairwise(ends)]
