"""The result of a fit (θ, statistics, history) in one object, and the numbering of states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data.fit_settings import FitSettings, checked_floor
from keydyn.model.engine.densities import FIRST, NORMAL, STUDENT
from keydyn.model.engine.expectation import MASS, NOTHING, PRECISION, SQUARE, SUM
from keydyn.model.engine.layout import PAIR, ROW, STEP
from keydyn.model.engine.sums import merge_moments
from keydyn.model.families.compiled import features_of, kind_of
from keydyn.model.families.family import Family, Stats
from keydyn.model.fit.algorithm import REASONS
from keydyn.model.fit.threads import Learner
from keydyn.model.theta.from_data import Moments, TypeCounts
from keydyn.model.theta.marginals import normalised
from keydyn.model.theta.parameters import EventChain, Parameters

if TYPE_CHECKING:
    from keydyn.model.fit.fits import Fits

# In `Statistics.moments` of the normal and t families, the mean stands in the place of the sum.
MEAN = SUM


@dataclass(frozen=True)
class Statistics:
    """Expected counts under the current parameters.

    Attributes
    ----------
    counts : observed frequencies of types and pairs
    log_likelihood : weighted log-likelihood of all sequences
    start : (m + 1, M) Σ γ₁ of the sequences that begin with ω, then of all sequences
    first_seen : (m + 1, M) Σ γ at the first ω of each sequence (the published settings)
    occupancy : (m, M) Σ γ of the events of type ω, with or without a value
    transitions : (P, M, M) Σ ξ
    moments : (m + 1, K, W, M) sums for the families that the engine implements, see `engine.expectation`; for
        the normal and t families with the mean in place of the sum, and squared deviations from the mean
    custom : the statistics of the other families by feature number, in the family's own form
    overall : moments of each feature over all events, and the largest |x|, for the scale floor
    """

    counts: TypeCounts
    log_likelihood: float
    start: Floats
    first_seen: Floats
    occupancy: Floats
    transitions: Floats
    moments: Floats
    custom: dict[int, Stats]
    overall: list[tuple[Moments, Floats]]

    def merged(self, other: Statistics, families: tuple[Family, ...]) -> Statistics:
        """The combined statistics, with the vocabulary and pairs of `other`, which must include ours."""
        ours = self._aligned(other.counts)
        moments = ours.moments + other.moments
        for k, family in enumerate(families):
            if kind_of(family) in (NORMAL, STUDENT):
                _merge_moments(_divisor(family), ours.moments[:, k], other.moments[:, k], moments[:, k])
        return Statistics(
            ours.counts + other.counts,
            ours.log_likelihood + other.log_likelihood,
            ours.start + other.start,
            ours.first_seen + other.first_seen,
            ours.occupancy + other.occupancy,
            ours.transitions + other.transitions,
            moments,
            {k: families[k].merge(stats, other.custom[k]) for k, stats in ours.custom.items()},
            [_merged_overall(a, b) for a, b in zip(ours.overall, other.overall, strict=True)],
        )

    def _aligned(self, target: TypeCounts) -> Statistics:
        m = len(target.event_types)
        counts, rows = self.counts.aligned(target.event_types, target.pairs)
        transitions = np.zeros((len(target.pairs), *self.transitions.shape[1:]))
        transitions[rows] = self.transitions
        return replace(
            self,
            counts=counts,
            start=_with_rows(self.start, m),
            first_seen=_with_rows(self.first_seen, m),
            occupancy=_padded(self.occupancy, m),
            transitions=transitions,
            moments=_with_rows(self.moments, m),
            custom={
                k: {name: _padded(values, m) for name, values in stats.items()}
                for k, stats in self.custom.items()
            },
        )

    def reordered(self, order: Integers) -> Statistics:
        """These statistics with states renumbered."""
        return replace(
            self,
            start=self.start[:, order],
            first_seen=self.first_seen[:, order],
            occupancy=self.occupancy[:, order],
            transitions=self.transitions[:, order[:, None], order],
            moments=self.moments[..., order],
            custom={
                k: {name: values[:, order] for name, values in stats.items()}
                for k, stats in self.custom.items()
            },
        )

    def shares(self) -> Floats:
        """The posterior share of each state among the events of a type, (m, M)."""
        return normalised(self.occupancy)


def around_means(families: tuple[Family, ...], sums: Floats, locations: list[Floats]) -> Floats:
    """Statistics around means, from sums (R, K, W, M) of deviations from the current locations (R, M)."""
    moments = sums.copy()
    for k, family in enumerate(families):
        if kind_of(family) in (NORMAL, STUDENT):
            weight, total = sums[:, k, _divisor(family)], sums[:, k, SUM]
            apart = np.divide(total, weight, out=np.zeros_like(total), where=weight > NOTHING)
            moments[:, k, MEAN] = locations[k] + apart
            moments[:, k, SQUARE] = np.maximum(sums[:, k, SQUARE] - apart * total, 0.0)
    return moments


def around_locations(families: tuple[Family, ...], moments: Floats, locations: list[Floats]) -> Floats:
    """The inverse of `around_means`: sums of deviations from `locations`, which are set to the means."""
    sums = moments.copy()
    for k, family in enumerate(families):
        if kind_of(family) in (NORMAL, STUDENT):
            known = moments[:, k, _divisor(family)] > NOTHING
            locations[k][known] = moments[:, k, MEAN][known]
            sums[:, k, SUM] = 0.0
    return sums


def _divisor(family: Family) -> int:
    """The index of the sum of weights by which the mean of a feature was divided."""
    return PRECISION if kind_of(family) == STUDENT else MASS


def _merge_moments(weight: int, a: Floats, b: Floats, together: Floats) -> None:
    """Write the means and squared deviations of two sets combined into `together`."""
    columns = {"count": weight, "mean": MEAN, "square": SQUARE}
    first, second = ({name: of[:, column] for name, column in columns.items()} for of in (a, b))
    merged = merge_moments(first, second)
    together[:, MEAN], together[:, SQUARE] = merged["mean"], merged["square"]


def _merged_overall(a: tuple[Moments, Floats], b: tuple[Moments, Floats]) -> tuple[Moments, Floats]:
    merged = merge_moments(a[0]._asdict(), b[0]._asdict(), "weight")
    return Moments(**merged), np.maximum(a[1], b[1])


def _padded(values: Floats, n_rows: int) -> Floats:
    padded = np.zeros((n_rows, *values.shape[1:]))
    padded[: len(values)] = values
    return padded


def _with_rows(values: Floats, m: int) -> Floats:
    """A table with rows for more types added before its last row, which is for unknown types."""
    padded = _padded(values[:-1], m + 1)
    padded[-1] = values[-1]
    return padded


class FitResult:
    """The parameters of a model, found by a fit from one start or given, with a report; never changed.

    All attributes but the parameters may be None if no fit set them. The results of a fit are unpacked from
    its arrays on first access: with a million models, most may never be needed.

    Attributes
    ----------
    parameters : θ; statistics : sums of the last E-step, under these parameters
    log_likelihood : log-likelihood under these parameters
    history : (n_iter,) log-likelihood at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)
    stationary : (m, M) Π[j | ω]
    n_parameters : number of free parameters that the likelihood depends on, and of all

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

    log_likelihood: float | None
    history: Floats | None
    stop_reason: str | None

    def __init__(self, fits: Fits, b: int) -> None:
        outcome = fits.outcome
        self._fits, self._number = fits, b
        self.log_likelihood = float(outcome.log_likelihood[b])
        self.history = outcome.history[b, : outcome.n_iter[b]]
        self.stop_reason = REASONS[outcome.reason[b]]

    @classmethod
    def of(cls, parameters: Any, **known: Any) -> FitResult:
        """A result from parameters (of a POHMM or a relative) and whatever else is known, without a fit."""
        made = cls.__new__(cls)
        vars(made).update(dict.fromkeys(ATTRIBUTES) | {"parameters": parameters} | known)
        return made

    def replaced(self, **changes: Any) -> FitResult:
        """A copy with some attributes changed."""
        return FitResult.of(**(self.__getstate__() | changes))

    @cached_property
    def parameters(self) -> Parameters:
        """θ, with states in their final order."""
        parameters = parameters_of(self._fits, self._number)
        order = order_of_states(parameters, self._fits.settings)
        return parameters if order is None else parameters.reordered(order)

    @cached_property
    def statistics(self) -> Statistics | None:
        """The sums of the last expectation step, with states in their final order."""
        return statistics_of(self._fits, self._number).reordered(self._order)

    @cached_property
    def floored(self) -> list[Truths] | None:
        """For each feature a mask (m, M) of where the scale floor acted."""
        floored = self._fits.tables.floored[self._types]
        return [floored[:, k, :, 0][:, self._order] for k in range(floored.shape[1])]

    @cached_property
    def stationary(self) -> Floats | None:
        """Π[j | ω], (m, M)."""
        return normalised(self._fits.stationary[self._types][:, self._order])

    @cached_property
    def n_parameters(self) -> tuple[int, int] | None:
        """The number of free parameters that the likelihood depends on, and of all."""
        counts = self._fits.batch.counts(int(self._fits.batch.group[self._number]))
        return n_parameters(self.parameters, counts, self._fits.settings.fixed)

    @cached_property
    def _order(self) -> Integers:
        settings = self._fits.settings
        order = order_of_states(parameters_of(self._fits, self._number), settings)
        return np.arange(settings.n_states) if order is None else order

    @property
    def _types(self) -> slice:
        """The rows of the model's event types."""
        span = self._fits.model_spans[self._number]
        return slice(span[ROW], span[ROW + 1] - 1)

    def __getstate__(self) -> dict[str, Any]:
        """All attributes, unpacked, without the fit they come from: less to send to another process."""
        return {name: getattr(self, name) for name in ATTRIBUTES}


# The attributes of a `FitResult`.
ATTRIBUTES = (
    *("parameters", "statistics", "log_likelihood", "history", "stop_reason"),
    *("floored", "stationary", "n_parameters"),
)


class FitReport(Learner):
    """Base of estimators whose state has a `result`, with properties that report on their fit."""

    density_floor: float | None

    @property
    def log_likelihood_(self) -> float:
        return self._found(self._result.log_likelihood)

    @property
    def history_(self) -> Floats:
        return self._found(self._result.history)

    @property
    def n_iter_(self) -> int:
        return len(self.history_)

    @property
    def stop_reason_(self) -> str:
        return self._found(self._result.stop_reason)

    @property
    def converged_(self) -> bool:
        """Whether the last iteration of `fit` gained less than `tol` without falling."""
        return self.stop_reason_ == "tol"

    @property
    def scale_floored_(self) -> list[Truths]:
        return self._found(self._result.floored)

    @property
    def _floor(self) -> float | None:
        return checked_floor(self.density_floor)

    @property
    def _result(self) -> FitResult:
        result: FitResult = self._known().result
        return result


def order_of_states(parameters: Parameters, settings: FitSettings) -> Integers | None:
    """The order of states by the leading feature's marginal location; None if they stay as they are."""
    if not settings.order_states or not parameters.has_marginal:
        return None
    leading = settings.leading_feature
    location = parameters.families[leading].location(parameters.marginal_params(leading))
    order = sorted(range(settings.n_states), key=location.tolist().__getitem__)
    return None if order == sorted(order) else np.array(order)


def n_parameters(
    parameters: Parameters, counts: TypeCounts | None, fixed: tuple[str, ...]
) -> tuple[int, int]:
    """The number of free parameters that the likelihood depends on, and of all (Section 3.1).

    `counts` has the types and pairs that occurred; None means all did.
    """
    m, n_states = parameters.n_types, parameters.n_states
    families = parameters.families
    each = sum(family.free_parameters() for family in families)
    shared = sum(family.shared_parameters() for family in families)
    full = m * (n_states - 1) + m * m * n_states * (n_states - 1) + m * n_states * each + shared
    if counts is None:
        return full, full
    of_each = counts.start_counts, counts.pair_counts, counts.type_counts
    starts, pairs, types = (int(np.count_nonzero(some)) for some in of_each)
    used = 0
    if "start" not in fixed:
        used += starts * (n_states - 1)
    if "transitions" not in fixed:
        used += pairs * n_states * (n_states - 1)
    if "emission" not in fixed:
        used += types * n_states * each + shared
    return used, full


def parameters_of(fits: Fits, b: int) -> Parameters:
    """θ of one model of a fit, cut out of its tables, with states not yet reordered."""
    counts, rows, steps, order = _part(fits, b)
    tables = fits.tables
    return Parameters(
        event_types=counts.event_types,
        families=fits.batch.families,
        pairs=counts.pairs,
        start=tables.start[rows, :, 0],
        transitions=tables.transitions[steps, :, :, 0][order],
        emissions=tables.emission[rows, :, :, 0],
        chain=_chain(fits, int(fits.batch.group[b]), order),
        smoothing=fits.settings.smoothing,
    )


def statistics_of(fits: Fits, b: int) -> Statistics:
    """The sums of the last expectation step of one model, with states not yet reordered."""
    counts, rows, steps, order = _part(fits, b)
    families, sums, (moments, largest) = fits.batch.families, fits.sums, fits.batch.overall
    m, n_pairs = len(counts.type_counts), len(counts.pairs)
    start, transitions = sums.start[rows, :, 0], sums.transitions[steps, :, :, 0][order]
    # Σ γ by type: at first events, and at the later events of all steps.
    occupancy, into = start[:-1].copy(), transitions.sum(axis=1)
    np.add.at(occupancy, counts.pairs[:, 1], into[:n_pairs])
    occupancy += into[n_pairs + m : n_pairs + 2 * m]
    locations = [fits.tables.emission[rows, first, :, 0] for first in features_of(families)[:, FIRST]]
    return Statistics(
        counts=counts,
        log_likelihood=float(fits.outcome.log_likelihood[b]),
        start=start,
        first_seen=sums.first_seen[rows, :, 0],
        occupancy=occupancy,
        transitions=transitions[:n_pairs],
        moments=around_means(families, sums.moments[rows, ..., 0], locations),
        custom=fits.custom_stats,
        overall=[
            (Moments(*(table[b : b + 1, k] for table in moments)), largest[b : b + 1, k])
            for k in range(len(families))
        ],
    )


def _chain(fits: Fits, g: int, order: Any) -> EventChain:
    """The event chain of a group, with its pairs sorted."""
    chain, span = fits.batch.event_chain, fits.batch.spans[g]
    start, pair_prob = chain.known()
    types, pairs = slice(span[ROW], span[ROW + 1] - 1), slice(span[PAIR], span[PAIR + 1])
    own = pair_prob[pairs] if fits.batch.in_order else pair_prob[pairs][order[: span[PAIR + 1] - span[PAIR]]]
    return EventChain(chain.prob[types], chain.leaving[types], chain.entering[types], start[types], own)


def _part(fits: Fits, b: int) -> tuple[TypeCounts, slice, slice, Any]:
    """The counts of a model with pairs sorted, its rows and steps, and the order that sorts its steps."""
    counts, span = fits.batch.counts(int(fits.batch.group[b])), fits.model_spans[b]
    n_pairs, n_steps = len(counts.pairs), len(counts.pairs) + 2 * len(counts.type_counts) + 1
    rows, steps = slice(span[ROW], span[ROW + 1]), slice(span[STEP], span[STEP] + n_steps)
    if fits.batch.in_order:
        return counts, rows, steps, slice(None)
    order = np.argsort(counts.pairs[:, 0] * len(counts.type_counts) + counts.pairs[:, 1])
    ordered = replace(counts, pairs=counts.pairs[order], pair_counts=counts.pair_counts[order])
    return ordered, rows, steps, np.concatenate([order, np.arange(n_pairs, n_steps)])
