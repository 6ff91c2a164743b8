"""Starting parameters from the data (Section 3.5): reproducible, and state 0 the fast one."""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.data.settings import Settings
from keydyn.model.engine.sums import weighted_moments
from keydyn.model.estimation.starting import scale_floor, start_moments
from keydyn.model.families.family import Emission, Family, Stats
from keydyn.model.fit.statistics import Data
from keydyn.model.theta.marginals import event_chain, printed_marginal
from keydyn.model.theta.parameters import Parameters


def start_parameters(data: Data, settings: Settings, jitter: np.random.Generator | None = None) -> Parameters:
    """Uniform start and transition probabilities, emissions spread around each type's own mean.

    With `jitter` the states' displacements get a standard normal each, in units of the spread, the same
    for all event types so that a state stays one state.
    """
    m, n_states = len(data.event_types), settings.n_states
    counts = data.counts
    emission = [_start_emission(data, k, settings, jitter) for k in range(data.X.shape[1])]
    startprob = np.full((m, n_states), 1.0 / n_states)
    transmat = np.full((len(counts.pairs), n_states, n_states), 1.0 / n_states)
    chain = event_chain(counts)
    marginal = printed_marginal(startprob[0], counts.pairs, transmat, emission, chain)
    return Parameters(
        data.event_types, startprob, counts.pairs, transmat, emission, chain, marginal, settings.smoothing
    )


def _start_emission(
    data: Data, feature: int, settings: Settings, jitter: np.random.Generator | None
) -> Emission:
    family, overall = data.families[feature], data.overall[feature]
    values = family.working(data.X[:, feature])
    count, mean, square = weighted_moments(
        data.index.codes, len(data.event_types), data.event_weights, values
    )
    of_all = (overall["count"][0, 0], overall["mean"][0, 0], overall["square"][0, 0])
    shift = displacements(settings.n_states, settings.spread)
    if feature != settings.leading_feature and settings.spread_features == "leading":
        shift = np.zeros_like(shift)
    if jitter is not None:
        shift = shift + jitter.standard_normal(settings.n_states)
    floor = least_scale(family, overall, settings.min_scale)
    moments = (count, mean, square, of_all)
    return Emission(
        family, family.start(*start_moments(*moments, floor, shift, settings.spread_scale == "type"))
    )


def displacements(n_states: int, spread: float) -> Floats:
    """2h(j − 1)/(M − 1) − h of Eq. 23; one state stays in the middle."""
    return np.linspace(-spread, spread, n_states) if n_states > 1 else np.zeros(1)


def least_scale(family: Family, overall: Stats, min_scale: float | None) -> float:
    """The scale floor of a feature (docs/decisions/0008); `min_scale` None is "auto"."""
    return float(
        scale_floor(
            math.nan if min_scale is None else min_scale,
            family.on_log_scale,
            overall["count"][0, 0],
            overall["mean"][0, 0],
            overall["square"][0, 0],
            float(overall["largest"]),
        )
    )
