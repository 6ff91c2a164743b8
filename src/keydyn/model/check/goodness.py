"""Goodness of fit: a Monte Carlo test of whether a model could have produced the data (Section 5.1).

The statistic is the area between the empirical and the model's marginal distribution function. Its
distribution under the hypothesis that the model is right is estimated from surrogates, which are drawn from
the fitted model and each fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.check import areas, surrogates
from keydyn.model.data.fit_settings import check_number
from keydyn.model.data.sequences import Sequences
from keydyn.model.theta.parameters import Parameters

if TYPE_CHECKING:
    from keydyn.model.pohmm import POHMM

# A fitted model, and the data it was fitted to.
Fit = tuple[Any, Sequences]


@dataclass(frozen=True)
class GoodnessOfFit:
    """The result of a goodness-of-fit test; small p-values mean that the model does not fit.

    Attributes
    ----------
    areas : (K,) the statistic of each feature
    surrogate_areas : (S, K) the statistics of the surrogates
    second_areas : (D·S, K) those of surrogates of the surrogates: the first of each surrogate, then the
        second of each, and so on; empty unless requested
    scales : "linear" or "log" for each feature: whether its areas are over x, in its unit, or over ln x
    feature : the feature to which the properties refer; `of` selects another
    not_converged : number of fits that stopped at `max_iter`

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> test = HMM(n_states=1, emission="normal").fit(x).goodness_of_fit(x, n_surrogates=20, random_state=0)
    >>> test.surrogates.shape, 0.0 < test.p_one_sided <= 1.0
    ((20,), True)
    """

    areas: Floats
    surrogate_areas: Floats
    second_areas: Floats
    scales: list[str]
    feature: int
    not_converged: int

    @property
    def statistic(self) -> float:
        """The area between the empirical and the model's distribution function."""
        return float(self.areas[self.feature])

    @property
    def surrogates(self) -> Floats:
        """The statistic of each surrogate, (S,)."""
        return self.surrogate_areas[:, self.feature]

    @property
    def p_value(self) -> float:
        """The paper's two-sided p-value (Eq. 42, with the sum), for the distance from the surrogates' mean.

        Equal distances count as extreme; the paper's strict inequality differs only if areas are tied.
        """
        centre = self.surrogates.mean()
        return _share(np.abs(self.surrogates - centre) >= abs(self.statistic - centre))

    @property
    def p_one_sided(self) -> float:
        """The one-sided p-value, against misfit alone: the probability of an area at least as large."""
        return _share(self.surrogates >= self.statistic)

    @property
    def p_double(self) -> float:
        """The one-sided p-value, corrected by a double bootstrap; requires `n_second`.

        Beran's prepivoting: the area of the data is taken relative to its surrogates, that of each surrogate
        relative to its own surrogates, and the two are compared (`measured_by_own_surrogates`).
        """
        if len(self.second_areas) == 0:
            raise ValueError("there are no surrogates of surrogates: ask for them with n_second=2 or more")
        second = self.second_areas[:, self.feature].reshape(-1, len(self.surrogates))
        by_own = measured_by_own_surrogates(self.surrogates, second)
        return _share(by_own >= _log(np.array(self.statistic)) - _log(self.surrogates).mean())

    def of(self, feature: int) -> GoodnessOfFit:
        """The result of the same test for another feature."""
        return replace(self, feature=check_feature(feature, len(self.areas)))

    def __repr__(self) -> str:
        double = f", p_double={self.p_double:.3g}" if len(self.second_areas) else ""
        return (
            f"GoodnessOfFit(statistic={self.statistic:.4g}, p_value={self.p_value:.3g}, "
            f"p_one_sided={self.p_one_sided:.3g}{double}, {len(self.surrogate_areas)} surrogates)"
        )


class Refits(NamedTuple):
    """Models fitted to the data, to surrogates and to surrogates of these, each with its data."""

    data: Fit
    first: list[Fit]
    second: list[Fit]
    not_converged: int


class SurrogatePlan(NamedTuple):
    """The number of surrogates, and of surrogates of each; without `refit` no model is fitted."""

    n_surrogates: int
    n_second: int = 0
    refit: bool = True
    n_jobs: int | None = None


def refits(model: POHMM, sequences: Sequences, generator: np.random.Generator, plan: SurrogatePlan) -> Refits:
    """Fit the model to the data, draw and fit surrogates, and do the same from each of those models."""
    n_surrogates, n_second, refit, n_jobs = plan
    streams = generator.spawn(n_surrogates * (1 + n_second))
    fitted = surrogates.refit(model, [sequences], n_jobs)[0] if refit else model

    def again(data: list[Sequences], as_they_are: list[Any]) -> list[Fit]:
        models = surrogates.refit(model, data, n_jobs) if refit else as_they_are
        return list(zip(models, data, strict=True))

    drawn = surrogates.draw_many(fitted._parameters, sequences, streams[:n_surrogates])
    first = again([surrogate.sequences for surrogate in drawn], [fitted] * n_surrogates)
    second: list[Fit] = []
    for level in range(1, n_second + 1):
        own = streams[level * n_surrogates : (level + 1) * n_surrogates]
        models = [one for one, _ in first]
        data = [
            surrogates.draw(m._parameters, sequences, g).sequences for m, g in zip(models, own, strict=True)
        ]
        second += again(data, models)
    every_fit = [fitted, *(one for one, _ in (*first, *second))] if refit else []
    not_converged = sum(one.stop_reason_ == "max_iter" for one in every_fit)
    return Refits((fitted, sequences), first, second, not_converged)


def judged_by_areas(found: Refits, feature: int, scale: str, marginal: str) -> GoodnessOfFit:
    """The test result from the areas of all fits; `marginal` selects the model's distribution."""
    fitted, sequences = found.data
    over_log = [areas.over_log(emission, scale) for emission in fitted.emission_]

    def of_all(fits: list[Fit]) -> Floats:
        rows = [areas_of(one._parameters, data, over_log, marginal) for one, data in fits]
        return np.stack(rows) if rows else np.empty((0, sequences.n_features))

    return GoodnessOfFit(
        of_all([found.data])[0],
        of_all(found.first),
        of_all(found.second),
        ["log" if log else "linear" for log in over_log],
        feature,
        found.not_converged,
    )


def measured_by_own_surrogates(first: Floats, second: Floats) -> Floats:
    """The log-area of each surrogate relative to the mean of its own surrogates, (S,).

    `first` (S,) has the areas, `second` (D, S) those of D surrogates drawn from the model fitted to each. A
    mean of so few is itself uncertain, which inflates the spread of the differences; they are shrunk towards
    their mean so that their variance is what it would be for unlimited D.
    """
    logs = _log(second)
    difference: Floats = _log(first) - logs.mean(axis=0)
    spread, of_the_means = difference.var(), logs.var(axis=0, ddof=1).mean() / len(second)
    kept = np.sqrt(max(1.0 - of_the_means / spread, 0.0)) if spread > 0.0 else 1.0
    together: Floats = difference.mean() + kept * (difference - difference.mean())
    return together


def areas_of(
    parameters: Parameters, sequences: Sequences, over_log: Sequence[bool], marginal: str = "exact"
) -> Floats:
    """The area statistic of each feature, (K,), over ln x for features with `over_log`."""
    index = surrogates.index_of(parameters, sequences)
    found = [
        areas.feature_area(parameters, index, sequences.X[:, k], k, log, marginal)
        for k, log in enumerate(over_log)
    ]
    return np.array(found)


def check_feature(feature: int, n_features: int) -> int:
    """The number of a feature, checked."""
    if check_number("feature", feature, 0) >= n_features:
        raise ValueError(f"feature is {feature}, but features are numbered 0 to {n_features - 1}")
    return feature


def _log(found: Floats) -> Floats:
    """Logarithms of areas; an area that is zero by rounding counts as the smallest positive number."""
    return np.log(np.maximum(found, np.finfo(float).tiny))


def _share(as_extreme: Sequence[bool] | np.ndarray) -> float:
    """The biased estimate of a p-value, which counts the data among the surrogates and is never zero."""
    return float((np.sum(as_extreme) + 1) / (len(as_extreme) + 1))
