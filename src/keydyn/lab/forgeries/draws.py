"""Times made up from groups of recorded ones: their mean, their extremes, a normal law, their histogram.

The five methods are those that González, Calot, Ierache and Hasperué describe (Towards liveness detection in
keystroke dynamics: revealing synthetic forgeries, Systems and Soft Computing 4, 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from keydyn.arrays import Floats
from keydyn.lab.forgeries.contexts import Groups

# One time per key to forge, (N,).
Draw = Callable[[Groups, np.random.Generator], Floats]

# Samples after which an observation weighs e times less in a non-stationary histogram.
MEMORY = 5.0
# However old it is, an observation weighs this much.
LEAST_WEIGHT = 1e-6


def averages(groups: Groups, random: np.random.Generator) -> Floats:
    """The mean of each group: nothing is left to chance."""
    del random
    return _means(groups, groups.values)[groups.group]


def uniform(groups: Groups, random: np.random.Generator) -> Floats:
    """Anything between a group's extremes, all equally probable."""
    if len(groups.starts) == 0:
        return np.empty(0)
    low, high = (extreme.reduceat(groups.values, groups.starts) for extreme in (np.minimum, np.maximum))
    drawn: Floats = low[groups.group] + random.random(len(groups.group)) * (high - low)[groups.group]
    return drawn


def normal(groups: Groups, random: np.random.Generator) -> Floats:
    """A normal law with the mean and the standard deviation of each group."""
    mean = _means(groups, groups.values)
    deviation = groups.values - np.repeat(mean, groups.sizes)
    scale = np.sqrt(_means(groups, deviation**2))
    drawn: Floats = mean[groups.group] + scale[groups.group] * random.normal(size=len(groups.group))
    return drawn


def histograms(groups: Groups, random: np.random.Generator) -> Floats:
    """The inverse of each group's empirical distribution, interpolated between neighbouring values."""
    return _inverted(groups, np.ones(len(groups.values)), random)


def recent_histograms(groups: Groups, random: np.random.Generator, memory: float = MEMORY) -> Floats:
    """As `histograms`, where recently recorded values weigh more: typing that is not stationary."""
    return _inverted(groups, np.maximum(np.exp(-groups.age / memory), LEAST_WEIGHT), random)


def resampled(groups: Groups, random: np.random.Generator) -> Floats:
    """One of the values in each group, as it was recorded."""
    within = random.integers(0, groups.sizes[groups.group])
    chosen: Floats = groups.values[groups.starts[groups.group] + within]
    return chosen


def _means(groups: Groups, values: Floats) -> Floats:
    if len(groups.starts) == 0:
        return np.empty(0)
    means: Floats = np.add.reduceat(values, groups.starts) / groups.sizes
    return means


def _inverted(groups: Groups, weights: Floats, random: np.random.Generator) -> Floats:
    """Weighted empirical distributions, inverted where a random number falls between 0 and 1.

    A value stands in the middle of its weight, so that with equal weights the n values of a group are the
    quantiles 0, 1/(n − 1), …, 1.
    """
    if len(groups.starts) == 0:
        return np.empty(0)
    order = np.lexsort((groups.values, np.repeat(np.arange(len(groups.sizes)), groups.sizes)))
    weights = weights[order]
    middle = np.cumsum(weights) - weights / 2
    first, last = middle[groups.starts], middle[groups.starts + groups.sizes - 1]
    asked = first[groups.group] + random.random(len(groups.group)) * (last - first)[groups.group]
    # Middles increase through all groups, and what is asked lies between the ends of its own.
    drawn: Floats = np.interp(asked, middle, groups.values[order])
    return drawn
