"""A POHMM written down a second time, as slowly and plainly as possible: every path is enumerated.

Densities come from scipy, marginals from loops over the paper's formulas. Nothing here uses the package.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy import special, stats

FAMILIES = ("normal", "lognormal", "gamma", "exponential", "student", "logstudent")


def log_density(family, x, params):
    """ln f(x) for one value and one set of parameters."""
    p = params
    if family == "normal":
        return stats.norm.logpdf(x, p["loc"], p["scale"])
    if family == "lognormal":
        return stats.lognorm.logpdf(x, s=p["scale"], scale=np.exp(p["loc"]))
    if family == "gamma":
        return stats.gamma.logpdf(x, a=p["shape"], scale=p["scale"])
    if family == "exponential":
        return stats.expon.logpdf(x, scale=p["scale"])
    if family == "student":
        return stats.t.logpdf(x, p["df"], p["loc"], p["scale"])
    return stats.t.logpdf(np.log(x), p["df"], p["loc"], p["scale"]) - np.log(x)


def mixed_moments(family, rows, weights):
    """One distribution of the family with the mixture's moments, as model.md defines them."""

    def mix(mean, variance):
        together = sum(w * a for w, a in zip(weights, mean, strict=True))
        return together, sum(
            w * (v + (a - together) ** 2) for w, a, v in zip(weights, mean, variance, strict=True)
        )

    if family == "gamma":
        mean, variance = mix(
            [r["shape"] * r["scale"] for r in rows], [r["shape"] * r["scale"] ** 2 for r in rows]
        )
        return {"shape": mean**2 / variance, "scale": variance / mean}
    if family == "exponential":
        return {"scale": sum(w * r["scale"] for w, r in zip(weights, rows, strict=True))}
    loc, square = mix([r["loc"] for r in rows], [r["scale"] ** 2 for r in rows])
    mixed = {"loc": loc, "scale": np.sqrt(square)}
    return mixed | {"df": rows[0]["df"]} if "df" in rows[0] else mixed


@dataclass
class Truth:
    """Parameters as plain arrays; the event type m is an unknown one."""

    types: list
    start: np.ndarray
    trans: np.ndarray
    emission: list  # (family, {name: (m, M)})
    event_start: np.ndarray
    event_trans: np.ndarray
    prob: np.ndarray = field(init=False)

    def __post_init__(self):
        self.m, self.M = self.start.shape
        # The stationary distribution by brute force: a very long walk.
        self.prob = np.linalg.matrix_power(self.event_trans, 4096)[0]

    @classmethod
    def random(cls, rng, m=3, n_states=2, families=FAMILIES, zeros=False):
        """Parameters drawn at random; with `zeros` some steps and starts are impossible."""
        start = rng.dirichlet(np.ones(n_states), m)
        trans = rng.dirichlet(np.ones(n_states), (m, m, n_states))
        if zeros:
            trans[..., -1] = 0.0
            start[:, -1] = 0.0
            trans /= trans.sum(-1, keepdims=True)
            start /= start.sum(-1, keepdims=True)
        emission = [(family, random_params(rng, family, (m, n_states))) for family in families]
        return cls(
            [f"k{w}" for w in range(m)],
            start,
            trans,
            emission,
            rng.dirichlet(np.ones(m)),
            rng.dirichlet(np.ones(m), m),
        )

    def arguments(self):
        """What `POHMM.from_parameters` takes."""
        return self.types, self.start, self.trans, self.emission, self.event_start, self.event_trans

    def startprob(self, w):
        if w < self.m:
            return self.start[w]
        return sum(self.event_start[v] * self.start[v] for v in range(self.m))

    def step(self, before, after):
        """a[i, j | ψ, ω], marginal where a type is unknown (Eqs. 26–28)."""
        m, a, e = self.m, self.trans, self.event_trans
        if before < m and after < m:
            return a[before, after]
        if before < m:
            return sum(a[before, w] * e[before, w] for w in range(m))
        if after < m:
            total = sum(e[v, after] for v in range(m))
            return sum(a[v, after] * e[v, after] for v in range(m)) / total
        return sum(a[v, w] * e[v, w] for v in range(m) for w in range(m)) / m

    def params(self, k, w, j):
        family, table = self.emission[k]
        if w < self.m:
            return {name: values[w, j] for name, values in table.items()}
        rows = [{name: values[v, j] for name, values in table.items()} for v in range(self.m)]
        return mixed_moments(family, rows, self.prob)

    def log_emission(self, x, w, j):
        """ln f(x; b[j | ω]), missing values left out."""
        return sum(
            log_density(self.emission[k][0], value, self.params(k, w, j))
            for k, value in enumerate(x)
            if not np.isnan(value)
        )

    def paths(self, x, events):
        """Every path of states and its ln P(x, z | Ω)."""
        emission = [
            [self.log_emission(row, w, j) for j in range(self.M)] for row, w in zip(x, events, strict=True)
        ]
        with np.errstate(divide="ignore"):
            start = np.log(self.startprob(events[0]))
            steps = [np.log(self.step(a, b)) for a, b in itertools.pairwise(events)]
        result = {}
        for path in itertools.product(range(self.M), repeat=len(x)):
            total = start[path[0]] + sum(emission[n][j] for n, j in enumerate(path))
            result[path] = total + sum(steps[n][i, j] for n, (i, j) in enumerate(itertools.pairwise(path)))
        return result

    def log_likelihood(self, x, events):
        return special.logsumexp(list(self.paths(x, events).values()))

    def log_events(self, events):
        """ln P(Ω)."""
        with np.errstate(divide="ignore"):
            return np.log(self.event_start[events[0]]) + sum(
                np.log(self.event_trans[a, b]) for a, b in itertools.pairwise(events)
            )

    def completions(self, events):
        """Every way to fill in the unknown types."""
        choices = [range(self.m) if w == self.m else [w] for w in events]
        return list(itertools.product(*choices))


def random_params(rng, family, shape):
    if family == "gamma":
        return {"shape": rng.uniform(1, 6, shape), "scale": rng.uniform(0.3, 2, shape)}
    if family == "exponential":
        return {"scale": rng.uniform(0.3, 3, shape)}
    params = {"loc": rng.normal(0, 1, shape), "scale": rng.uniform(0.3, 1.5, shape)}
    return params | {"df": np.full(shape, 4.0)} if "student" in family else params


def random_values(rng, families, n, missing=0.0):
    """Values that each family can emit, some of them missing."""
    columns = [
        rng.normal(0, 1.5, n) if f in ("normal", "student") else rng.lognormal(0, 1, n) for f in families
    ]
    values = np.stack(columns, axis=1)
    values[rng.random(values.shape) < missing] = np.nan
    return values
