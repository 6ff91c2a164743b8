"""What a claim is measured by: its score beside other people's, and its ranks among them.

A person's cohort is the others who were enrolled when the person's thresholds were found. Ranks are those
among the cohort, so that thresholds mean the same however many people are enrolled later. A score is scaled
between the lowest of the cohort's and the highest of everybody's: somebody who is enrolled later can only
lower it, and does so for samples of their own.
"""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.penalty import rank_penalty


def scaled_claims(claimed: Floats, cohort: Floats, everybody: Floats) -> Floats:
    """Each claimed score, (n, U): 0 is the lowest of itself and the cohort's, 1 the highest of everybody's.

    `cohort` (n, C) and `everybody` (n, E) have the scores of the same samples under other models; a model
    that is claimed may be among them. All are 0 where the scores are equal; −∞ is 0.
    """
    claimed, cohort, everybody = (_finite(scores) for scores in (claimed, cohort, everybody))
    lowest = np.fmin(claimed, np.fmin.reduce(cohort, axis=1, keepdims=True))
    width = np.fmax(claimed, np.fmax.reduce(everybody, axis=1, keepdims=True)) - lowest
    scaled = np.zeros_like(claimed)
    np.divide(claimed - lowest, width, out=scaled, where=(width > 0) & ~np.isnan(claimed))
    return scaled


def _finite(scores: Floats) -> Floats:
    return np.where(np.isfinite(scores), scores, np.nan)


def claim_penalty(claimed: Floats, cohort: Floats, offsets: Integers) -> Floats:
    """The claimed model's rank penalty at each event, (N,), among the others' event scores, (N, C)."""
    return np.ascontiguousarray(rank_penalty(np.column_stack([claimed, cohort]), offsets)[:, 0])
