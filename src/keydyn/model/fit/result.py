"""What a fit found, and the numbering of its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.engine.densities import FIRST
from keydyn.model.engine.expectation import PAIR, ROW, STEP
from keydyn.model.families.compiled import features_of
from keydyn.model.fit.algorithm import REASONS
from keydyn.model.fit.statistics import Statistics, around_means
from keydyn.model.theta.event_chain import Counts, EventChain
from keydyn.model.theta.marginals import normalised
from keydyn.model.theta.parameters import Parameters
from keydyn.model.theta.start_values import Moments

if TYPE_CHECKING:
    from keydyn.model.fit.fits import Fits


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


class Unpacking:
    """What fits leave behind, without the data: unpacked when first looked at, for some models never."""

    def __init__(self, fits: Fits) -> None:
        batch = fits.batch
        self.settings, self.families = fits.settings, batch.families
        self.tables, self.sums, self.floored = fits.tables, fits.sums, fits.floored
        self.stationary, self.custom_stats, self.outcome = fits.stationary, fits.custom_stats, fits.outcome
        self.spans, self.group = fits.model_spans(), batch.group
        self.overall, self.in_order, self.batch = batch.overall, batch.in_order, batch.without_data()
        self.counts = cache(self.batch.counts)

    def result(self, b: int) -> FitResult:
        """The result of one model."""
        return FitResult(
            partial(self.ordered_parameters, b),
            partial(self.estimates, b),
            float(self.outcome.log_likelihood[b]),
            self.outcome.history[b, : self.outcome.n_iter[b]],
            REASONS[self.outcome.reason[b]],
        )

    def ordered_parameters(self, b: int) -> Parameters:
        """θ of one model, states numbered."""
        parameters = self.parameters(b)
        order = order_of_states(parameters, self.settings)
        return parameters if order is None else parameters.reordered(order)

    def estimates(self, b: int, parameters: Parameters) -> Estimates:
        """These parameters with statistics, states numbered."""
        types = slice(self.spans[b, ROW], self.spans[b, ROW + 1] - 1)
        order = order_of_states(self.parameters(b), self.settings)
        if order is None:
            order = np.arange(self.settings.n_states)
        log_likelihood = float(self.outcome.log_likelihood[b])
        return Estimates(
            parameters,
            self.statistics(b, log_likelihood).reordered(order),
            [self.floored[types, k, :, 0][:, order] for k in range(len(self.families))],
            normalised(self.stationary[types][:, order]),
            n_parameters(parameters, self.counts(int(self.group[b])), self.settings.fixed),
        )

    def parameters(self, b: int) -> Parameters:
        """θ of one model: its part of the tables."""
        counts, rows, steps, order = self._part(b)
        return Parameters(
            counts.event_types,
            self.families,
            counts.pairs,
            self.tables.start[rows, :, 0],
            self.tables.transitions[steps, :, :, 0][order],
            self.tables.emission[rows, :, :, 0],
            self._chain(int(self.group[b]), order),
            self.settings.smoothing,
        )

    def statistics(self, b: int, log_likelihood: float) -> Statistics:
        """The sums of the last expectation step."""
        counts, rows, steps, order = self._part(b)
        moments, largest = self.overall
        m, n_pairs = len(counts.types), len(counts.pairs)
        start, transitions = self.sums.start[rows, :, 0], self.sums.transitions[steps, :, :, 0][order]
        # Σ γ by type: at first events, and at the later events of all steps.
        occupancy, into = start[:-1].copy(), transitions.sum(axis=1)
        np.add.at(occupancy, counts.pairs[:, 1], into[:n_pairs])
        occupancy += into[n_pairs + m : n_pairs + 2 * m]
        return Statistics(
            counts,
            log_likelihood,
            start,
            self.sums.first_seen[rows, :, 0],
            occupancy,
            transitions[:n_pairs],
            around_means(self.families, self.sums.moments[rows, ..., 0], self._locations(rows)),
            self.custom_stats,
            [
                (Moments(*(table[b : b + 1, k] for table in moments)), largest[b : b + 1, k])
                for k in range(len(self.families))
            ],
        )

    def _chain(self, g: int, order: Any) -> EventChain:
        """The event chain of a group, its pairs in order."""
        chain, span = self.batch.event_chain, self.batch.spans[g]
        start, pair_prob = chain.known()
        types, pairs = slice(span[ROW], span[ROW + 1] - 1), slice(span[PAIR], span[PAIR + 1])
        own = pair_prob[pairs] if self.in_order else pair_prob[pairs][order[: span[PAIR + 1] - span[PAIR]]]
        return EventChain(chain.prob[types], chain.leaving[types], chain.entering[types], start[types], own)

    def _locations(self, rows: slice) -> list[Floats]:
        """The first parameter of each feature."""
        return [self.tables.emission[rows, first, :, 0] for first in features_of(self.families)[:, FIRST]]

    def _part(self, b: int) -> tuple[Counts, slice, slice, Any]:
        """The counts with pairs in order, the rows and steps of a model, and the order of its steps."""
        counts, span = self.counts(int(self.group[b])), self.spans[b]
        n_pairs, n_steps = len(counts.pairs), len(counts.pairs) + 2 * len(counts.types) + 1
        rows, steps = slice(span[ROW], span[ROW + 1]), slice(span[STEP], span[STEP] + n_steps)
        if self.in_order:
            return counts, rows, steps, slice(None)
        order = np.argsort(counts.pairs[:, 0] * len(counts.types) + counts.pairs[:, 1])
        ordered = replace(counts, pairs=counts.pairs[order], pair=counts.pair[order])
        return ordered, rows, steps, np.concatenate([order, np.arange(n_pairs, n_steps)])
