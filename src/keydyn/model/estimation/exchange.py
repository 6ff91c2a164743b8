"""From sequences, settings and parameters to the arrays of a compiled fit, and back."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from keydyn.model import initialize, vocabulary
from keydyn.model.arrays import Floats, Integers, plain
from keydyn.model.emissions import Emission, Family, Params, Stats
from keydyn.model.estimation import algorithm
from keydyn.model.estimation.cold_start import Outcome, fit_cold
from keydyn.model.estimation.indexing import places_among, seen_types
from keydyn.model.estimation.shared_events import fit_shared
from keydyn.model.estimation.smoothing import kept_shares, transition_weights
from keydyn.model.estimation.tables import (
    Basis,
    Density,
    Events,
    Rules,
    Sums,
    Tables,
    carve,
    carve_sums,
    new_scratch,
    room,
)
from keydyn.model.families import COMPILED, Student
from keydyn.model.marginals import event_chain
from keydyn.model.parameters import EventChain, Marginal, Parameters
from keydyn.model.result import FitResult
from keydyn.model.sequences import Sequences
from keydyn.model.settings import Settings
from keydyn.model.smoothing import as_number
from keydyn.model.statistics import Counts, Data, Statistics
from keydyn.model.vocabulary import SINGLE_TYPE


def is_covered(settings: Settings, families: list[Family]) -> bool:
    """Whether a fit with these needs nothing but compiled steps."""
    return (
        settings.callback is None
        and not settings.verbose
        and all(type(family) in COMPILED for family in families)
        and not any(isinstance(family, Student) and family.estimate_df for family in families)
    )


def fit_sequences(
    sequences: Sequences, weights: Floats, families: list[Family], settings: Settings
) -> tuple[FitResult, Floats] | None:
    """A fit from data alone, and Π[j | ω]; None if it is for the open loop to say what is wrong.

    No weight is zero.
    """
    rules = rules_of(settings, tuple(families))
    arrays = (plain(sequences.X), plain(sequences.codes), plain(sequences.offsets), weights)
    outcome = fit_cold(*arrays, len(sequences.event_types), rules)
    if outcome.reason < 0:
        return None
    types = sequences.event_types[outcome.seen] if len(outcome.seen) else np.array([SINGLE_TYPE])
    if len(outcome.seen) == 1 and vocabulary.is_single(types):
        return None
    return result_of_outcome(outcome, types, weights, families, settings, rules)


def fit_shared_events(
    X: Floats, like: Sequences, families: list[Family], settings: Settings
) -> list[tuple[FitResult, Floats] | None]:
    """Fits from data alone to values (B, N, K) that go with the same event sequences, those of `like`.

    Two states, normal or log-normal features, every value there; all events have a type, or none.
    """
    rules = rules_of(settings, tuple(families))
    seen = seen_types(like.codes, len(like.event_types))
    codes = places_among(like.codes, seen, len(like.event_types))
    weights, types = np.ones(len(like)), like.event_types[seen] if len(seen) else np.array([SINGLE_TYPE])
    found = fit_shared(X, codes, plain(like.offsets), weights, rules)
    n_pairs = found.pairs.shape[1]
    results: list[tuple[FitResult, Floats] | None] = []
    for b in range(len(X)):
        if found.reason[b] < 0:
            results.append(None)
            continue
        outcome = Outcome(
            int(found.reason[b]),
            float(found.log_likelihood[b]),
            found.history[b, : found.n_iter[b]].copy(),
            seen,
            found.pairs,
            n_pairs,
            found.memory[b],
            found.floored[b],
        )
        results.append(result_of_outcome(outcome, types, weights, families, settings, rules))
    return results


def fit(data: Data, settings: Settings, start: Parameters) -> FitResult | None:
    """Algorithm 1 from `start`; None if some sequence has no probability at all under the parameters."""
    families = [e.distribution for e in start.emission]
    rules = rules_of(settings, tuple(families))
    # Parameters that were given may have other degrees of freedom than the family.
    degrees = [e.params["df"][0, 0] if "df" in e.params else np.inf for e in start.emission]
    rules = rules._replace(density=rules.density._replace(df=np.array(degrees)))
    counts, _ = data.counts.aligned(start.event_types, start.pairs)
    chain = event_chain(counts)
    events, before, after = events_of(data, start)
    tables = start.tables()._replace(transmat=start.transmat_of(before, after))
    n_features, n_types, n_states = len(families), start.n_types, start.n_states
    shape = (n_features, n_types, n_states, len(start.pairs), len(before))
    sums, _ = carve_sums(np.zeros(room(shape)), shape, 0)
    scratch = new_scratch(len(events.weights), len(events.codes), n_features, n_types, n_states)
    basis = basis_of(data, counts, chain, settings, rules, before, after)
    reason, log_likelihood, history = algorithm.run(events, basis, rules, tables, sums, scratch)
    if reason < 0:
        return None
    parameters = start
    if len(history) > 1 or algorithm.REASONS[reason] == "max_iter":
        parameters = parameters_of(
            tables, start.event_types, start.pairs, chain, families, rules.density.df, settings
        )
    statistics = statistics_of(sums, counts, data.overall, history[-1], rules.density.df)
    floored = list(tables.floored)
    return FitResult(parameters, statistics, log_likelihood, history, algorithm.REASONS[reason], floored)


@lru_cache(maxsize=64)
def rules_of(settings: Settings, families: tuple[Family, ...]) -> Rules:
    """Settings as numbers."""
    smoothing = settings.smoothing
    displacements = np.tile(initialize.displacements(settings.n_states, settings.spread), (len(families), 1))
    if settings.spread_features == "leading":
        displacements[np.arange(len(families)) != settings.leading_feature] = 0.0
    return Rules(
        Density(
            np.array([family.df if isinstance(family, Student) else np.inf for family in families]),
            np.array([1.0 if family.on_log_scale else 0.0 for family in families]),
            -math.inf if settings.density_floor is None else math.log(settings.density_floor),
        ),
        math.nan if settings.min_scale is None else settings.min_scale,
        settings.count_floor,
        "start" in settings.fixed,
        "transitions" in settings.fixed,
        "emission" in settings.fixed,
        settings.marginals == "exact",
        settings.start_estimate == "first_occurrence",
        as_number(smoothing.start),
        as_number(smoothing.transitions),
        as_number(smoothing.emission),
        smoothing.published,
        displacements,
        settings.spread_scale == "type",
        settings.tol,
        settings.max_iter,
    )


def events_of(data: Data, start: Parameters) -> tuple[Events, Integers, Integers]:
    """The training data, and the types of each row of the transition table: the pairs, then unknown ones."""
    index, m, known = data.index, start.n_types, slice(data.index.n_known)
    unknown = slice(index.n_known, None)
    n_unknown = len(index.before) - index.n_known
    rows = np.concatenate(
        [
            start.find_pairs(index.before[known] * m + index.after[known]),
            len(start.pairs) + np.arange(n_unknown),
        ]
    )
    before = np.concatenate([start.pairs[:, 0], index.before[unknown]])
    after = np.concatenate([start.pairs[:, 1], index.after[unknown]])
    steps = rows[index.trans_index] if len(rows) else np.zeros_like(index.codes)
    x = np.empty(data.X.shape)
    for k, family in enumerate(data.families):
        x[:, k] = family.working(data.X[:, k])
    own = (plain(index.codes), plain(index.offsets), steps, plain(data.weights))
    return Events(*own, x, data.first_occurrences), before, after


def basis_of(
    data: Data,
    counts: Counts,
    chain: EventChain,
    settings: Settings,
    rules: Rules,
    before: Integers,
    after: Integers,
) -> Basis:
    """The event chain, the smoothing weights and the scale floors."""
    starts = counts.behind_start(settings.start_estimate)
    frequencies = (counts.pair, chain.leaving, chain.entering)
    return Basis(
        before,
        after,
        chain.known()[1],
        chain.leaving,
        chain.prob,
        kept_shares(rules.smooth_start, starts),
        kept_shares(rules.smooth_emission, counts.types),
        *transition_weights(rules.smooth_transitions, rules.published, before, after, *frequencies),
        np.array(
            [
                initialize.least_scale(family, overall, settings.min_scale)
                for family, overall in zip(data.families, data.overall, strict=True)
            ]
        ),
    )


def result_of_outcome(
    outcome: Outcome,
    types: vocabulary.Types,
    weights: Floats,
    families: list[Family],
    settings: Settings,
    rules: Rules,
) -> tuple[FitResult, Floats]:
    """A compiled fit from data alone as a result, and Π[j | ω]."""
    shape = (len(families), len(types), settings.n_states, outcome.n_pairs, outcome.pairs.shape[1])
    fit = carve(outcome.memory, shape, outcome.pairs[0], outcome.pairs[1], outcome.floored)
    tables, sums, basis, counted, of_all, stationary = fit
    pairs = np.ascontiguousarray(outcome.pairs[:, : outcome.n_pairs].T)
    chain = EventChain(basis.prob, basis.leaving, counted.entering, counted.startprob, basis.pair_prob)
    counts = Counts(types, pairs, float(weights.sum()), counted.types, counted.starts, counted.pair)
    overall: list[Stats] = [
        {"count": row[0:1, None], "mean": row[1:2, None], "square": row[2:3, None], "largest": row[3]}
        for row in of_all
    ]
    result = FitResult(
        parameters_of(tables, types, pairs, chain, families, rules.density.df, settings),
        statistics_of(sums, counts, overall, outcome.history[-1], rules.density.df),
        outcome.log_likelihood,
        outcome.history,
        algorithm.REASONS[outcome.reason],
        list(tables.floored),
    )
    return result, stationary


def parameters_of(
    tables: Tables,
    types: vocabulary.Types,
    pairs: Integers,
    chain: EventChain,
    families: list[Family],
    df: Floats,
    settings: Settings,
) -> Parameters:
    """The tables as parameters."""
    m = len(types)
    emission, of_all = [], []
    for k, family in enumerate(families):
        loc, scale = tables.loc[k], tables.scale[k]
        own: Params = {"loc": loc[:m], "scale": scale[:m]}
        everywhere: Params = {"loc": loc[m], "scale": scale[m]}
        if "df" in family.parameters:
            own["df"], everywhere["df"] = np.full(own["loc"].shape, df[k]), np.full(loc.shape[1], df[k])
        emission.append(Emission(family, own))
        of_all.append(Emission(family, everywhere))
    return Parameters(
        types,
        tables.startprob[:m],
        pairs,
        tables.transmat[: len(pairs)],
        emission,
        chain,
        Marginal(tables.startprob[m], tables.of_all, tables.from_type, tables.to_type, of_all),
        settings.smoothing,
    )


def statistics_of(
    sums: Sums, counts: Counts, overall: list[Stats], log_likelihood: float, df: Floats
) -> Statistics:
    """The sums of the last expectation step as statistics."""
    emission: list[Stats] = []
    for k, degrees in enumerate(df):
        stats = {"count": sums.mass[k], "mean": sums.mean[k], "square": sums.square[k]}
        if not math.isinf(degrees):
            half = 0.5 * (degrees + 1.0)
            stats["precision"] = sums.precision[k]
            stats["log_precision"] = sums.log_precision[k] + sums.mass[k] * (
                special.digamma(half) - math.log(half)
            )
        emission.append(stats)
    return Statistics(
        counts,
        float(log_likelihood),
        sums.start,
        sums.start_all,
        sums.first_occurrence,
        sums.occupancy,
        sums.transitions[: len(counts.pair)],
        emission,
        overall,
    )
