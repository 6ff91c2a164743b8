"""What a fit found, and the numbering of its states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.data.vocabulary import Types
from keydyn.model.estimation.scoring import Finished
from keydyn.model.families.family import Family
from keydyn.model.fit.statistics import Counts, Statistics
from keydyn.model.theta.parameters import Parameters


class Scorable(Protocol):
    """As much of a model as scoring needs."""

    @property
    def event_types(self) -> Types: ...
    @property
    def type_places(self) -> dict[Any, int]: ...
    @property
    def families(self) -> list[Family]: ...
    @property
    def finished(self) -> Finished | None: ...


class Unopened(Scorable, Protocol):
    """Estimates as a compiled fit left them."""

    def unpacked(self) -> Estimates: ...


@dataclass(frozen=True)
class Estimates:
    """What a model has learnt, or was given.

    Attributes
    ----------
    parameters : θ
    statistics : of the last E-step, under the parameters unless it was `max_iter`
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)
    stationary : (m, M) Π[j | ω]
    n_parameters : those that the likelihood depends on, and all; see `n_parameters`
    """

    parameters: Parameters
    statistics: Statistics | None = None
    floored: list[NDArray[np.bool_]] | None = None
    stationary: Floats | None = None
    n_parameters: tuple[int, int] | None = None

    @property
    def event_types(self) -> Types:
        return self.parameters.event_types

    @property
    def type_places(self) -> dict[Any, int]:
        return self.parameters.type_places

    @property
    def families(self) -> list[Family]:
        return [emission.distribution for emission in self.parameters.emission]

    @property
    def finished(self) -> Finished | None:
        return self.parameters.finished

    def reordered(self, order: Integers) -> Estimates:
        """The same with states renumbered."""
        return replace(
            self,
            parameters=self.parameters.reordered(order),
            statistics=None if self.statistics is None else self.statistics.reordered(order),
            floored=None if self.floored is None else [acted[:, order] for acted in self.floored],
            stationary=None if self.stationary is None else self.stationary[:, order],
        )


class FitResult:
    """A finished run of Algorithm 1 from one start.

    Attributes
    ----------
    parameters : the result; statistics : of the last E-step, under the result unless it was `max_iter`
    log_likelihood : of the result
    history : (n_iter,) log-likelihood at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)
    """

    def __init__(
        self,
        estimates: Estimates | Unopened,
        log_likelihood: float,
        history: Floats,
        stop_reason: str,
    ) -> None:
        self._estimates = estimates
        self.log_likelihood = log_likelihood
        self.history = history
        self.stop_reason = stop_reason

    @property
    def estimates(self) -> Estimates:
        """What was found; made when first asked for, which of a million models may be never."""
        if not isinstance(self._estimates, Estimates):
            self._estimates = self._estimates.unpacked()
        return self._estimates

    @property
    def scorable(self) -> Scorable:
        """What scoring needs of them, without making all of them."""
        return self._estimates

    def order_states(self, settings: Settings) -> None:
        """Number the states."""
        self._estimates = ordered(self.estimates, settings)

    @property
    def parameters(self) -> Parameters:
        return self.estimates.parameters

    @property
    def statistics(self) -> Statistics:
        statistics = self.estimates.statistics
        assert statistics is not None
        return statistics

    @property
    def floored(self) -> list[NDArray[np.bool_]]:
        return self.estimates.floored or []


def ordered(estimates: Estimates, settings: Settings) -> Estimates:
    """States numbered by the marginal location of the leading feature, smallest first."""
    marginal = estimates.parameters.marginal
    if not settings.order_states or marginal is None:
        return estimates
    leading = marginal.emission[settings.leading_feature]
    order = np.argsort(leading.distribution.location(leading.params), kind="stable")
    return estimates if (order[1:] > order[:-1]).all() else estimates.reordered(order)


def n_parameters(parameters: Parameters, counts: Counts | None, fixed: tuple[str, ...]) -> tuple[int, int]:
    """Free parameters that the likelihood depends on, and all that the model has (Section 3.1).

    `counts` tells which types and pairs occurred; None means all.
    """
    m, n_states = parameters.n_types, parameters.n_states
    families = [emission.distribution for emission in parameters.emission]
    each = sum(family.free_parameters() for family in families)
    shared = sum(family.shared_parameters() for family in families)
    full = m * (n_states - 1) + m * m * n_states * (n_states - 1) + m * n_states * each + shared
    if counts is None:
        return full, full
    starts, pairs, types = (int(np.count_nonzero(c)) for c in (counts.starts, counts.pair, counts.types))
    used = 0
    if "start" not in fixed:
        used += starts * (n_states - 1)
    if "transitions" not in fixed:
        used += pairs * n_states * (n_states - 1)
    if "emission" not in fixed:
        used += types * n_states * each + shared
    return used, full
