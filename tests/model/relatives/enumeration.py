"""The relatives written down a second time, as slowly and plainly as possible: every path is enumerated.

A truth says, for one sequence, what the start, each step and each emission are given what came before;
densities come from scipy. Nothing here uses the package.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import special, stats


def log_density(family, x, loc, scale):
    if family == "normal":
        return stats.norm.logpdf(x, loc, scale)
    if family == "student":
        return stats.t.logpdf(x, 4.0, loc, scale)
    return stats.lognorm.logpdf(x, s=scale, scale=np.exp(loc))


def previous(x, n, k):
    """The last value of feature k seen before event n, or None."""
    for value in reversed(x[:n, k]):
        if not np.isnan(value):
            return value
    return None


class Paths:
    """Every path of one sequence, from `start` (M,), `steps` (one matrix each) and log-`emission` (n, M)."""

    def __init__(self, start, steps, emission):
        self.n, self.m = emission.shape
        with np.errstate(divide="ignore"):
            start, steps = np.log(start), [np.log(step) for step in steps]
        self.joint = {}
        for path in itertools.product(range(self.m), repeat=self.n):
            total = start[path[0]] + sum(emission[n, j] for n, j in enumerate(path))
            total += sum(steps[n][i, j] for n, (i, j) in enumerate(itertools.pairwise(path)))
            self.joint[path] = total

    def log_likelihood(self):
        return special.logsumexp(list(self.joint.values()))

    def states(self):
        """P(z_n = j | x), (n, M)."""
        total, shares = self.log_likelihood(), np.zeros((self.n, self.m))
        for path, value in self.joint.items():
            for n, j in enumerate(path):
                shares[n, j] += np.exp(value - total)
        return shares

    def pairs(self):
        """P(z_{n−1} = i, z_n = j | x) of every step, (n − 1, M, M)."""
        total, shares = self.log_likelihood(), np.zeros((self.n - 1, self.m, self.m))
        for path, value in self.joint.items():
            for n, (i, j) in enumerate(itertools.pairwise(path)):
                shares[n, i, j] += np.exp(value - total)
        return shares

    def best(self):
        return max(self.joint.items(), key=lambda item: item[1])


class Bins:
    """Conditioned on bins of the value before: tables (R, M, M) and (R, M), the last but one for none yet."""

    def __init__(self, start, trans, emission, emission_edges, step_edges, feature):
        self.start, self.trans, self.emission = start, trans, emission
        self.emission_edges, self.step_edges, self.feature = emission_edges, step_edges, feature

    def row(self, x, n, edges):
        if edges is None:
            return 0
        value = previous(x, n, self.feature)
        if value is None:
            return len(edges) + 1
        return sum(value > edge for edge in edges)

    def paths(self, x):
        logs = np.zeros((len(x), len(self.start)))
        for n, j in np.ndindex(logs.shape):
            row = self.row(x, n, self.emission_edges)
            for k, (family, loc, scale) in enumerate(self.emission):
                if not np.isnan(x[n, k]):
                    logs[n, j] += log_density(family, x[n, k], loc[row, j], scale[row, j])
        steps = [self.trans[self.row(x, n, self.step_edges)] for n in range(1, len(x))]
        return Paths(self.start, steps, logs)


class Lines:
    """Locations linear, transitions multinomial-logistic, in the deviation of the value before."""

    def __init__(self, start, trans, emission, slopes, tilt, centre, feature):
        self.start, self.trans, self.emission = start, trans, emission
        self.slopes, self.tilt, self.centre, self.feature = slopes, tilt, centre, feature

    def deviation(self, x, n, k):
        value = previous(x, n, k)
        if value is None:
            return 0.0
        return (np.log(value) if self.emission[k][0] == "lognormal" else value) - self.centre[k]

    def paths(self, x):
        m = len(self.start)
        logs = np.zeros((len(x), m))
        for n, j in np.ndindex(logs.shape):
            for k, (family, loc, scale) in enumerate(self.emission):
                if not np.isnan(x[n, k]):
                    moved = loc[0, j] + self.slopes[k, j] * self.deviation(x, n, k)
                    logs[n, j] += log_density(family, x[n, k], moved, scale[0, j])
        steps = []
        for n in range(1, len(x)):
            weight = self.trans * np.exp(self.tilt * self.deviation(x, n, self.feature))
            steps.append(weight / weight.sum(axis=1, keepdims=True))
        return Paths(self.start, steps, logs)


class Labels:
    """An HMM with a label at some events: seen with `observed` (None: as given), right with `true`."""

    def __init__(self, start, trans, emission, observed, true, names):
        self.start, self.trans, self.emission = start, trans, emission
        self.observed, self.true, self.names = observed, true, names

    def paths(self, x, labels):
        m = len(self.start)
        logs = np.zeros((len(x), m))
        for n, j in np.ndindex(logs.shape):
            for k, (family, loc, scale) in enumerate(self.emission):
                if not np.isnan(x[n, k]):
                    logs[n, j] += log_density(family, x[n, k], loc[0, j], scale[0, j])
            if labels is None:
                continue
            if labels[n] is None:
                chance = 1.0 if self.observed is None else 1.0 - self.observed
            else:
                chance = self.true if labels[n] == self.names[j] else (1.0 - self.true) / (m - 1)
                chance *= 1.0 if self.observed is None else self.observed
            with np.errstate(divide="ignore"):
                logs[n, j] += np.log(chance)
        return Paths(self.start, [self.trans] * (len(x) - 1), logs)
