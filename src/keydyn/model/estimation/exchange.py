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
from keydyn.model.estimation.cold_start import prepare, run_prepared
from keydyn.model.estimation.shared_events import fit_shared
from keydyn.model.estimation.smoothing import kept_shares, transition_weights
from keydyn.model.estimation.tables import Basis, Density, Events, Fit, Rules, Sums, Tables, carve, room
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
    X, source, offsets = plain(sequences.X), plain(sequences.codes), plain(sequences.offsets)
    data = prepare(X, source, offsets, weights, len(sequences.event_types), rules)
    types = sequences.event_types[data.seen] if len(data.seen) else np.array([SINGLE_TYPE])
    if not data.usable or (len(data.seen) and vocabulary.is_single(types)):
        return None
    shape = (len(families), len(types), settings.n_states, data.n_pairs, data.pairs.shape[1])
    floored = np.zeros((len(families), len(types), settings.n_states), dtype=np.bool_)
    events = (data.codes, offsets, data.steps, weights, data.x, data.first_seen)
    outcome = run_prepared(*events, data.pairs, data.memory, floored, shape, rules)
    if outcome[0] < 0:
        return None
    parts = carve(data.memory, shape, data.pairs[0], data.pairs[1], floored)
    return result_of(*outcome, parts, data.in_order, types, weights, families, settings, rules)


def fit_shared_events(
    X: Floats, like: Sequences, families: list[Family], settings: Settings
) -> list[tuple[FitResult, Floats] | None]:
    """Fits from data alone to values (B, N, K) that go with the same event sequences, those of `like`.

    Two states, normal or log-normal features, every value there; all events have a type, or none.
    """
    rules = rules_of(settings, tuple(families))
    source, offsets, weights = plain(like.codes), plain(like.offsets), np.ones(len(like))
    data = [prepare(x, source, offsets, weights, len(like.event_types), rules) for x in X]
    one = data[0]
    types = like.event_types[one.seen] if len(one.seen) else np.array([SINGLE_TYPE])
    shape = (len(families), len(types), settings.n_states, one.n_pairs, one.n_pairs)
    floored = np.zeros((len(X), len(families), len(types), settings.n_states), dtype=np.bool_)
    memory = np.stack([each.memory for each in data])
    x = np.stack([each.x for each in data])
    events = (one.codes, offsets, one.steps, weights, x, one.first_seen)
    found = fit_shared(*events, one.pairs, memory, floored, shape, rules)
    results: list[tuple[FitResult, Floats] | None] = []
    for b, reason in enumerate(found.reason):
        if reason < 0:
            results.append(None)
            continue
        parts = carve(memory[b], shape, one.pairs[0], one.pairs[1], floored[b])
        outcome = (int(reason), float(found.log_likelihood[b]), found.history[b, : found.n_iter[b]].copy())
        results.append(result_of(*outcome, parts, one.in_order, types, weights, families, settings, rules))
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
    events, pairs = events_of(data, start)
    shape = (len(families), start.n_types, start.n_states, len(start.pairs), pairs.shape[1])
    memory, floored = np.zeros(room(shape)), np.zeros((len(families), *start.startprob.shape), dtype=np.bool_)
    parts = carve(memory, shape, pairs[0], pairs[1], floored)
    begun = start.tables()._replace(transmat=start.transmat_of(pairs[0], pairs[1]))
    for table, values in zip(parts.tables, begun, strict=True):
        table[:] = values
    for array, values in zip(
        parts.basis, basis_of(data, counts, chain, settings, rules, *pairs), strict=True
    ):
        array[:] = values
    reason, log_likelihood, history = run_prepared(*events, pairs, memory, floored, shape, rules)
    if reason < 0:
        return None
    parameters = start
    if len(history) > 1 or algorithm.REASONS[reason] == "max_iter":
        known = (start.event_types, start.pairs, chain)
        parameters = parameters_of(parts.tables, *known, families, rules.density.df, settings)
    statistics = statistics_of(parts.sums, counts, data.overall, history[-1], rules.density.df)
    floored_by_feature = list(floored)
    return FitResult(
        parameters, statistics, log_likelihood, history, algorithm.REASONS[reason], floored_by_feature
    )


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


def events_of(data: Data, start: Parameters) -> tuple[Events, Integers]:
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
    unlisted = np.stack([index.before[unknown], index.after[unknown]])
    pairs = np.ascontiguousarray(np.concatenate([start.pairs.T, unlisted], axis=1))
    steps = rows[index.trans_index] if len(rows) else np.zeros_like(index.codes)
    x = np.empty(data.X.shape)
    for k, family in enumerate(data.families):
        x[:, k] = family.working(data.X[:, k])
    own = (plain(index.codes), plain(index.offsets), steps, plain(data.weights))
    return Events(*own, x, data.first_occurrences), pairs


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


def result_of(
    reason: int,
    log_likelihood: float,
    history: Floats,
    parts: Fit,
    in_order: bool,
    types: vocabulary.Types,
    weights: Floats,
    families: list[Family],
    settings: Settings,
    rules: Rules,
) -> tuple[FitResult, Floats]:
    """A compiled fit from data alone as a result, and Π[j | ω]."""
    tables, sums, basis, counted, of_all, stationary = parts
    n_pairs = len(counted.pair)
    pairs = np.empty((n_pairs, 2), dtype=np.int64)
    pairs[:, 0], pairs[:, 1] = basis.before[:n_pairs], basis.after[:n_pairs]
    pair, pair_prob = counted.pair, basis.pair_prob
    if not in_order:
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        pairs, pair, pair_prob = pairs[order], pair[order], pair_prob[order]
        tables, sums = (
            tables._replace(transmat=tables.transmat[order]),
            sums._replace(transitions=sums.transitions[order]),
        )
    chain = EventChain(basis.prob, basis.leaving, counted.entering, counted.startprob, pair_prob)
    counts = Counts(types, pairs, float(weights.sum()), counted.types, counted.starts, pair)
    overall: list[Stats] = [
        {"count": row[0:1, None], "mean": row[1:2, None], "square": row[2:3, None], "largest": row[3]}
        for row in of_all
    ]
    result = FitResult(
        parameters_of(tables, types, pairs, chain, families, rules.density.df, settings),
        statistics_of(sums, counts, overall, history[-1], rules.density.df),
        log_likelihood,
        history,
        algorithm.REASONS[reason],
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
