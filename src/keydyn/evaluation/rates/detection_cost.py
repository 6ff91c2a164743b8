"""The detection cost function (DCF): the cost of errors, given a prior and the costs of both errors.

The cost of a threshold is prior · miss · FNMR + (1 − prior) · false_match · FMR, divided by the lesser cost
of two systems that accept and reject all claims (NIST's normalised DCF). So 0 is perfect, and 1 is the cost
of having no system. The *minimum* cost is that of the best threshold in hindsight. The *actual* cost is that
of natural-log likelihood ratios at Bayes' threshold, which follows from prior and costs alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats
from keydyn.evaluation.rates.error_curve import ErrorCurve, check_scores
from keydyn.evaluation.rates.likelihood_ratios import check_prior


@dataclass(frozen=True)
class DetectionCost:
    """The prior and the costs of errors, and the cost function that follows from them.

    Attributes
    ----------
    prior : the probability that a claim is genuine
    miss, false_match : the costs of rejecting a genuine claim and of accepting an impostor's

    Examples
    --------
    >>> from keydyn.evaluation import DetectionCost
    >>> cost = DetectionCost(prior=0.99, miss=1.0, false_match=10.0)
    >>> round(float(cost.of(fmr=0.01, fnmr=0.05)), 3), round(cost.threshold, 2)
    (0.505, -2.29)
    """

    prior: float = 0.5
    miss: float = 1.0
    false_match: float = 1.0

    def __post_init__(self) -> None:
        check_prior(self.prior)
        for name, cost in (("miss", self.miss), ("false match", self.false_match)):
            if not 0.0 < cost < np.inf:
                raise ValueError(f"the cost of a {name} must be above 0 and finite, not {cost}")

    @property
    def threshold(self) -> float:
        """Bayes' threshold for natural-log likelihood ratios."""
        return float(np.log((1.0 - self.prior) * self.false_match) - np.log(self.prior * self.miss))

    def of(self, fmr: Floats | float, fnmr: Floats | float) -> Floats:
        """The normalised cost of these error rates."""
        misses, matches = self.prior * self.miss, (1.0 - self.prior) * self.false_match
        cost: Floats = (misses * np.asarray(fnmr) + matches * np.asarray(fmr)) / min(misses, matches)
        return cost


def min_dcf(genuine: Floats, impostor: Floats, cost: DetectionCost | None = None) -> float:
    """The normalised cost of the best threshold; equal priors and costs by default.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import min_dcf
    >>> round(min_dcf(np.array([0.9, 0.8, 0.4, 0.35]), np.array([0.1, 0.2, 0.5])), 3)
    0.333
    """
    curve = ErrorCurve.of(genuine, impostor)
    return float((cost or DetectionCost()).of(curve.fmr, curve.fnmr).min())


def actual_dcf(genuine: Floats, impostor: Floats, cost: DetectionCost | None = None) -> float:
    """The normalised cost of natural-log likelihood ratios at Bayes' threshold."""
    given = cost or DetectionCost()
    return float(given.of(*rates_at(genuine, impostor, given.threshold)))


def rates_at(genuine: Floats, impostor: Floats, threshold: float) -> tuple[float, float]:
    """FMR and FNMR at a threshold; scores equal to it are accepted."""
    check_scores(genuine, impostor)
    return float((impostor >= threshold).mean()), float((genuine < threshold).mean())
