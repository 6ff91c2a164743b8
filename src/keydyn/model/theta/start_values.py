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
    """Weight, mean and sum of squared deviations of values on their working scale, one entry per group."""

    weight: Floats
    mean: Floats
    square: Floats

    @property
    def deviation(self) -> Floats:
        """The standard deviation; 0 where there is no value."""
        return np.sqrt(self.square / np.where(self.weight > 0.0, self.weight, 1.0))


def moments_by(groups: Integers, n_groups: int, weights: Floats, values: Floats) -> Moments:
    """The moments of values by group, in two passes; a NaN among them has no weight."""
    there = ~np.isnan(values)
    if not there.all():
        groups, weights, values = groups[there], weights[there], values[there]
    weight = np.bincount(groups, weights, n_groups).astype(np.float64)
    total = np.bincount(groups, weights * values, n_groups)
    mean = np.divide(total, weight, out=np.zeros(n_groups), where=weight > 0.0)
    square = np.bincount(groups, weights * (values - mean[groups]) ** 2, n_groups)
    return Moments(weight, mean, square.astype(np.float64))


def together(moments: Moments, first: Integers) -> Moments:
    """The moments of several groups together; `first` is where each run of groups begins."""
    weight = np.add.reduceat(moments.weight, first)
    total = np.add.reduceat(moments.weight * moments.mean, first)
    mean = np.divide(total, weight, out=np.zeros(len(first)), where=weight > 0.0)
    apart = moments.mean - np.repeat(mean, np.diff(first, append=len(moments.mean)))
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
        shift = np.zeros_like(shift)
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
