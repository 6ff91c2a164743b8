"""The relatives written down a second time, as slowly and plainly as possible: every path is enumerated.

A truth says, for one sequence, what the start, each step and each emission are given what came before, and
draws sequences event by event; densities come from scipy. Nothing here uses the package.
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


def draw(rng, family, loc, scale):
    if family == "student":
        return loc + scale * rng.standard_t(4.0)
    value = rng.normal(loc, scale)
    return value if family == "normal" else np.exp(value)


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


class Truth:
    """A start (M,), and what a kind of model says of each step and of each emission."""

    def paths(self, x, labels=None):
        logs = np.zeros((len(x), len(self.start)))
        for n, j in np.ndindex(logs.shape):
            for k, (family, _, _) in enumerate(self.emission):
                if not np.isnan(x[n, k]):
                    logs[n, j] += log_density(family, x[n, k], *self.cell(x, n, k, j))
            if labels is not None:
                logs[n, j] += self.log_said(labels[n], j)
        return Paths(self.start, [self.step(x, n) for n in range(1, len(x))], logs)

    def drawn(self, rng, length):
        """Values (n, K) and states (n,) of one sequence, each event given those before it."""
        x, states = np.full((length, len(self.emission)), np.nan), np.zeros(length, dtype=int)
        for n in range(length):
            chances = self.start if n == 0 else self.step(x, n)[states[n - 1]]
            states[n] = rng.choice(len(self.start), p=chances)
            for k, (family, _, _) in enumerate(self.emission):
                x[n, k] = draw(rng, family, *self.cell(x, n, k, states[n]))
        return x, states


class Bins(Truth):
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

    def cell(self, x, n, k, j):
        row = self.row(x, n, self.emission_edges)
        return self.emission[k][1][row, j], self.emission[k][2][row, j]

    def step(self, x, n):
        return self.trans[self.row(x, n, self.step_edges)]


class Lines(Truth):
    """Locations linear, transitions multinomial-logistic, in the deviation of the value before."""

    def __init__(self, start, trans, emission, slopes, tilt, centre, feature):
        self.start, self.trans, self.emission = start, trans, emission
        self.slopes, self.tilt, self.centre, self.feature = slopes, tilt, centre, feature

    def deviation(self, x, n, k):
        value = previous(x, n, k)
        if value is None:
            return 0.0
        return (np.log(value) if self.emission[k][0] == "lognormal" else value) - self.centre[k]

    def cell(self, x, n, k, j):
        _, loc, scale = self.emission[k]
        return loc[0, j] + self.slopes[k, j] * self.deviation(x, n, k), scale[0, j]

    def step(self, x, n):
        weight = self.trans * np.exp(self.tilt * self.deviation(x, n, self.feature))
        return weight / weight.sum(axis=1, keepdims=True)


class Labels(Truth):
    """An HMM with a label at some events: seen with `observed` (None: as given), right with `true`."""

    def __init__(self, start, trans, emission, observed, true, names):
        self.start, self.trans, self.emission = start, trans, emission
        self.observed, self.true, self.names = observed, true, names

    def cell(self, x, n, k, j):
        return self.emission[k][1][0, j], self.emission[k][2][0, j]

    def step(self, x, n):
        return self.trans

    def log_said(self, label, j):
        if label is None:
            chance = 1.0 if self.observed is None else 1.0 - self.observed
        else:
            chance = self.true if label == self.names[j] else (1.0 - self.true) / (len(self.start) - 1)
            chance *= 1.0 if self.observed is None else self.observed
        with np.errstate(divide="ignore"):
            return np.log(chance)

    def said(self, rng, states):
        """A label of each state, None where it is not seen."""
        others = [[name for name in self.names if name != own] for own in self.names]
        right = rng.random(len(states)) < self.true
        labels = np.array(
            [self.names[j] if ok else rng.choice(others[j]) for j, ok in zip(states, right, strict=True)],
            dtype=object,
        )
        labels[rng.random(len(states)) >= self.observed] = None
        return labels
