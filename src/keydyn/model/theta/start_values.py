"""Starting parameters from the data (Section 3.5, Eqs. 23–24): reproducible, and state 0 the fast one."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.families.categorical import Categorical
from keydyn.model.families.family import Family, Params

# Equal values leave a spread of rounding errors.
NO_SPREAD = 1e-12


class Moments(NamedTuple):
    """Weight, mean and sum of squared deviations of values on their working scale, one row per group."""

    weight: Floats
    mean: Floats
    square: Floats

    def of(self, feature: int) -> Moments:
        """Those of one feature, if they are those of several, (groups, K)."""
        return Moments(self.weight[:, feature], self.mean[:, feature], self.square[:, feature])

    @property
    def deviation(self) -> Floats:
        """The standard deviation; 0 where there is no value."""
        return np.sqrt(self.square / np.where(self.weight > 0.0, self.weight, 1.0))


def sums_by(groups: Integers, weights: Floats | None, n_groups: int) -> Floats:
    """The weights by group; without any, each weighs one."""
    return np.bincount(groups, weights, n_groups).astype(np.float64, copy=False)


def moments_by(groups: Integers, n_groups: int, weights: Floats | None, values: Floats) -> Moments:
    """The moments of values by group, in two passes; a NaN among them has no weight."""
    total = sums_by(groups, values if weights is None else weights * values, n_groups)
    if np.isnan(total).any():
        there = ~np.isnan(values)
        of_those = None if weights is None else weights[there]
        return moments_by(groups[there], n_groups, of_those, values[there])
    weight = sums_by(groups, weights, n_groups)
    mean = np.divide(total, weight, out=np.zeros(n_groups), where=weight > 0.0)
    apart = values - mean.take(groups)
    apart *= apart if weights is None else weights * apart
    return Moments(weight, mean, sums_by(groups, apart, n_groups))


def together(moments: Moments, bounds: Integers) -> Moments:
    """The moments of several groups together: of each run of groups between two bounds."""
    first = bounds[:-1]
    weight = np.add.reduceat(moments.weight, first)
    total = np.add.reduceat(moments.weight * moments.mean, first)
    mean = np.divide(total, weight, out=np.zeros(total.shape), where=weight > 0.0)
    apart = moments.mean - np.repeat(mean, bounds[1:] - first, axis=0)
    return Moments(weight, mean, np.add.reduceat(moments.square + moments.weight * apart * apart, first))


def least_scale(family: Family, overall: Moments, largest: Floats, min_scale: float | None) -> Floats:
    """The scale floor of a feature (docs/decisions/0008) in each of several sets of data.

    As given, or a thousandth of the data's own spread. Where they have none it is absolute: 1e-3 on the log
    scale, 1e-6·max(1, |x|) on the linear one. A categorical has no scale; in its place the engine looks for
    its pseudocount.
    """
    if isinstance(family, Categorical):
        return np.full(len(overall.weight), float(family.pseudocount))
    if min_scale is not None:
        return np.full(len(overall.weight), min_scale)
    spread, logs = overall.deviation, family.on_log_scale
    absolute = np.full(len(spread), 1e-3) if logs else 1e-6 * np.maximum(1.0, largest)
    size = np.maximum(np.abs(overall.mean), 1.0 if logs else 0.0)
    return np.where(spread > NO_SPREAD * size, 1e-3 * spread, absolute)


def start_emission(
    family: Family,
    feature: int,
    by_type: Moments,
    of_all: Moments,
    floor: Floats,
    settings: Settings,
    jitter: np.random.Generator | None = None,
) -> Params:
    """Emissions spread around each type's own mean, parameters (R, M).

    `of_all` and `floor` are those of all events, one entry per row: a type without a value starts there. With
    `jitter` the states' displacements get a standard normal each, in units of the spread, the same for all
    event types so that a state stays one state.
    """
    shift = displacements(settings.n_states, settings.spread)
    if feature != settings.leading_feature and settings.spread_features == "leading":
        shift = np.zeros(settings.n_states)
    if jitter is not None:
        shift = shift + jitter.standard_normal(settings.n_states)
    seen = by_type.weight > 0.0
    middle = np.where(seen, by_type.mean, of_all.mean)
    deviation = np.where(seen, by_type.deviation, of_all.deviation)
    unit = deviation if settings.spread_scale == "type" else of_all.deviation
    return family.start(middle[:, None], np.maximum(deviation, floor)[:, None], unit[:, None] * shift)


@lru_cache(maxsize=64)
def displacements(n_states: int, spread: float) -> Floats:
    """2h(j − 1)/(M − 1) − h of Eq. 23; one state stays in the middle."""
    return np.linspace(-spread, spread, n_states) if n_states > 1 else np.zeros(1)
