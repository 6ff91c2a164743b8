"""The steps of one model that Python takes: from sums of chunks, and with families of one's own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Truths
from keydyn.model.data.settings import Settings
from keydyn.model.engine.densities import END, FIRST
from keydyn.model.engine.expectation import Sums, Tables
from keydyn.model.engine.layout import variant_of
from keydyn.model.engine.maximisation import KEEP_EMISSION, PROB, Chain, Rules
from keydyn.model.families.compiled import custom_features, features_of
from keydyn.model.families.family import Family, Stats
from keydyn.model.fit.algorithm import maximise
from keydyn.model.fit.statistics import Statistics, around_locations
from keydyn.model.theta.marginals import normalised
from keydyn.model.theta.parameters import Parameters
from keydyn.model.theta.start_values import least_scale


def rules_of(settings: Settings) -> Rules:
    """The settings as numbers."""
    smoothing = settings.smoothing
    return Rules(
        -math.inf if settings.density_floor is None else math.log(settings.density_floor),
        settings.count_floor,
        "start" in settings.fixed,
        "transitions" in settings.fixed,
        "emission" in settings.fixed,
        settings.marginals == "exact",
        settings.start_estimate == "first_occurrence",
        smoothing.start is not None,
        smoothing.transitions is not None,
        smoothing.emission is not None,
        settings.tol,
        settings.max_iter,
    )


def maximised(
    totals: Statistics, current: Parameters, settings: Settings
) -> tuple[Parameters, list[NDArray[np.bool_]]]:
    """The maximisation step and smoothing of a single model from sums; also where the scale floor acted."""
    m, n_pairs, families = current.n_types, len(current.pairs), current.families
    rules, features, variant = rules_of(settings), features_of(families), variant_of(current.n_states)
    chain = totals.counts.chain()
    basis = totals.counts.weighted(chain, settings)
    basis = basis._replace(of_types=np.vstack([basis.of_types, np.zeros((1, 4))]))
    least = [
        least_scale(family, *overall, settings.min_scale)
        for family, overall in zip(families, totals.overall, strict=True)
    ]
    transitions = np.zeros_like(current.transitions)
    transitions[:n_pairs] = totals.transitions
    arrays = (current.start, current.transitions, current.emissions)
    tables = Tables(*(np.array(values, order="C")[..., None] for values in arrays))
    locations = [tables.emission[:, first, :, 0] for first in features[:, FIRST]]
    sums = Sums(
        np.array(totals.start)[..., None],
        np.array(totals.first_seen)[..., None],
        transitions[..., None],
        around_locations(families, totals.moments, locations)[..., None],
    )
    floored = np.zeros((m + 1, len(families), current.n_states, 1), dtype=bool)
    span = np.array([0, 0, 0, m + 1, 0, n_pairs, 0])
    maximise(variant, span, basis, rules, features, sums, np.array(least), tables, floored)
    for k in custom_features(families):
        columns = slice(features[k, FIRST], features[k, END])
        maximise_custom(
            families[k],
            totals.custom[k],
            float(least[k][0]),
            settings,
            basis,
            tables.emission[:, columns, :, 0],
            floored[:-1, k, :, 0],
        )
    parameters = replace(
        current,
        start=tables.start[..., 0],
        transitions=tables.transitions[..., 0],
        emissions=tables.emission[..., 0],
        chain=chain,
        smoothing=settings.smoothing,
    )
    return parameters, [floored[:-1, k, :, 0] for k in range(len(families))]


def maximise_custom(
    family: Family,
    stats: Stats,
    least: float,
    settings: Settings,
    chain: Chain,
    table: Floats,
    floored: Truths,
) -> None:
    """The maximisation step of a custom family, its marginal, and smoothing, in `table` (m + 1, p, M)."""
    if "emission" not in settings.fixed:
        params = {name: table[:-1, p].copy() for p, name in enumerate(family.parameters)}
        params, floored[:] = family.update(stats, params, least, settings.count_floor)
        for p, name in enumerate(family.parameters):
            table[:-1, p] = params[name]
    shares = np.repeat(chain.of_types[:-1, PROB, None], table.shape[2], axis=1)
    if settings.marginals == "exact":
        shares = normalised(family.mass(stats).T).T
    smooth_custom(family, settings, shares, chain.of_types[:-1, KEEP_EMISSION], table)


def smooth_custom(family: Family, settings: Settings, shares: Floats, keep: Floats, table: Floats) -> None:
    """The marginal of a custom family's parameters into the last row, and these smoothed towards it."""
    params = {name: table[:-1, p] for p, name in enumerate(family.parameters)}
    marginal = family.marginal(params, shares)
    if settings.smoothing.emission is not None and "emission" not in settings.fixed and len(keep) > 1:
        params = family.interpolate(params, marginal, keep[:, None])
    for p, name in enumerate(family.parameters):
        table[:-1, p], table[-1, p] = params[name], marginal[name]
