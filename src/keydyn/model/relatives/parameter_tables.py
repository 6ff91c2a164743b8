"""Parameter tables, the form in which the kernels take a relative, and expectation–maximisation over them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.engine.layout import Walk
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.families.family import Emission, Family, Stats
from keydyn.model.fit.algorithm import GOES_ON, REASONS, why_stop
from keydyn.model.fit.fits import Iteration
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.from_data import Moments, displacements, least_scale, moments_by
from keydyn.model.theta.from_data import start_emission as spread_emission
from keydyn.model.theta.lattice import StatePosterior, log_densities
from keydyn.model.theta.marginals import normalised

Floored = list[Truths]


@dataclass(frozen=True)
class Training:
    """Training sequences and the tables that each event uses; built once per fit.

    Attributes
    ----------
    X : (N, K); offsets : (S + 1,); weights : (S,) one per sequence; families : one per feature
    rows : (N,) the emission table of each event; steps : (N,) the transition table of the step to it
    last : (N, K) the last values seen before each event
    labels : (N,) the state that each event's label names, −1 if it has none; None without labels
    names : the label of each state, if there are labels
    """

    X: Floats
    offsets: Integers
    weights: Floats
    families: tuple[Family, ...]
    rows: Integers
    steps: Integers
    last: Floats
    labels: Integers | None = None
    names: tuple[Any, ...] = ()

    @cached_property
    def event_weights(self) -> Floats:
        """The weight of each event, (N, 1)."""
        return np.repeat(self.weights, np.diff(self.offsets))[:, None]

    @cached_property
    def working(self) -> list[Floats]:
        """Each feature on its family's working scale, (N,)."""
        return [family.working(self.X[:, k]) for k, family in enumerate(self.families)]

    @cached_property
    def overall(self) -> list[tuple[Moments, Floats]]:
        """Moments of each feature over all events, on its working scale, and its largest |x|."""
        everywhere, weights = np.zeros(len(self.X), dtype=np.int64), self.event_weights[:, 0]
        return [
            (moments_by(everywhere, 1, weights, working), np.nanmax(np.abs(self.X[:, [k]]), axis=0))
            for k, working in enumerate(self.working)
        ]

    @cached_property
    def last_working(self) -> Floats:
        """The last values on their families' working scales, (K, N)."""
        return np.stack([family.working(self.last[:, k]) for k, family in enumerate(self.families)])

    def least_scale(self, feature: int, settings: FitSettings) -> float:
        """The scale floor of a feature's emission."""
        return float(least_scale(self.families[feature], *self.overall[feature], settings.min_scale)[0])


@dataclass(frozen=True)
class ContextTables:
    """θ as tables of which each event uses one row.

    Attributes
    ----------
    startprob : (M,) π[j]
    transmat : (S, M, M) a[i, j | s], one matrix per transition context
    emission : one `Emission` per feature, parameters (R, M), one row per emission context
    """

    startprob: Floats
    transmat: Floats
    emission: list[Emission]

    @property
    def n_states(self) -> int:
        return len(self.startprob)

    @property
    def emission_tables(self) -> list[Emission]:
        return self.emission

    def tables_for(self, last: Floats) -> ContextTables:
        """The tables for events with these last values; here they do not depend on them."""
        return self

    def lattice(self, evidence: Training, floor: float | None) -> Lattice:
        """The lattice of the training events."""
        tables = self.tables_for(evidence.last)
        log_density = log_densities(tables, evidence.X, evidence.rows, floor)
        factor = self.log_factor(evidence.labels)
        if factor is not None:
            log_density += factor
        return lattice_of(log_density, evidence.offsets, self.startprob, evidence.steps, tables.transmat)

    def log_factor(self, labels: Integers | None) -> Floats | None:
        """The logarithm of an additional factor of each state's density, (N, M); None here."""
        return None

    def maximised(
        self, evidence: Training, posterior: StatePosterior, settings: FitSettings
    ) -> tuple[Self, Floored]:
        """The M-step: shares of γ and ξ in each table, and the families' updates of emissions.

        Parameters without mass do not change. Also returns where the scale floor acted.
        """
        weighted, startprob = posterior.states, self.startprob
        if "start" not in settings.fixed:
            startprob = start_update(weighted, evidence, settings)
        transmat = self.transmat
        if "transitions" not in settings.fixed:
            expected = np.maximum(posterior.transitions, settings.count_floor)
            total = expected.sum(axis=-1, keepdims=True)
            transmat = np.divide(expected, total, out=transmat.copy(), where=total > 0)
        emission = list(self.emission)
        floored = [np.zeros((n_rows(e), self.n_states), dtype=bool) for e in emission]
        if "emission" not in settings.fixed:
            for k, e in enumerate(self.emission):
                stats = self._statistics(evidence, weighted, k)
                least = evidence.least_scale(k, settings)
                params, floored[k] = e.distribution.update(stats, e.params, least, settings.count_floor)
                emission[k] = e.replace(params)
        return replace(self, startprob=startprob, transmat=transmat, emission=emission), floored

    def pooled_emission(self, evidence: Training, posterior: StatePosterior) -> list[Emission]:
        """One distribution per state with contexts integrated out, weighted by how often they occurred."""
        pooled = []
        for k, e in enumerate(self.emission):
            mass = e.distribution.mass(self._statistics(evidence, posterior.states, k))
            shares = normalised(mass.T).T
            pooled.append(e.replace(e.distribution.marginal(e.params, shares)))
        return pooled

    def with_pooled(self, evidence: Training, posterior: StatePosterior, rows: bool, steps: bool) -> Self:
        """The tables with a pooled last row, which also replaces the rows of contexts without any event.

        `rows` and `steps` say whether to do this for the emission and the transition tables.
        """
        emission, transmat = list(self.emission), self.transmat
        if rows:
            for k, together in enumerate(self.pooled_emission(evidence, posterior)):
                mass = self.emission[k].distribution.mass(self._statistics(evidence, posterior.states, k))
                used = mass.sum(axis=1, keepdims=True) > 0
                params = {
                    name: np.vstack([np.where(used, values, together.params[name]), together.params[name]])
                    for name, values in self.emission[k].params.items()
                }
                emission[k] = self.emission[k].replace(params)
        if steps:
            used = posterior.transitions.sum(axis=(1, 2), keepdims=True) > 0
            together_steps = normalised(posterior.transitions.sum(axis=0))
            transmat = np.concatenate([np.where(used, transmat, together_steps), together_steps[None]])
        return replace(self, emission=emission, transmat=transmat)

    def reordered(self, order: Integers) -> Self:
        """θ with its states renumbered."""
        return replace(
            self,
            startprob=np.ascontiguousarray(self.startprob[order]),
            transmat=np.ascontiguousarray(self.transmat[..., order[:, None], order]),
            emission=reordered_emission(self.emission, order),
        )

    def _statistics(self, evidence: Training, weighted: Floats, feature: int) -> Stats:
        e = self.emission[feature]
        return e.distribution.statistics(evidence.X[:, feature], weighted, evidence.rows, n_rows(e), e.params)


def start_update(weighted: Floats, evidence: Training, settings: FitSettings) -> Floats:
    """π: shares of the states at the sequences' first events."""
    first = weighted[evidence.offsets[:-1]].sum(axis=0)
    return normalised(np.maximum(first, settings.count_floor))


def start_emission(
    evidence: Training, feature: int, n_tables: int, settings: FitSettings, jitter: np.random.Generator | None
) -> Emission:
    """Start emissions spread around each row's own mean, as a POHMM's are around each event type's."""
    family, (overall, _) = evidence.families[feature], evidence.overall[feature]
    rows = evidence.rows if n_tables > 1 else np.zeros(len(evidence.X), dtype=np.int64)
    by_row = moments_by(rows, n_tables, evidence.event_weights[:, 0], evidence.working[feature])
    floor = np.full(n_tables, evidence.least_scale(feature, settings))
    of_all = Moments(*(np.repeat(values, n_tables) for values in overall))
    shift = displacements(feature, settings, jitter)
    return Emission(family, spread_emission(family, by_row, of_all, floor, shift, settings))


def uniform_tables(
    evidence: Training, n_tables: int, n_steps: int, settings: FitSettings, jitter: np.random.Generator | None
) -> ContextTables:
    """The start of EM: uniform start and transition probabilities, and spread emissions."""
    n_states = settings.n_states
    return ContextTables(
        np.full(n_states, 1.0 / n_states),
        np.full((n_steps, n_states, n_states), 1.0 / n_states),
        [start_emission(evidence, k, n_tables, settings, jitter) for k in range(evidence.X.shape[1])],
    )


def lattice_of(
    log_density: Floats, offsets: Integers, startprob: Floats, steps: Integers, transmat: Floats
) -> Lattice:
    """The lattice for the kernels; all sequences use the same start table."""
    start_index = np.zeros(len(offsets) - 1, dtype=np.int64)
    return Lattice.of(log_density, Walk.along(offsets, start_index, startprob[None], steps, transmat))


def reordered_emission(emission: list[Emission], order: Integers) -> list[Emission]:
    return [
        e.replace({k: np.ascontiguousarray(v[..., order]) for k, v in e.params.items()}) for e in emission
    ]


def n_rows(emission: Emission) -> int:
    """The number of rows of an emission's tables."""
    return len(next(iter(emission.params.values())))


@dataclass(frozen=True)
class Result:
    """The result of EM from one start.

    Attributes
    ----------
    theta : the parameters; posterior : that of the last E-step, under `theta` unless `max_iter` was reached
    log_likelihood : that of `theta`; history : (n_iter,) log-likelihood at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step
    """

    theta: ContextTables
    posterior: StatePosterior
    log_likelihood: float
    history: Floats
    stop_reason: str
    floored: Floored


def climb(start: ContextTables, evidence: Training, settings: FitSettings, number: int = 0) -> Result:
    """Run EM until the log-likelihood gains less than `tol`, or another rule stops it."""
    theta = start
    history: list[float] = []
    floored: Floored = [np.zeros(len(start.startprob), dtype=bool) for _ in start.emission]
    for _ in range(settings.max_iter):
        lattice = theta.lattice(evidence, settings.density_floor)
        posterior = lattices.posterior(lattice, evidence.weights)
        lattices.check_posterior(posterior, lattice)
        history.append(float(evidence.weights @ posterior.scores))
        reason = _why_stop(history, settings, number)
        if reason is not None:
            return Result(theta, posterior, history[-1], np.array(history), reason, floored)
        theta, floored = theta.maximised(evidence, posterior, settings)
    final = lattices.filtered(theta.lattice(evidence, settings.density_floor))[1]
    total = float(evidence.weights @ lattices.per_sequence(final, evidence.offsets))
    return Result(theta, posterior, total, np.array(history), "max_iter", floored)


def _why_stop(history: list[float], settings: FitSettings, number: int) -> str | None:
    gain = history[-1] - history[-2] if len(history) > 1 else np.inf
    if settings.verbose:
        print(
            f"start {number}, iteration {len(history)}: log-likelihood {history[-1]:.6f}, gain {gain:.3g}",
            file=sys.stderr,
        )
    if settings.callback is not None and settings.callback(
        Iteration(len(history), history[-1], gain, number)
    ):
        return "callback"
    reason = why_stop(history[-1], gain, settings.tol)
    return None if reason == GOES_ON else REASONS[reason]
