"""Starting parameters from the data (Section 3.5): reproducible, and state 0 the fast one."""

from __future__ import annotations

import math

import numpy as np

from keydyn.model.arrays import Floats
from keydyn.model.emissions import Emission, Family, Stats
from keydyn.model.marginals import event_chain, printed_marginal
from keydyn.model.parameters import Parameters
from keydyn.model.settings import Settings
from keydyn.model.statistics import Data
from keydyn.model.sums import weighted_moments


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
    total = overall["count"][0, 0]
    spread_of_all = math.sqrt(overall["square"][0, 0] / total)
    # A type without any value of this feature starts where all events are.
    seen = count > 0
    mean = np.where(seen, mean, overall["mean"])
    deviation = np.sqrt(np.where(seen, square, overall["square"]) / np.where(seen, count, total))
    shift = displacements(settings.n_states, settings.spread)
    if feature != settings.leading_feature and settings.spread_features == "leading":
        shift = np.zeros_like(shift)
    if jitter is not None:
        shift = shift + jitter.standard_normal(settings.n_states)
    unit = deviation if settings.spread_scale == "type" else np.full_like(deviation, spread_of_all)
    scale = np.maximum(deviation, scale_floor(family, overall, settings.min_scale))
    return Emission(family, family.start(mean, scale, shift * unit))


def displacements(n_states: int, spread: float) -> Floats:
    """2h(j − 1)/(M − 1) − h of Eq. 23; one state stays in the middle."""
    return np.linspace(-spread, spread, n_states) if n_states > 1 else np.zeros(1)


def scale_floor(family: Family, overall: Stats, min_scale: float | None) -> float:
    """The least scale of a feature: as given, or a thousandth of the data's own spread.

    Where the data have no spread it is absolute: 1e-3 on the log scale, 1e-6·max(1, |x|) on the linear one.
    """
    if min_scale is not None:
        return min_scale
    spread = math.sqrt(overall["square"][0, 0] / overall["count"][0, 0])
    centre = abs(overall["mean"][0, 0])
    # Equal values leave a spread of rounding errors.
    if spread > 1e-12 * max(centre, 1.0 if family.on_log_scale else 0.0):
        return 1e-3 * spread
    return 1e-3 if family.on_log_scale else 1e-6 * max(1.0, float(overall["largest"]))
