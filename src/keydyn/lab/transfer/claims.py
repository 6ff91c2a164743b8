"""Claims in one place, judged by a background learnt in another.

The claims give the shares of strangers and genuine people accepted at stated rates, and the quality of
scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.amounts import Calibrations
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.trials import spread
from keydyn.decisions.decision import calibration_keys, evidence
from keydyn.detectors import Detector, PopulationDetector
from keydyn.evaluation.rates.confidence import Claims
from keydyn.evaluation.rates.error_curve import ErrorCurve, equal_error_rate
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr
from keydyn.keystrokes.samples import Samples

# The numbers of samples to enrol with, and the largest number of queries per person.
AMOUNTS, ASKED = (1, 5, 10), 5


class EnrolledAndAsked(NamedTuple):
    """The samples that people enrol with, and the queries."""

    enrol: Samples
    ask: Samples
    users: Integers  # (U,) numbers of the people
    keys: Integers  # (U,) number of keystrokes that each enrolled with
    typist: Integers  # (n,) number of the person who typed each query


def amounts_for(samples: Samples) -> tuple[int, ...]:
    """The numbers of samples that most people can enrol with, with at least two left as queries."""
    counts = np.unique(pd.factorize(samples.users)[0], return_counts=True)[1]
    return tuple(n for n in AMOUNTS if n + 2 <= np.median(counts))


def split(samples: Samples, amount: int, most: int = ASKED) -> EnrolledAndAsked:
    """Enrol the first samples of each person; the queries are later ones, the same for all amounts."""
    people, numbers = pd.factorize(samples.users)[0], samples.numbers
    first = max(amounts_for(samples), default=amount)
    asked = np.concatenate(
        [spread(np.flatnonzero((people == u) & (numbers >= first)), most) for u in np.unique(people)]
    )
    enrol = np.flatnonzero(numbers < amount)
    keys = np.bincount(people[enrol], samples.sequences.lengths[enrol]).astype(np.int64)
    return EnrolledAndAsked(samples[enrol], samples[asked], np.unique(people), keys, people[asked])


def templates_of(background: Background, enrol: Samples) -> dict[str, Detector]:
    """The template of each person, in the order of their numbers."""
    pattern = background.pattern
    if not isinstance(pattern, PopulationDetector):
        raise TypeError(f"people are enrolled with a population, not with {pattern.name}")
    users = pd.unique(enrol.users)
    carried = map(pattern.carrying, pattern.people.enrol_each(enrol))
    return dict(zip(map(str, users), carried, strict=True))


def claims_of(background: Background, samples: Samples, amount: int) -> pd.DataFrame:
    """All queries, each in the name of every person; people enrol with this number of samples."""
    found = split(samples, amount)
    scores = background.scores(templates_of(background, found.enrol), found.ask)
    keys = known_keys(background, found.ask)
    llr, rates = meanings(background.calibrations, scores, keys, found.keys)
    n, U = scores.shape
    return pd.DataFrame(
        {
            "claimed": np.tile(found.users, n).astype(np.int32),
            "typist": np.repeat(found.typist, U).astype(np.int32),
            "sample": np.repeat(np.arange(n), U).astype(np.int32),
            "keys": np.repeat(keys, U).astype(np.int32),
            "enrolled_keys": np.tile(found.keys, n).astype(np.int32),
            "score": scores.ravel().astype(np.float32),
            "llr": llr.ravel().astype(np.float32),
            "rate": rates.ravel().astype(np.float32),
        }
    )


def known_keys(background: Background, samples: Samples) -> Integers:
    """The number of informative keystrokes in each sample, (n,)."""
    return calibration_keys(evidence(samples, background.pattern))


def meanings(
    calibrations: Calibrations, scores: Floats, keys: Integers, enrolled: Integers
) -> tuple[Floats, Floats]:
    """Likelihood ratios and false-match rates (n, U) of scores (n, U), by keys (n,) and enrolment (U,)."""
    n, U = scores.shape
    found = calibrations.meanings(scores.ravel(), np.repeat(keys, U), np.tile(enrolled, n))
    return found.llr.reshape(n, U), found.false_match.reshape(n, U)


def labelled(frames: Mapping[tuple[str, str, int], pd.DataFrame]) -> pd.DataFrame:
    """All claims, labelled with the places of learning and testing and the number of samples enrolled."""
    parts = [
        frame.assign(dataset_from=source, dataset_to=target, enrolled=np.int32(amount))
        for (source, target, amount), frame in frames.items()
    ]
    return pd.concat(parts, ignore_index=True)


STATED = (0.001, 0.01, 0.05)
# The rate at which the true threshold is found, as if strangers' scores were known.
TRUE = 0.01
# Tolerance for rates that were rounded to the seven digits stored.
ROUNDING = 1.0 + 1e-6
# The largest number of strangers' claims for PAV, which sorts them all.
MOST_POOLED = 50_000
KEY = ("dataset_from", "dataset_to", "enrolled")
COUNTED, LEFT_OUT = "counted", "left out"

# Pairs of numbers of people who are likely the same person.
Pairs = Collection[tuple[int, int]]


def rates_of(claims: pd.DataFrame, pairs: Pairs = (), seed: int = 0) -> Iterator[dict[str, Any]]:
    """A row per stated rate; claims between likely repeats do not count as strangers'.

    All `claims` have the same place, background and number of samples enrolled.
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
    """Whether each claim is between two people of one of these pairs, in either order, (n,)."""
    both = {(u, v) for u, v in pairs} | {(v, u) for u, v in pairs}
    if not both:
        return np.zeros(len(claimed), dtype=bool)
    n = int(max(claimed.max(), typist.max(), *(max(pair) for pair in both))) + 1
    named = np.array([u * n + v for u, v in both])
    found: Truths = np.isin(claimed.astype(np.int64) * n + typist, named)
    return found


def per_user(scores: Floats, claimed: Any, genuine: Truths, strange: Truths) -> float:
    """The mean equal error rate over people, each with a threshold of their own."""
    order = np.argsort(claimed, kind="stable")
    begins = np.flatnonzero(np.diff(claimed[order], prepend=-1))
    rates = [
        equal_error_rate(scores[rows][genuine[rows]], scores[rows][strange[rows]])
        for rows in np.split(order, begins[1:])
        if genuine[rows].any() and strange[rows].any()
    ]
    return float(np.mean(rates))


def _some(scores: Floats) -> Floats:
    """The scores, or evenly spaced quantiles if there are very many."""
    if len(scores) <= MOST_POOLED:
        return scores
    return np.quantile(scores, (np.arange(MOST_POOLED) + 0.5) / MOST_POOLED)


def rates_frame(claims: pd.DataFrame, pairs: dict[str, Pairs] | None = None, seed: int = 0) -> pd.DataFrame:
    """The rows of `rates_of` by places of learning and testing; if there are repeats, also without them."""
    rows = []
    for key, some in claims.groupby(list(KEY), sort=False, observed=True):
        labels = dict(zip(KEY, key, strict=True))
        repeats = (pairs or {}).get(str(labels["dataset_to"]), ())
        for left_out in ((), repeats) if len(repeats) else ((),):
            rows += [labels | row for row in rates_of(some, left_out, seed)]
    return pd.DataFrame(rows)
