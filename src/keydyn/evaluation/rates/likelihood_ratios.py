"""The quality of likelihood ratios: the cost Cllr, its minimum, and a reliability diagram.

Cllr (Brümmer and du Preez, Computer Speech and Language 20, 2006) is the mean logarithmic cost, in bits, of
ratios for genuine and impostor trials with equal weight: 0 is perfect, 1 is the cost of a ratio of 1 for all
trials. Its minimum is the cost of the same scores after the best monotone map, found by pooling adjacent
violators (PAV) on the same trials; the difference is the loss by imperfect calibration.

With another prior than ½ the cost is the cross-entropy of the posterior probabilities that follow from the
ratios, divided by that of the prior alone (Ramos and others, Journal of Forensic Sciences 58, 2013), so that
a ratio of 1 for all trials always costs 1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from keydyn.arrays import Floats
from keydyn.evaluation.rates.error_curve import check_scores


def cllr(genuine: Floats, impostor: Floats, prior: float = 0.5) -> float:
    """The mean cost in bits of natural-log likelihood ratios of genuine (G,) and impostor (I,) trials.

    `prior` is the probability that a trial is genuine.
    """
    check_scores(genuine, impostor)
    own, others = (costs.mean() for costs in trial_costs(genuine, impostor, prior))
    return float(prior * own + (1.0 - prior) * others)


def trial_costs(genuine: Floats, impostor: Floats, prior: float = 0.5) -> tuple[Floats, Floats]:
    """The cost of each genuine (G,) and each impostor (I,) trial; see `cllr`."""
    check_prior(prior)
    log_odds = float(np.log(prior) - np.log1p(-prior))
    unit = -prior * np.log(prior) - (1.0 - prior) * np.log1p(-prior)
    return np.logaddexp(0.0, -genuine - log_odds) / unit, np.logaddexp(0.0, impostor + log_odds) / unit


def check_prior(prior: float) -> None:
    """Raise a `ValueError` unless the prior lies between 0 and 1, both excluded."""
    if not 0.0 < prior < 1.0:
        raise ValueError(f"a prior lies between 0 and 1, not at {prior}")


def min_cllr(genuine: Floats, impostor: Floats, prior: float = 0.5) -> float:
    """The cost after the best monotone map of these scores.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import min_cllr
    >>> min_cllr(np.zeros(5), np.zeros(5))  # ratios of 1 carry no information, and cost one bit
    1.0
    >>> min_cllr(np.full(5, 9.0), np.full(5, -9.0)) < 0.001
    True
    """
    return cllr(*pooled_ratios(genuine, impostor), prior)


def pooled_ratios(genuine: Floats, impostor: Floats) -> tuple[Floats, Floats]:
    """The natural-log ratios of least cost that rise with the score, found by PAV; they may be ±∞."""
    check_scores(genuine, impostor)
    scores = np.concatenate([genuine, impostor])
    is_genuine = np.repeat([1.0, 0.0], [len(genuine), len(impostor)])
    weights = np.repeat([1.0 / len(genuine), 1.0 / len(impostor)], [len(genuine), len(impostor)])
    posterior = IsotonicRegression(y_min=0.0, y_max=1.0).fit(scores, is_genuine, weights).predict(scores)
    with np.errstate(divide="ignore"):
        ratios: Floats = np.log(posterior) - np.log1p(-posterior)
    return ratios[: len(genuine)], ratios[len(genuine) :]


def reliability(genuine: Floats, impostor: Floats, bins: int = 10) -> pd.DataFrame:
    """A reliability diagram for prior ½: stated and observed log ratios in bins of equal weight.

    One row per bin: `stated`, the log-odds of the mean probability that its ratios state; `observed`, the log
    ratio of the shares of genuine and of impostor trials in the bin, with half a trial added to each count;
    `genuine` and `impostor`, the numbers of trials.
    """
    check_scores(genuine, impostor)
    ratios = np.concatenate([genuine, impostor])
    is_genuine = np.repeat([True, False], [len(genuine), len(impostor)])
    weights = np.repeat([0.5 / len(genuine), 0.5 / len(impostor)], [len(genuine), len(impostor)])
    order = np.argsort(ratios, kind="stable")
    place = np.empty(len(ratios), dtype=np.int64)
    place[order] = np.minimum(bins * np.cumsum(weights[order]), bins - 1e-9).astype(np.int64)
    n_g, n_i = (np.bincount(place[which], minlength=bins) for which in (is_genuine, ~is_genuine))
    total = np.bincount(place, weights, bins)
    stated = np.bincount(place, weights * expit(ratios), bins) / np.where(total > 0, total, 1.0)
    observed = np.log((n_g + 0.5) / len(genuine)) - np.log((n_i + 0.5) / len(impostor))
    table = pd.DataFrame({"stated": logit(stated), "observed": observed, "genuine": n_g, "impostor": n_i})
    return table[total > 0].reset_index(drop=True)
