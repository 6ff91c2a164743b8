"""The thresholds of people who are being enrolled, from their enrolment samples alone.

Each sample is scored by models that were fitted without it. A person's threshold is where false acceptance
and false rejection of these scores cross; the threshold for watching is the largest penalty of a genuine
sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.detectors import Detector, fit_population
from keydyn.engine import Progress, counting_on
from keydyn.enrolment.claims import claim_penalty, scaled_claims
from keydyn.evaluation.rates import error_rates
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types

FOLDS = 5


def n_folds(users: Types, n_others: int) -> int:
    """As many as the user with the fewest samples has, five at most; 0 where nothing can be held out."""
    counts = np.bincount(pd.factorize(users)[0])
    several = len(counts) + n_others > 1
    return min(FOLDS, int(counts.min())) if several and counts.min() > 1 else 0


def find_thresholds(
    pattern: Detector,
    samples: Samples,
    users: Types,
    in_cohort: Sequence[bool],
    others: Sequence[Detector],
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[Floats, Floats]:
    """Each user's threshold and largest genuine penalty; NaN where there is nobody to compare with.

    The cohort is the users with `in_cohort` and the people enrolled earlier, whose templates are `others`.
    Impostors are the samples of the other users, and the user's own samples in the name of the others: of
    people enrolled earlier there are templates, but no samples.
    """
    n_held_out = n_folds(samples.users, len(others))
    if n_held_out == 0:
        return np.full(len(users), np.nan), np.full(len(users), np.nan)
    fold_of = samples.numbers % n_held_out
    owners = pd.Index(users).get_indexer(pd.Index(samples.users))
    # One column for each user, then one for each of the others.
    cohort = np.flatnonzero([*in_cohort, *(True for _ in others)])
    scaled = np.empty((len(samples), len(users) + len(others)))
    penalties = np.zeros(len(users))
    for fold in range(n_held_out):
        held_out, known = samples[fold_of == fold], samples[fold_of != fold]
        # A template is a step when it is fitted and another when it has scored.
        n_before = 2 * fold * len(users)
        population = fit_population(pattern, known, n_jobs, counting_on(progress, n_before)).of(users)
        events = population.score_events(held_out, n_jobs, counting_on(progress, n_before + len(users)))
        if others:
            events = np.column_stack([events, type(pattern).score_events_many(others, held_out)])
        # The log-likelihood of a sample is the sum of its events'.
        scores = np.add.reduceat(events, held_out.sequences.offsets[:-1], axis=0)
        scaled[fold_of == fold] = scaled_claims(scores, scores[:, cohort], scores[:, cohort])
        for n, u in enumerate(owners[fold_of == fold]):
            rows = slice(*held_out.sequences.offsets[n : n + 2])
            beside = events[rows][:, cohort[cohort != u]]
            ends = np.array([0, len(beside)])
            penalties[u] = max(penalties[u], claim_penalty(events[rows, u], beside, ends).max())
    thresholds = []
    for u in range(len(users)):
        own = owners == u
        impostors = np.concatenate([scaled[~own, u], scaled[own, len(users) :].ravel()])
        thresholds.append(crossing(scaled[own, u], impostors))
    return np.array(thresholds), penalties


def crossing(genuine: Floats, impostor: Floats) -> float:
    """A threshold at which false acceptance and false rejection are as close to each other as possible.

    It lies halfway to the next score below, so that a sample need not match another to the last digit.
    """
    accepted, rejected = error_rates(genuine, impostor)
    levels = np.unique(np.concatenate([genuine, impostor]))[::-1]
    # The first point of the rates accepts nobody; there is no score for it.
    nearest = int(np.argmin(np.abs(accepted - rejected)[1:]))
    return float(levels[nearest : nearest + 2].mean())
