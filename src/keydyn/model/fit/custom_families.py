"""The steps of a fit that run in Python for a single model whose families are not compiled."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.engine.densities import END, FIRST
from keydyn.model.engine.layout import KEEP_EMISSION, PROB, Tables, TypeChain
from keydyn.model.families.compiled import custom_features, features_of
from keydyn.model.families.family import Emission, Family, Stats
from keydyn.model.fit.batch import Batch
from keydyn.model.theta.marginals import normalised


def densities(batch: Batch, tables: Tables, floor: float | None) -> Floats:
    """The summed log-densities of the custom features, (N, M, 1); no rows if there are none."""
    custom = custom_features(batch.families)
    total = np.zeros((len(batch.codes) if custom else 0, tables.start.shape[1], 1))
    for k in custom:
        table = _columns(batch.families, tables, k)
        params = {name: table[:, p] for p, name in enumerate(batch.families[k].parameters)}
        emission = Emission(batch.families[k], params)
        total[..., 0] += emission.log_densities(batch.values[:, k], batch.codes, floor)
    return total


def statistics(batch: Batch, tables: Tables, states: Floats) -> dict[int, Stats]:
    """The statistics of each custom family under γ (N, M), by feature number."""
    found, m = {}, int(batch.n_types[0])
    for k in custom_features(batch.families):
        family, table = batch.families[k], _columns(batch.families, tables, k)
        params = {name: table[:, p].copy() for p, name in enumerate(family.parameters)}
        found[k] = family.statistics(batch.values[:, k], states, batch.codes, m, params)
    return found


def maximise(
    families: tuple[Family, ...],
    stats: dict[int, Stats],
    settings: FitSettings,
    chain: TypeChain,
    tables: Tables,
) -> None:
    """Update the tables for custom families: the maximisation step, the marginals, and smoothing."""
    for k in custom_features(families):
        family, table = families[k], _columns(families, tables, k)
        if "emission" not in settings.fixed:
            params = {name: table[:-1, p].copy() for p, name in enumerate(family.parameters)}
            least = float(tables.least[0, k, 0])
            params, floored = family.update(stats[k], params, least, settings.count_floor)
            tables.floored[:-1, k, :, 0] = floored
            for p, name in enumerate(family.parameters):
                table[:-1, p] = params[name]
        shares = normalised(family.mass(stats[k]).T).T if settings.marginals == "exact" else None
        _smooth(family, settings, chain, shares, table)


def smooth_start(
    families: tuple[Family, ...], settings: FitSettings, chain: TypeChain, tables: Tables
) -> None:
    """Compute the marginals of the starting parameters, and smooth the parameters towards them."""
    for k in custom_features(families):
        _smooth(families[k], settings, chain, None, _columns(families, tables, k))


def _smooth(
    family: Family, settings: FitSettings, chain: TypeChain, shares: Floats | None, table: Floats
) -> None:
    """Write the marginal into the last row of a table (m + 1, p, M), and smooth the other rows towards it.

    `shares` (m, M) are the weights of event types in the marginal; None stands for Π[ω].
    """
    if shares is None:
        shares = np.repeat(chain.of_types[:-1, PROB, None], table.shape[2], axis=1)
    keep = chain.of_types[:-1, KEEP_EMISSION]
    params = {name: table[:-1, p] for p, name in enumerate(family.parameters)}
    marginal = family.marginal(params, shares)
    if settings.smoothing.emission is not None and "emission" not in settings.fixed and len(keep) > 1:
        params = family.interpolate(params, marginal, keep[:, None])
    for p, name in enumerate(family.parameters):
        table[:-1, p], table[-1, p] = params[name], marginal[name]


def _columns(families: tuple[Family, ...], tables: Tables, k: int) -> Floats:
    """The parameters of one feature of a single model, (m + 1, p, M)."""
    feature = features_of(families)[k]
    table: Floats = tables.emission[:, feature[FIRST] : feature[END], :, 0]
    return table
