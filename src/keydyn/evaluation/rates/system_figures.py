"""All figures of a system that follow from its scores: error rates, costs, and figures of other conventions.

All users share one threshold, and intervals are over the people claimed. If a file does not name people,
there is no interval, because the similarity of one person's scores is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.evaluation.rates.chosen_elsewhere import (
    ChosenElsewhere,
    chosen_elsewhere,
    nearest_threshold,
    weighted_thresholds,
)
from keydyn.evaluation.rates.confidence import (
    REPLICATES,
    Estimate,
    Rate,
    interval,
    mean_rate,
    trials_needed,
    unsupported,
    user_weights,
)
from keydyn.evaluation.rates.conventions import nearest_eer, nearest_fnmr_at_fmr
from keydyn.evaluation.rates.detection_cost import DetectionCost, actual_dcf
from keydyn.evaluation.rates.error_curve import ErrorCurve, crossing
from keydyn.evaluation.rates.identification import IdentificationRates, identification
from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr, trial_costs
from keydyn.evaluation.rates.replicates import Replicates, replicated_curves
from keydyn.evaluation.rates.verification import FMR_TARGETS, TITLES, pooled_rates
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.short_repr import short_repr

#: Titles of the rates for reports, by the names that programs use.
RATE_TITLES = {
    "eer": TITLES["eer"],
    "hull_eer": "equal error rate of the convex hull",
    **{name: title for name, title in TITLES.items() if name != "eer"},
    "hter": "half total error rate, threshold of other people",
    "rank_1": "identified at rank 1",
}
CONVENTION_TITLES = {
    "kvc_eer": "KVC: equal error rate, nearest point",
    **{f"kvc_{name}": f"KVC: {TITLES[name]}, nearest point" for name in FMR_TARGETS},
    "typenet_eer": "TypeNet: mean of users' own equal error rates",
}
EVEN = DetectionCost()
COST_TITLES = {
    "min_dcf": "minimum DCF",
    "actual_dcf": "actual DCF",
    "min_cllr": "minimum Cllr",
    "cllr": "Cllr",
}


@dataclass(frozen=True, eq=False)
class SystemFigures:
    """The figures of a system, each computed on first access.

    Attributes
    ----------
    claims : the scored claims
    cost : the prior and the costs of errors for DCF and Cllr
    ratios : whether scores are natural-log likelihood ratios; if not, there is no actual DCF and no Cllr

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.evaluation import ScoredClaims, SystemFigures
    >>> rng = np.random.default_rng(0)
    >>> claims = ScoredClaims.without_people(rng.normal(2.0, 1.0, 100), rng.normal(0.0, 1.0, 400))
    >>> figures = SystemFigures(claims)
    >>> figures.rates["fnmr_at_fmr_10"].trials, figures.rates["fnmr_at_fmr_0.1"].text()
    (100, 'not supported by 400 trials')
    >>> figures.costs["min_dcf"].value < 0.4
    True
    """

    claims: ScoredClaims
    cost: DetectionCost = EVEN
    ratios: bool = True
    replicates: int = REPLICATES
    seed: int = 0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name, scores in zip(("genuine", "impostor"), self.claims.scores, strict=True):
            if len(scores) == 0:
                raise ValueError(f"there are no {name} scores")

    @cached_property
    def curve(self) -> ErrorCurve:
        """The errors of all claims together at every threshold."""
        return ErrorCurve.of(*self.claims.scores)

    @cached_property
    def drawn(self) -> Replicates | None:
        """The curves of bootstrap replicates; None without several known people."""
        if not self.claims.has_people:
            return None
        _, genuine, impostor = self.claims.by_user
        return replicated_curves(genuine, impostor, self.replicates, self.seed)

    @cached_property
    def rates(self) -> dict[str, Rate]:
        """Error rates by the names of `RATE_TITLES`, without those that these claims do not allow."""
        genuine, strangers = self.claims.trials
        rates = pooled_rates(self.curve, self.drawn, genuine, strangers)
        rates["hull_eer"] = self._rate(self.curve.hull.eer, _hull_eers, genuine)
        elsewhere = self.elsewhere(nearest_threshold)
        if elsewhere is not None:
            rates["hter"] = elsewhere.rate()
        if self.identified is not None:
            rates["rank_1"] = self.identified.accuracy
        return {name: rates[name] for name in RATE_TITLES if name in rates}

    @cached_property
    def conventions(self) -> dict[str, Rate]:
        """Figures by published conventions, by the names of `CONVENTION_TITLES`."""
        genuine, strangers = self.claims.trials
        scores = self.claims.scores
        rates = {"kvc_eer": self._rate(nearest_eer(*scores), _nearest_eers, genuine)}
        for name, target in FMR_TARGETS.items():
            value = nearest_fnmr_at_fmr(*scores, target)
            rate = self._rate(value, partial(_nearest_fnmrs, target=target), genuine)
            needed = trials_needed(target)
            rates[f"kvc_{name}"] = rate if strangers >= needed else unsupported(strangers, needed)
        if len(self.users) and self.claims.people:
            own = self.users["nearest_eer"].to_numpy(dtype=np.float64)
            rates["typenet_eer"] = mean_rate(own, genuine, self.replicates, self.seed)
        return rates

    @cached_property
    def costs(self) -> dict[str, Estimate]:
        """DCF and Cllr by the names of `COST_TITLES`."""
        scores, cost, drawn = self.claims.scores, self.cost, self.drawn
        least = float(cost.of(self.curve.fmr, self.curve.fnmr).min())
        least_cllr = min_cllr(*scores, cost.prior)
        costs = {"min_dcf": Estimate(least), "min_cllr": Estimate(least_cllr)}
        if drawn is not None:
            costs["min_dcf"] = _estimate(least, cost.of(drawn.fmr, drawn.fnmr).min(axis=1))
            costs["min_cllr"] = _estimate(least_cllr, _min_cllrs(drawn, cost.prior))
        if self.ratios:
            at = np.array([cost.threshold])
            costs["actual_dcf"] = Estimate(actual_dcf(*scores, cost))
            costs["cllr"] = Estimate(cllr(*scores, cost.prior))
            if drawn is not None:
                _, genuine, impostor = self.claims.by_user
                there = replicated_curves(genuine, impostor, self.replicates, self.seed, at)
                costs["actual_dcf"] = _estimate(
                    costs["actual_dcf"].value, cost.of(there.fmr[:, 1], there.fnmr[:, 1])
                )
                costs["cllr"] = _estimate(costs["cllr"].value, self._cllrs())
        return {name: costs[name] for name in COST_TITLES if name in costs}

    @cached_property
    def users(self) -> pd.DataFrame:
        """One row per user with both kinds of claims: eer and nearest_eer at thresholds of their own."""
        who, genuine, impostor = self.claims.by_user
        both = [(u, g, i) for u, g, i in zip(who, genuine, impostor, strict=True) if len(g) and len(i)]
        rows = [(ErrorCurve.of(g, i).eer, nearest_eer(g, i)) for _, g, i in both]
        names = [self.claims.people[u] if self.claims.people else "" for u, _, _ in both]
        return pd.DataFrame(rows, pd.Index(names, name="user"), ["eer", "nearest_eer"])

    @cached_property
    def identified(self) -> IdentificationRates | None:
        """Identification rates; None unless all samples met all templates, some their own."""
        scores = self.claims.matrix
        if scores is None or not scores.own.any():
            return None
        return identification(scores, self.replicates, self.seed)

    @cached_property
    def expected_performance(self) -> ChosenElsewhere | None:
        """The errors for each weight of the expected performance curve."""
        return self.elsewhere(weighted_thresholds)

    def elsewhere(self, choose: Callable[[ErrorCurve], Floats]) -> ChosenElsewhere | None:
        """The errors at thresholds chosen on other people; None if there are too few people."""
        if not self.claims.has_people:
            return None
        return chosen_elsewhere(self.claims, choose, self.replicates, self.seed)

    def _rate(self, value: float, figure: Callable[[Replicates], Floats], trials: int) -> Rate:
        if self.drawn is None:
            return Rate(value, None, None, trials)
        low, high = interval(figure(self.drawn))
        return Rate(value, float(low), float(high), trials)

    def _cllrs(self) -> Floats:
        """Cllr of each replicate, (R,)."""
        _, genuine, impostor = self.claims.by_user
        weights = user_weights(len(genuine), self.replicates, self.seed)
        means = []
        for side, parts in enumerate((genuine, impostor)):
            sums = np.array([trial_costs(part, part, self.cost.prior)[side].sum() for part in parts])
            means.append((weights @ sums) / np.maximum(weights @ np.array([len(p) for p in parts]), 1.0))
        mixed: Floats = self.cost.prior * means[0] + (1.0 - self.cost.prior) * means[1]
        return mixed


def _estimate(value: float | None, replicated: Floats) -> Estimate:
    low, high = interval(replicated)
    return Estimate(value, float(low), float(high))


def _hull_eers(drawn: Replicates) -> Floats:
    return np.array([crossing(fmr[None], fnmr[None])[0] for fmr, fnmr in drawn.hulls])


def _nearest_eers(drawn: Replicates) -> Floats:
    rows, at = np.arange(len(drawn.fmr)), np.argmin(np.abs(drawn.fmr - drawn.fnmr), axis=1)
    both: Floats = (drawn.fmr[rows, at] + drawn.fnmr[rows, at]) / 2.0
    return both


def _nearest_fnmrs(drawn: Replicates, target: float) -> Floats:
    at = np.argmin(np.abs(drawn.fmr - target), axis=1)
    found: Floats = drawn.fnmr[np.arange(len(drawn.fmr)), at]
    return found


def _min_cllrs(drawn: Replicates, prior: float) -> Floats:
    """The least Cllr of each replicate, (R,): each edge of the hull is a block with its own ratio."""
    rows = []
    for fmr, fnmr in drawn.hulls:
        impostors, genuine = np.diff(fmr), -np.diff(fnmr)
        with np.errstate(divide="ignore"):
            ratio = np.log(genuine) - np.log(impostors)
        own, others = trial_costs(ratio, ratio, prior)
        there = genuine > 0, impostors > 0
        rows.append(
            prior * (genuine[there[0]] * own[there[0]]).sum()
            + (1.0 - prior) * (impostors[there[1]] * others[there[1]]).sum()
        )
    return np.array(rows)
