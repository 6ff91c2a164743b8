"""From the arrays that a compiled fit leaves to parameters and statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.settings import Settings
from keydyn.model.estimation.scoring import Finished
from keydyn.model.estimation.tables import Fit, Rules, Shape, Sums, Tables, Truths, carve
from keydyn.model.families.family import Emission, Family, Params, Stats
from keydyn.model.fit.result import Estimates, n_parameters, ordered
from keydyn.model.fit.statistics import Counts, Statistics
from keydyn.model.theta.parameters import EventChain, Marginal, Parameters


@dataclass(eq=False)
class Packed:
    """A compiled fit from data alone as it was left, until someone looks at it.

    Attributes
    ----------
    memory : for `carve`, of `shape`; pairs : (2, P + V); floored : (K, m, M)
    seen : the codes of the event types among `types`, those of the source
    in_order : whether the pairs are sorted; n_sequences : their weight together
    log_likelihood : at the last expectation step
    """

    memory: Floats
    pairs: Integers
    floored: Truths
    shape: Shape
    seen: Integers
    types: vocabulary.Types
    in_order: bool
    n_sequences: float
    log_likelihood: float
    families: list[Family]
    settings: Settings
    rules: Rules

    @cached_property
    def event_types(self) -> vocabulary.Types:
        return self.types[self.seen] if len(self.seen) else np.array([vocabulary.SINGLE_TYPE])

    @cached_property
    def type_places(self) -> dict[Any, int]:
        return vocabulary.places_of(self.event_types)

    @cached_property
    def finished(self) -> Finished:
        """The model as scoring needs it, which takes no notice of how states are numbered."""
        fit = carve(self.memory, self.shape, self.pairs[0], self.pairs[1], self.floored)
        tables, pairs, _ = self._in_order(fit)
        rules, smoothing = self.rules, self.settings.smoothing
        return Finished(
            tables,
            pairs[:, 0] * self.shape[1] + pairs[:, 1],
            fit.basis.leaving,
            fit.counted.entering,
            rules.density.df,
            rules.density.log_scale,
            rules.smooth_transitions,
            smoothing.published,
        )

    def unpacked(self) -> Estimates:
        """The estimates, states numbered."""
        fit = carve(self.memory, self.shape, self.pairs[0], self.pairs[1], self.floored)
        types = self.event_types
        df = self.rules.density.df
        tables, pairs, order = self._in_order(fit)
        basis, counted = fit.basis, fit.counted
        of_pairs = (basis.pair_prob[order], fit.sums.transitions[order], counted.pair[order])
        chain = EventChain(basis.prob, basis.leaving, counted.entering, counted.startprob, of_pairs[0])
        sums = fit.sums._replace(transitions=of_pairs[1])
        counts = Counts(types, pairs, self.n_sequences, counted.types, counted.starts, of_pairs[2])
        overall: list[Stats] = [
            {"count": row[0:1, None], "mean": row[1:2, None], "square": row[2:3, None], "largest": row[3]}
            for row in fit.overall
        ]
        parameters = parameters_of(tables, types, counts.pairs, chain, self.families, df, self.settings)
        estimates = Estimates(
            parameters,
            statistics_of(sums, counts, overall, self.log_likelihood, df),
            list(self.floored),
            fit.stationary,
            n_parameters(parameters, counts, self.settings.fixed),
        )
        return ordered(estimates, self.settings)

    def _in_order(self, fit: Fit) -> tuple[Tables, Integers, slice | Integers]:
        """Tables with the pairs of known types alone and sorted, these pairs (P, 2), and their rows."""
        n_pairs = self.shape[3]
        pairs = np.ascontiguousarray(self.pairs[:, :n_pairs].T)
        if self.in_order:
            return fit.tables._replace(transmat=fit.tables.transmat[:n_pairs]), pairs, slice(n_pairs)
        order = np.argsort(pairs[:, 0] * self.shape[1] + pairs[:, 1])
        return fit.tables._replace(transmat=fit.tables.transmat[order]), pairs[order], order


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
