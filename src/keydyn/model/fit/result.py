"""What a fit found, and the numbering of its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.fit.statistics import Statistics
from keydyn.model.theta.counts import Counts
from keydyn.model.theta.parameters import Parameters


@dataclass(frozen=True)
class Estimates:
    """What a model has learnt, or was given.

    Attributes
    ----------
    parameters : θ
    statistics : of the last E-step, under the parameters
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)
    stationary : (m, M) Π[j | ω]
    n_parameters : those that the likelihood depends on, and all; see `n_parameters`
    """

    parameters: Parameters
    statistics: Statistics | None = None
    floored: list[NDArray[np.bool_]] | None = None
    stationary: Floats | None = None
    n_parameters: tuple[int, int] | None = None


class FitResult:
    """A finished run of Algorithm 1 from one start.

    Attributes
    ----------
    parameters : the result; statistics : of the last E-step, under the result
    log_likelihood : of the result
    history : (n_iter,) log-likelihood at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.lognormal(np.where(rng.random((300, 1)) < 0.3, 7.0, 5.0), 0.3)
    >>> model = HMM(n_init=3, random_state=0).fit(x)
    >>> results = model.init_results_
    >>> len(results), model.log_likelihood_ == max(result.log_likelihood for result in results)
    (3, True)
    """

    def __init__(
        self,
        parameters: Callable[[], Parameters],
        estimates: Callable[[Parameters], Estimates],
        log_likelihood: float,
        history: Floats,
        stop_reason: str,
    ) -> None:
        self._make_parameters, self._make_estimates = parameters, estimates
        self.log_likelihood = log_likelihood
        self.history = history
        self.stop_reason = stop_reason

    @cached_property
    def parameters(self) -> Parameters:
        """The result, states numbered; unpacked when first asked for, of a million models maybe never."""
        return self._make_parameters()

    @cached_property
    def estimates(self) -> Estimates:
        """All that was found; scoring does not ask for it."""
        return self._make_estimates(self.parameters)

    @property
    def statistics(self) -> Statistics:
        statistics = self.estimates.statistics
        assert statistics is not None
        return statistics

    @property
    def floored(self) -> list[NDArray[np.bool_]]:
        return self.estimates.floored or []

    def __getstate__(self) -> dict[str, Any]:
        """Without the fit that it was unpacked from: for another process."""
        return {
            "parameters": self.parameters,
            "estimates": self.estimates,
            "log_likelihood": self.log_likelihood,
            "history": self.history,
            "stop_reason": self.stop_reason,
        }


def order_of_states(parameters: Parameters, settings: Settings) -> Integers | None:
    """By the marginal location of the leading feature, smallest first; None if they stay as they are."""
    if not settings.order_states or not parameters.has_marginal:
        return None
    leading = settings.leading_feature
    location = parameters.families[leading].location(parameters.marginal_params(leading))
    order = sorted(range(settings.n_states), key=location.tolist().__getitem__)
    return None if order == sorted(order) else np.array(order)


def n_parameters(parameters: Parameters, counts: Counts | None, fixed: tuple[str, ...]) -> tuple[int, int]:
    """Free parameters that the likelihood depends on, and all that the model has (Section 3.1).

    `counts` tells which types and pairs occurred; None means all.
    """
    m, n_states = parameters.n_types, parameters.n_states
    families = parameters.families
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
