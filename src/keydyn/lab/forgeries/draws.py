"""Ways to draw times from groups of recorded ones: mean, extremes, normal distribution, histogram.

The five methods are those that González, Calot, Ierache and Hasperué describe (Towards liveness detection in
keystroke dynamics: revealing synthetic forgeries, Systems and Soft Computing 4, 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from keydyn.arrays import Floats
from keydyn.lab.forgeries.key_contexts import ValueGroups

# One time per key to forge, (N,).
Draw = Callable[[ValueGroups, np.random.Generator], Floats]

# In a non-stationary histogram, the weight of an observation falls by a factor of e over this many samples.
MEMORY = 5.0
# The least weight of an observation, however old.
LEAST_WEIGHT = 1e-6


def averages(groups: ValueGroups, random: np.random.Generator) -> Floats:
    """The mean of each group, without chance."""
    del random
    return _means(groups, groups.values)[groups.group]


def uniform(groups: ValueGroups, random: np.random.Generator) -> Floats:
    """Draws from a uniform distribution between each group's extremes."""
    if len(groups.starts) == 0:
        return np.empty(0)
    low, high = (extreme.reduceat(groups.values, groups.starts) for extreme in (np.minimum, np.maximum))
    drawn: Floats = low[groups.group] + random.random(len(groups.group)) * (high - low)[groups.group]
    return drawn


def normal(groups: ValueGroups, random: np.random.Generator) -> Floats:
    """Draws from a normal distribution with the mean and the standard deviation of each group."""
    mean = _means(groups, groups.values)
    deviation = groups.values - np.repeat(mean, groups.sizes)
    scale = np.sqrt(_means(groups, deviation**2))
    drawn: Floats = mean[groups.group] + scale[groups.group] * random.normal(size=len(groups.group))
    return drawn


def histograms(groups: ValueGroups, random: np.random.Generator) -> Floats:
    """Draws from each group's empirical distribution, interpolated between neighbouring values."""
    return _inverted(groups, np.ones(len(groups.values)), random)


def recent_histograms(groups: ValueGroups, random: np.random.Generator, memory: float = MEMORY) -> Floats:
    """As `histograms`, with greater weight for recent values, because typing is not stationary."""
    return _inverted(groups, np.maximum(np.exp(-groups.age / memory), LEAST_WEIGHT), random)


def resampled(groups: ValueGroups, random: np.random.Generator) -> Floats:
    """One of the values in each group, unchanged."""
    within = random.integers(0, groups.sizes[groups.group])
    chosen: Floats = groups.values[groups.starts[groups.group] + within]
    return chosen


def _means(groups: ValueGroups, values: Floats) -> Floats:
    if len(groups.starts) == 0:
        return np.empty(0)
    means: Floats = np.add.reduceat(values, groups.starts) / groups.sizes
    return means


def _inverted(groups: ValueGroups, weights: Floats, random: np.random.Generator) -> Floats:
    """Draws from weighted empirical distributions by inverting them at uniform random numbers.

    A value lies in the middle of its weight, so that with equal weights the n values of a group are the
    quantiles 0, 1/(n − 1), …, 1.
    """
    if len(groups.starts) == 0:
        return np.empty(0)
    order = np.lexsort((groups.values, np.repeat(np.arange(len(groups.sizes)), groups.sizes)))
    weights = weights[order]
    middle = np.cumsum(weights) - weights / 2
    first, last = middle[groups.starts], middle[groups.starts + groups.sizes - 1]
    asked = first[groups.group] + random.random(len(groups.group)) * (last - first)[groups.group]
    # The middles increase through all groups, and each number drawn lies within its own group.
    drawn: Floats = np.interp(asked, middle, groups.values[order])
    return drawn
