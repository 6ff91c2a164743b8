"""Estimation: the modified Baum–Welch of Algorithm 1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keydyn.model.ask import lattice
from keydyn.model.data.settings import Settings
from keydyn.model.data.smoothing_rules import as_number, normalised
from keydyn.model.estimation import exchange
from keydyn.model.estimation.algorithm import ROUNDING
from keydyn.model.estimation.formulas import update_start, update_transitions
from keydyn.model.estimation.smoothing import blend_transitions, kept_shares, transition_weights
from keydyn.model.families.family import Emission
from keydyn.model.fit.result import Estimates, FitResult
from keydyn.model.fit.statistics import Counts, Data, Statistics, expectation
from keydyn.model.theta import start_values as initialize
from keydyn.model.theta.marginals import event_chain, exact_marginal, printed_marginal
from keydyn.model.theta.parameters import Parameters


@dataclass(frozen=True)
class Iteration:
    """What a callback is told: the number of the E-step, its log-likelihood and the gain over the last."""

    number: int
    log_likelihood: float
    gain: float
    start: int


def fit(data: Data, settings: Settings, start: Parameters, number: int = 0) -> FitResult:
    """A fit from these parameters: compiled where all of it can be, else by the loop below."""
    if start.marginal is not None and exchange.is_covered(settings, data.families):
        result = exchange.fit(data, settings, start)
        if result is not None:
            return result
    return open_loop(data, settings, start, number)


def open_loop(data: Data, settings: Settings, start: Parameters, number: int = 0) -> FitResult:
    """Algorithm 1: expectation → maximisation → smoothing, until the log-likelihood gains less than `tol`."""
    parameters = start
    history: list[float] = []
    floored = [np.zeros(start.startprob.shape, dtype=bool) for _ in start.emission]
    for _ in range(settings.max_iter):
        statistics = expectation(parameters, data, settings.density_floor)
        history.append(statistics.log_likelihood)
        stop_reason = _why_stop(history, settings, number)
        if stop_reason is not None:
            found = Estimates(parameters, statistics, floored)
            return FitResult(found, history[-1], np.array(history), stop_reason)
        parameters, floored = maximisation(statistics, parameters, settings)
        parameters = smooth(parameters, statistics.counts, settings)
    final = lattice.filtered(lattice.build(parameters, data.X, data.index, settings.density_floor))[1]
    log_likelihood = float(data.weights @ lattice.per_sequence(final, data.index.offsets))
    found = Estimates(parameters, statistics, floored)
    return FitResult(found, log_likelihood, np.array(history), "max_iter")


def fit_from_starts(data: Data, settings: Settings, generator: np.random.Generator) -> Iterator[FitResult]:
    """Runs from the observed start, then from jittered ones."""
    for number in range(settings.n_init):
        start = initialize.start_parameters(data, settings, generator if number else None)
        yield fit(data, settings, smooth(start, data.counts, settings), number)


def maximisation(
    statistics: Statistics, current: Parameters, settings: Settings
) -> tuple[Parameters, list[NDArray[np.bool_]]]:
    """The M-step (Eqs. 12, 14, 15) and the marginals of what it finds, nothing smoothed yet.

    What has no evidence stays as it is. Returns also where the scale floor acted.
    """
    counts, floor = statistics.counts, settings.count_floor
    start_all = normalised(np.maximum(statistics.start_all, floor))
    startprob = current.startprob
    if "start" not in settings.fixed:
        startprob = startprob.copy()
        first_occurrence = settings.start_estimate == "first_occurrence"
        expected = statistics.first_occurrence if first_occurrence else statistics.start
        update_start(expected, start_all, floor, startprob)
    transmat = current.transmat
    if "transitions" not in settings.fixed:
        transmat = transmat.copy()
        update_transitions(statistics.transitions, floor, transmat)
    emission, floored = current.emission, [np.zeros(startprob.shape, dtype=bool) for _ in current.emission]
    if "emission" not in settings.fixed:
        emission, floored = _emission_update(statistics, current, settings)
    chain = event_chain(counts)
    if settings.marginals == "exact":
        masses = [e.distribution.mass(stats) for e, stats in zip(emission, statistics.emission, strict=True)]
        marginal = exact_marginal(start_all, counts.pairs, statistics.transitions, emission, masses)
    else:
        marginal = printed_marginal(start_all, counts.pairs, transmat, emission, chain)
    parameters = Parameters(
        current.event_types, startprob, counts.pairs, transmat, emission, chain, marginal, settings.smoothing
    )
    return parameters, floored


def smooth(parameters: Parameters, counts: Counts, settings: Settings) -> Parameters:
    """Regularisation (Eqs. 32–36): all parameters towards the same, unsmoothed marginals, in one pass."""
    smoothing, marginal = parameters.smoothing, parameters.known_marginal()
    if not smoothing.acts or parameters.n_types == 1:
        return parameters
    startprob, transmat, emission = parameters.startprob, parameters.transmat, parameters.emission
    if "start" not in settings.fixed:
        keep = kept_shares(as_number(smoothing.start), counts.behind_start(settings.start_estimate))[:, None]
        startprob = keep * startprob + (1.0 - keep) * marginal.startprob
    if "transitions" not in settings.fixed and smoothing.transitions is not None:
        before, after = np.ascontiguousarray(counts.pairs.T)
        weights = transition_weights(
            as_number(smoothing.transitions),
            smoothing.published,
            before,
            after,
            counts.pair,
            counts.leaving,
            counts.entering,
        )
        transmat = transmat.copy()
        blend_transitions(*weights, before, after, marginal.transmat_from, marginal.transmat_to, transmat)
    if "emission" not in settings.fixed:
        keep = kept_shares(as_number(smoothing.emission), counts.types)[:, None]
        emission = [
            e.replace(e.distribution.interpolate(e.params, of_all.params, keep))
            for e, of_all in zip(emission, marginal.emission, strict=True)
        ]
    return replace(parameters, startprob=startprob, transmat=transmat, emission=emission)


def _emission_update(
    statistics: Statistics, current: Parameters, settings: Settings
) -> tuple[list[Emission], list[NDArray[np.bool_]]]:
    """b[j | ω] (Eq. 15; for the log-normal Eqs. 17–18, corrected), feature by feature."""
    emission, floored = [], []
    for e, stats, overall in zip(current.emission, statistics.emission, statistics.overall, strict=True):
        floor = initialize.least_scale(e.distribution, overall, settings.min_scale)
        params, acted = e.distribution.update(stats, e.params, floor, settings.count_floor)
        emission.append(e.replace(params))
        floored.append(acted)
    return emission, floored


def _why_stop(history: list[float], settings: Settings, number: int) -> str | None:
    gain = history[-1] - history[-2] if len(history) > 1 else np.inf
    if settings.verbose:
        start = f"start {number}, " if settings.n_init > 1 else ""
        print(
            f"{start}iteration {len(history)}: log-likelihood {history[-1]:.6f}, gain {gain:.3g}",
            file=sys.stderr,
        )
    if settings.callback is not None:
        told = Iteration(len(history), history[-1], gain, number)
        if settings.callback(told):
            return "callback"
    if gain < -ROUNDING * (1.0 + abs(history[-1])):
        return "decrease"
    if gain < settings.tol or gain == 0.0:
        return "tol"
    return None
