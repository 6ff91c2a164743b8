"""The open-set score: how much better the claimed person explains a sample than people at large do."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Truths

# Log-likelihoods are tempered before they are compared: keys of one sample tell less than independent ones.
TEMPER = 0.5
# Scores of samples that no template explains at all, so that a score is always a number.
LOWEST, HIGHEST = -1e6, 1e6
# In a smaller cohort, a member who is enrolled could not be compared with anyone.
SMALLEST_COHORT = 2


def open_set_scores(claimed: Floats, cohort: Floats, left_out: Truths | None = None) -> Floats:
    """(n, U) tempered log-likelihood under each claimed template, less the cohort's log-mean.

    `claimed` (n, U) and `cohort` (n, C) have the log-likelihoods of the same samples. `left_out` (n, C) says
    which of the cohort do not count for a sample; one must remain.
    """
    if cohort.shape[1] == 0:
        raise ValueError("there is nobody in the cohort")
    others = TEMPER * cohort if left_out is None else np.where(left_out, -np.inf, TEMPER * cohort)
    count = cohort.shape[1] if left_out is None else (~left_out).sum(axis=1)
    if np.any(count == 0):
        raise ValueError("everybody in the cohort is left out")
    largest = others.max(axis=1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(all="ignore"):
        total = np.log(np.exp(others - largest[:, None]).sum(axis=1)) + largest
        scores = TEMPER * claimed - (total - np.log(count))[:, None]
    # Neither the claimed person nor anyone in the cohort explains the sample: nothing speaks for the claim.
    scores[np.isnan(scores)] = LOWEST
    clipped: Floats = np.clip(scores, LOWEST, HIGHEST)
    return clipped
