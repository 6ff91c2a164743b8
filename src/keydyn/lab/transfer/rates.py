"""What claims say: strangers and genuine people accepted at stated rates, and how good the scores are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Truths
from keydyn.evaluation.rates.confidence import Claims
from keydyn.evaluation.rates.error_curve import ErrorCurve, equal_error_rate
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr

STATED = (0.001, 0.01, 0.05)
# The rate at which the right threshold is found, as if strangers' scores were known.
TRUE = 0.01
# A rate that was rounded, to the seven digits that are kept, is not above its target.
ROUNDING = 1.0 + 1e-6
# Strangers' claims that PAV is computed from at most; it sorts them all.
MOST_POOLED = 50_000
KEY = ("dataset_from", "dataset_to", "enrolled")
COUNTED, LEFT_OUT = "counted", "left out"

# Numbers of people who are likely the same person.
Pairs = Collection[tuple[int, int]]


def rates_of(claims: pd.DataFrame, pairs: Pairs = (), seed: int = 0) -> Iterator[dict[str, Any]]:
    """A row per stated rate; claims in the names of likely repeats are not counted as strangers'.

    `claims` are of one place, one background and one number of samples enrolled.
    """
    claimed, typist, rate, score, llr = (
        claims[name].to_numpy() for name in ("claimed", "typist", "rate", "score", "llr")
    )
    genuine = claimed == typist
    strange = ~genuine & ~among(claimed, typist, pairs)
    people = len(np.unique(claimed))
    strangers, own = (Claims(claimed[which], typist[which], seed=seed) for which in (strange, genuine))
    curve = ErrorCurve.of(score[genuine], score[strange])
    shared = {
        "keys": float(np.median(claims["enrolled_keys"].to_numpy())),
        "people": people,
        "claims": int(strange.sum()),
        "samples": int(claims["sample"].nunique()),
        "genuine_true": 1.0 - curve.fnmr_at_fmr(TRUE),
        "eer": curve.eer,
        "eer_per_user": per_user(score, claimed, genuine, strange),
        "cllr": cllr(llr[genuine], llr[strange]),
        "cllr_min": min_cllr(score[genuine], _some(score[strange])),
        "repeats": LEFT_OUT if len(pairs) else COUNTED,
    }
    for stated in STATED:
        accepted = rate <= stated * ROUNDING
        low, high = strangers.interval(accepted[strange])
        own_low, own_high = own.interval(accepted[genuine])
        yield {
            "stated": stated,
            "strangers": float(accepted[strange].mean()),
            "strangers_low": low,
            "strangers_high": high,
            "genuine_stated": float(accepted[genuine].mean()),
            "genuine_stated_low": own_low,
            "genuine_stated_high": own_high,
            **shared,
        }


def among(claimed: Any, typist: Any, pairs: Pairs) -> Truths:
    """(n,) which claims are between two people of one of these pairs, in either order."""
    both = {(u, v) for u, v in pairs} | {(v, u) for u, v in pairs}
    if not both:
        return np.zeros(len(claimed), dtype=bool)
    n = int(max(claimed.max(), typist.max(), *(max(pair) for pair in both))) + 1
    named = np.array([u * n + v for u, v in both])
    found: Truths = np.isin(claimed.astype(np.int64) * n + typist, named)
    return found


def per_user(scores: Floats, claimed: Any, genuine: Truths, strange: Truths) -> float:
    """The mean of the equal error rates of people, each with a threshold of their own."""
    order = np.argsort(claimed, kind="stable")
    begins = np.flatnonzero(np.diff(claimed[order], prepend=-1))
    rates = [
        equal_error_rate(scores[rows][genuine[rows]], scores[rows][strange[rows]])
        for rows in np.split(order, begins[1:])
        if genuine[rows].any() and strange[rows].any()
    ]
    return float(np.mean(rates))


def _some(scores: Floats) -> Floats:
    """The scores, or many evenly spread quantiles of very many."""
    if len(scores) <= MOST_POOLED:
        return scores
    return np.quantile(scores, (np.arange(MOST_POOLED) + 0.5) / MOST_POOLED)


def rates_frame(claims: pd.DataFrame, pairs: dict[str, Pairs] | None = None, seed: int = 0) -> pd.DataFrame:
    """All rates by where people were learnt from and tried; with likely repeats in a place, also without."""
    rows = []
    for key, some in claims.groupby(list(KEY), sort=False, observed=True):
        labels = dict(zip(KEY, key, strict=True))
        repeats = (pairs or {}).get(str(labels["dataset_to"]), ())
        for left_out in ((), repeats) if len(repeats) else ((),):
            rows += [labels | row for row in rates_of(some, left_out, seed)]
    return pd.DataFrame(rows)
