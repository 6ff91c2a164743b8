"""From sequences, settings and parameters to the arrays of a compiled fit, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from keydyn.arrays import Floats, Integers, plain
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.settings import Settings
from keydyn.model.data.smoothing_rules import as_number
from keydyn.model.estimation import algorithm
from keydyn.model.estimation.cold_start import prepare, run_prepared
from keydyn.model.estimation.packed import Packed, parameters_of, statistics_of
from keydyn.model.estimation.several import FLOORED, HISTORY, MEMORY, NUMBERS, Fits, fit_several
from keydyn.model.estimation.shared_events import fit_shared
from keydyn.model.estimation.smoothing import kept_shares, transition_weights
from keydyn.model.estimation.tables import Basis, Density, Events, Rules, carve, room
from keydyn.model.families import COMPILED, Student
from keydyn.model.families.family import Family
from keydyn.model.fit.result import Estimates, FitResult
from keydyn.model.fit.statistics import Counts, Data
from keydyn.model.theta import start_values as initialize
from keydyn.model.theta.marginals import event_chain
from keydyn.model.theta.parameters import EventChain, Parameters


def is_covered(settings: Settings, families: list[Family]) -> bool:
    """Whether a fit with these needs nothing but compiled steps."""
    return (
        settings.callback is None
        and not settings.verbose
        and all(type(family) in COMPILED for family in families)
        and not any(isinstance(family, Student) and family.estimate_df for family in families)
    )


def fit_each(
    items: Sequence[Sequences], weights: Sequence[Floats], families: list[Family], settings: Settings
) -> list[FitResult | None]:
    """Fits from data alone, each to its own item; None if it is for the open loop to say what is wrong.

    No weight is zero.
    """
    rules = rules_of(settings, tuple(families))
    lengths = np.concatenate([item.lengths for item in items])
    found = fit_several(
        plain(np.concatenate([item.X for item in items]) if len(items) > 1 else items[0].X),
        np.concatenate([item.codes for item in items]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate(weights),
        np.concatenate([[0], np.cumsum([len(item) for item in items])]),
        np.array([len(item.event_types) for item in items]),
        rules,
    )
    return [
        _one_of(found, b, item.event_types, float(own.sum()), families, settings, rules)
        for b, (item, own) in enumerate(zip(items, weights, strict=True))
    ]


def _one_of(
    found: Fits,
    b: int,
    types: vocabulary.Types,
    n_sequences: float,
    families: list[Family],
    settings: Settings,
    rules: Rules,
) -> FitResult | None:
    """The result of one of several fits, taken out of their arrays; None if it has none."""
    reason = int(found.reason[b])
    if reason < 0:
        return None
    (memory, number, floored, began), ends = found.places[b].tolist(), found.places[b + 1].tolist()
    n_seen, n_pairs = int(found.n_seen[b]), int(found.n_pairs[b])
    m = max(n_seen, 1)
    numbers = found.numbers[number : ends[NUMBERS]].copy()
    seen, pairs = numbers[:n_seen], numbers[n_seen:].reshape(2, -1)
    if n_seen and vocabulary.is_single(types[seen]):
        return None
    history = found.history[began : ends[HISTORY]].copy()
    packed = Packed(
        found.memory[memory : ends[MEMORY]].copy(),
        pairs,
        found.floored[floored : ends[FLOORED]].reshape(len(families), m, -1).copy(),
        (len(families), m, settings.n_states, n_pairs, pairs.shape[1]),
        seen,
        types,
        bool(found.in_order[b]),
        n_sequences,
        float(history[-1]),
        families,
        settings,
        rules,
    )
    log_likelihood = float(found.log_likelihood[b])
    return FitResult(packed, log_likelihood, history, algorithm.REASONS[reason])


def fit_shared_events(
    X: Floats, like: Sequences, families: list[Family], settings: Settings
) -> list[FitResult | None]:
    """Fits from data alone to values (B, N, K) that go with the same event sequences, those of `like`.

    Two states, every value there; all events have a type, or none.
    """
    rules = rules_of(settings, tuple(families))
    codes, offsets, weights = plain(like.codes), plain(like.offsets), np.ones(len(like))
    first = prepare(X[0], codes, offsets, weights, len(like.event_types), rules)
    n_types = max(len(first.seen), 1)
    shape = (len(families), n_types, settings.n_states, first.n_pairs, first.n_pairs)
    found = fit_shared(X, offsets, weights, first, rules)
    results: list[FitResult | None] = []
    for b, (reason, n_iter) in enumerate(zip(found.reason.tolist(), found.n_iter.tolist(), strict=True)):
        if reason < 0:
            results.append(None)
            continue
        history = found.history[b, :n_iter].copy()
        packed = Packed(
            found.memory[b].copy(),
            first.pairs,
            found.floored[b].copy(),
            shape,
            first.seen,
            like.event_types,
            first.in_order,
            float(len(like)),
            float(history[-1]),
            families,
            settings,
            rules,
        )
        reached = float(found.log_likelihood[b])
        results.append(FitResult(packed, reached, history, algorithm.REASONS[reason]))
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
    reason, log_likelihood, history = run_prepared(events, pairs, memory, floored, shape, rules)
    if reason < 0:
        return None
    parameters = start
    if len(history) > 1 or algorithm.REASONS[reason] == "max_iter":
        known = (start.event_types, start.pairs, chain)
        parameters = parameters_of(parts.tables, *known, families, rules.density.df, settings)
    statistics = statistics_of(parts.sums, counts, data.overall, history[-1], rules.density.df)
    estimates = Estimates(parameters, statistics, list(floored))
    return FitResult(estimates, log_likelihood, history, algorithm.REASONS[reason])


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
