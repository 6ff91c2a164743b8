"""From a model and its training data to the arrays of a compiled fit, and back."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from keydyn.model import initialize
from keydyn.model.arrays import Floats, Integers
from keydyn.model.emissions import Emission, Stats
from keydyn.model.estimation import algorithm
from keydyn.model.estimation.tables import (
    Chain,
    Events,
    Rules,
    Sums,
    Tables,
    new_scratch,
    new_sums,
)
from keydyn.model.families import LogNormal, LogStudent, Normal, Student
from keydyn.model.marginals import event_chain
from keydyn.model.parameters import EventChain, Marginal, Parameters
from keydyn.model.result import FitResult
from keydyn.model.settings import Settings
from keydyn.model.smoothing import kept_share, transition_weights
from keydyn.model.statistics import Counts, Data, Statistics

COMPILED_FAMILIES = (Normal, LogNormal, Student, LogStudent)


def is_covered(settings: Settings, start: Parameters) -> bool:
    """Whether a fit from here needs nothing but compiled steps."""
    families = [e.distribution for e in start.emission]
    return (
        settings.callback is None
        and not settings.verbose
        and start.marginal is not None
        # A family derived from these may differ in anything.
        and all(type(family) in COMPILED_FAMILIES for family in families)
        and not any(isinstance(family, Student) and family.estimate_df for family in families)
    )


def fit(data: Data, settings: Settings, start: Parameters) -> FitResult | None:
    """Algorithm 1 from `start`; None if some sequence has no probability at all under the parameters."""
    counts, _ = data.counts.aligned(start.event_types, start.pairs)
    chain = event_chain(counts)
    events, before, after = events_of(data, start)
    rules = rules_of(data, settings, start)
    tables = tables_of(start, before, after)
    n_types, n_states = start.n_types, start.n_states
    sums = new_sums(len(start.emission), n_types, n_states, len(before))
    scratch = new_scratch(len(events.weights), len(events.codes), len(start.emission), n_types, n_states)
    reason, log_likelihood, history = algorithm.run(
        events, chain_of(counts, chain, settings, before, after), rules, tables, sums, scratch
    )
    if reason == algorithm.IMPOSSIBLE:
        return None
    moved = len(history) > 1 or reason == algorithm.REASONS.index("max_iter")
    return FitResult(
        parameters_of(tables, start, chain, settings) if moved else start,
        statistics_of(sums, counts, data, history[-1], rules.df),
        log_likelihood,
        history,
        algorithm.REASONS[reason],
        list(tables.floored),
    )


def events_of(data: Data, start: Parameters) -> tuple[Events, Integers, Integers]:
    """The training data, and the types of each row of the transition table: the pairs, then unknown ones."""
    index, m = data.index, start.n_types
    known = (index.before < m) & (index.after < m)
    rows = np.empty(len(known), dtype=np.int64)
    rows[known] = start.find_pairs(index.before[known] * m + index.after[known])
    rows[~known] = len(start.pairs) + np.arange(np.count_nonzero(~known))
    before = np.concatenate([start.pairs[:, 0], index.before[~known]])
    after = np.concatenate([start.pairs[:, 1], index.after[~known]])
    steps = rows[index.trans_index] if len(rows) else np.zeros_like(index.codes)
    x = np.empty(data.X.shape)
    for k, family in enumerate(data.families):
        x[:, k] = family.working(data.X[:, k])
    copies = (np.array(index.codes), np.array(index.offsets), steps, np.array(data.weights))
    return Events(*copies, x, data.first_occurrences), before, after


def rules_of(data: Data, settings: Settings, start: Parameters) -> Rules:
    """Settings as numbers."""
    families = data.families

    def smoothed(part: str) -> bool:
        rule = getattr(settings.smoothing, part)
        return rule is not None and part not in settings.fixed and start.n_types > 1

    return Rules(
        np.array([e.params["df"][0, 0] if "df" in e.params else np.inf for e in start.emission]),
        np.array([1.0 if family.on_log_scale else 0.0 for family in families]),
        -math.inf if settings.density_floor is None else math.log(settings.density_floor),
        np.array(
            [
                initialize.scale_floor(family, overall, settings.min_scale)
                for family, overall in zip(families, data.overall, strict=True)
            ]
        ),
        settings.count_floor,
        "start" in settings.fixed,
        "transitions" in settings.fixed,
        "emission" in settings.fixed,
        settings.marginals == "exact",
        settings.start_estimate == "first_occurrence",
        smoothed("start"),
        smoothed("transitions"),
        smoothed("emission"),
        settings.tol,
        settings.max_iter,
    )


def chain_of(
    counts: Counts, chain: EventChain, settings: Settings, before: Integers, after: Integers
) -> Chain:
    """The event chain with the smoothing weights."""
    smoothing, earlier, later = settings.smoothing, counts.pairs[:, 0], counts.pairs[:, 1]
    return Chain(
        before,
        after,
        chain.known()[1],
        chain.leaving,
        chain.prob,
        kept_share(smoothing.start, counts.behind_start(settings.start_estimate))[:, 0],
        kept_share(smoothing.emission, counts.types)[:, 0],
        *transition_weights(smoothing, counts.pair, chain.leaving[earlier], chain.entering[later]),
    )


def tables_of(start: Parameters, before: Integers, after: Integers) -> Tables:
    """Copies of the parameters."""
    marginal = start.known_marginal()
    params = [e.params for e in start.emission_tables]
    return Tables(
        np.array(start.start_table, order="C"),
        start.transmat_of(before, after),
        np.stack([p["loc"] for p in params]),
        np.stack([p["scale"] for p in params]),
        np.array(marginal.transmat_from, order="C"),
        np.array(marginal.transmat_to, order="C"),
        np.array(marginal.transmat, order="C"),
        np.zeros((len(params), *start.startprob.shape), dtype=np.bool_),
    )


def parameters_of(tables: Tables, start: Parameters, chain: EventChain, settings: Settings) -> Parameters:
    """The result as parameters."""
    m = start.n_types
    emission, of_all = [], []
    for e, loc, scale in zip(start.emission, tables.loc, tables.scale, strict=True):
        own, everywhere = {"loc": loc[:m], "scale": scale[:m]}, {"loc": loc[m], "scale": scale[m]}
        if "df" in e.params:
            own["df"], everywhere["df"] = e.params["df"], e.params["df"][0].copy()
        emission.append(e.replace(own))
        of_all.append(Emission(e.distribution, everywhere))
    return Parameters(
        start.event_types,
        tables.startprob[:m],
        start.pairs,
        tables.transmat[: len(start.pairs)],
        emission,
        chain,
        Marginal(tables.startprob[m], tables.of_all, tables.from_type, tables.to_type, of_all),
        settings.smoothing,
    )


def statistics_of(sums: Sums, counts: Counts, data: Data, log_likelihood: float, df: Floats) -> Statistics:
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
        data.overall,
    )
