"""Algorithm 1 written a second time, as plainly as possible: loops over sequences, types and states.

It follows the equations in their corrected form and the published settings where they differ. Densities come
from scipy, forward and backward are sums of logarithms, roots are found by bisection. Nothing here uses the
package.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from scipy import optimize, special

from tests.model.enumeration import log_density, mixed_moments

ON_LOG_SCALE = ("lognormal", "logstudent", "gamma")
PARAMETERS = {
    "normal": ("loc", "scale"),
    "lognormal": ("loc", "scale"),
    "student": ("loc", "scale", "df"),
    "logstudent": ("loc", "scale", "df"),
    "gamma": ("shape", "scale"),
    "exponential": ("scale",),
    "categorical": ("p0", "p1", "p2"),
}
# Less than this is no evidence at all.
NO_MASS = 1e-250


def values_of(rng, families, n, missing=0.0):
    """Values that each family can emit, some of them missing; the first row is complete."""
    columns = []
    for family in families:
        if family == "categorical":
            columns.append(rng.integers(0, 3, n).astype(float))
        else:
            columns.append(
                rng.normal(0, 1.5, n) if family in ("normal", "student") else rng.lognormal(0, 1, n)
            )
    values = np.stack(columns, axis=1)
    values[1:][rng.random((n - 1, len(families))) < missing] = np.nan
    return values


class ImpossibleError(Exception):
    """A sequence has no probability at all."""


@dataclass
class Sums:
    """What an expectation step adds up, each times the weight of its sequence."""

    log_likelihood: float
    start: np.ndarray  # (m + 1, M), γ₁ by first type; the last row is that of all sequences
    first_seen: np.ndarray  # (m, M), γ at the first event of the type in each sequence
    steps: np.ndarray  # (m, m, M, M), ξ
    states: np.ndarray  # (N, M), γ


@dataclass
class PlainFit:
    """A fit. `codes` are event types 0 … m − 1, m where there is none; `settings` are those of `POHMM`.

    It is `faint` if exact marginals were shares of a sum that underflow may have decided.
    """

    X: np.ndarray
    codes: np.ndarray
    lengths: list
    weights: np.ndarray
    families: tuple
    settings: dict
    m: int
    history: list = field(default_factory=list)
    faint: bool = False

    def __post_init__(self):
        self.M = self.settings["n_states"]
        self.ends = list(itertools.pairwise(np.cumsum([0, *self.lengths])))
        self.of_event = np.repeat(self.weights, self.lengths)
        self.working = np.stack(
            [
                np.log(self.X[:, k]) if family in ON_LOG_SCALE else self.X[:, k]
                for k, family in enumerate(self.families)
            ],
            axis=1,
        )
        self.count()
        self.least = [self.least_scale(k) for k in range(len(self.families))]
        self.begin()

    def count(self):
        """f(ω), f(ψ, ω) and how many sequences begin with ω; the event chain."""
        m = self.m
        self.types, self.begins, self.pairs = np.zeros(m), np.zeros(m), np.zeros((m, m))
        for (first, last), weight in zip(self.ends, self.weights, strict=True):
            own = self.codes[first:last]
            if own[0] < m:
                self.begins[own[0]] += weight
            for w in own:
                if w < m:
                    self.types[w] += weight
            for v, w in itertools.pairwise(own):
                if v < m and w < m:
                    self.pairs[v, w] += weight
        self.prob = self.types / self.types.sum()
        self.entering, self.leaving = self.pairs.sum(axis=0), self.pairs.sum(axis=1)
        # Any type may follow one that nothing follows.
        self.chain = shares_of(self.pairs)

    def least_scale(self, k):
        if self.settings["min_scale"] != "auto":
            return self.settings["min_scale"]
        _, mean, deviation = self.moments(k, np.ones(len(self.X), dtype=bool))
        logs = self.families[k] in ON_LOG_SCALE
        if deviation > 1e-12 * max(abs(mean), 1.0 if logs else 0.0):
            return 1e-3 * deviation
        return 1e-3 if logs else 1e-6 * max(1.0, np.nanmax(np.abs(self.X[:, k])))

    def moments(self, k, chosen):
        """Weight, mean and standard deviation of the chosen events that have a value."""
        there = chosen & ~np.isnan(self.working[:, k])
        weight, y = self.of_event[there], self.working[there, k]
        if weight.sum() == 0.0:
            return 0.0, math.nan, math.nan
        mean = (weight * y).sum() / weight.sum()
        return weight.sum(), mean, math.sqrt((weight * (y - mean) ** 2).sum() / weight.sum())

    def begin(self):
        """Starting values (Section 3.5), smoothed."""
        m, M, settings = self.m, self.M, self.settings
        self.start = np.full((m, M), 1 / M)
        self.trans = np.full((m, m, M, M), 1 / M)
        self.emission = []
        for k, family in enumerate(self.families):
            _, overall, spread = self.moments(k, np.ones(len(self.X), dtype=bool))
            displaced = np.linspace(-settings["spread"], settings["spread"], M) if M > 1 else np.zeros(1)
            if k != settings["leading_feature"] and settings["spread_features"] == "leading":
                displaced = np.zeros(M)
            table = {name: np.zeros((m, M)) for name in PARAMETERS[family]}
            for w in range(m):
                weight, mean, deviation = self.moments(k, self.codes == w)
                if weight == 0.0:
                    mean, deviation = overall, spread
                unit = deviation if settings["spread_scale"] == "type" else spread
                for j in range(M):
                    own = begin_at(family, mean, max(deviation, self.least[k]), unit * displaced[j])
                    for name, value in own.items():
                        table[name][w, j] = value
            self.emission.append(table)
        self.marginal_start = np.full(M, 1 / M)
        self.marginal_trans = np.full((M, M), 1 / M)
        self.given_before = self.given_after = np.full((m, M, M), 1 / M)
        self.floored = [np.zeros((m, M), dtype=bool) for _ in self.families]
        shares = np.repeat(self.prob[:, None], M, axis=1)
        self.marginal_emission = [self.mixed(k, shares) for k in range(len(self.families))]
        self.smooth_emission()

    def run(self):
        """Expectation → maximisation → smoothing, until it gains too little."""
        for _ in range(self.settings["max_iter"]):
            self.sums = self.expectation()
            self.history.append(self.sums.log_likelihood)
            self.log_likelihood = self.sums.log_likelihood
            gain = self.history[-1] - self.history[-2] if len(self.history) > 1 else math.inf
            if gain < -1e-10 * (1.0 + abs(self.log_likelihood)):
                self.stop_reason = "decrease"
                return self
            if gain < self.settings["tol"] or gain == 0.0:
                self.stop_reason = "tol"
                return self
            self.maximise()
            self.smooth()
        self.sums = self.expectation()
        self.stop_reason, self.log_likelihood = "max_iter", self.sums.log_likelihood
        return self

    def step(self, v, w):
        """a[i, j | ψ, ω], marginal where a type is unknown."""
        if v < self.m and w < self.m:
            return self.trans[v, w]
        if v < self.m:
            return self.given_before[v]
        return self.given_after[w] if w < self.m else self.marginal_trans

    def log_densities(self):
        floor = self.settings["density_floor"]
        total = np.zeros((len(self.X), self.M))
        for k, family in enumerate(self.families):
            for w, j in itertools.product(range(self.m + 1), range(self.M)):
                here = (self.codes == w) & ~np.isnan(self.X[:, k])
                if not here.any():
                    continue
                table = self.emission[k] if w < self.m else self.marginal_emission[k]
                params = {name: values[w, j] if w < self.m else values[j] for name, values in table.items()}
                logs = density(family, self.X[here, k], params)
                total[here, j] += logs if floor is None else np.maximum(logs, math.log(floor))
        return total

    def expectation(self):
        m, M = self.m, self.M
        log_b = self.log_densities()
        sums = Sums(
            0.0, np.zeros((m + 1, M)), np.zeros((m, M)), np.zeros((m, m, M, M)), np.zeros((len(self.X), M))
        )
        with np.errstate(divide="ignore"):
            for (first, last), weight in zip(self.ends, self.weights, strict=True):
                codes, b = self.codes[first:last], log_b[first:last]
                log_a = [np.log(self.step(v, w)) for v, w in itertools.pairwise(codes)]
                start = self.start[codes[0]] if codes[0] < m else self.marginal_start
                alpha, beta = np.zeros((len(b), M)), np.zeros((len(b), M))
                alpha[0] = np.log(start) + b[0]
                for n in range(1, len(b)):
                    alpha[n] = log_sum(alpha[n - 1][:, None] + log_a[n - 1], axis=0) + b[n]
                for n in range(len(b) - 2, -1, -1):
                    beta[n] = log_sum(log_a[n] + b[n + 1] + beta[n + 1], axis=1)
                total = log_sum(alpha[-1], axis=0)
                if total == -math.inf:
                    raise ImpossibleError
                gamma = weight * np.exp(alpha + beta - total)
                sums.log_likelihood += weight * float(total)
                sums.states[first:last] = gamma
                sums.start[m] += gamma[0]
                if codes[0] < m:
                    sums.start[codes[0]] += gamma[0]
                for w in {int(w) for w in codes if w < m}:
                    sums.first_seen[w] += gamma[list(codes).index(w)]
                for n, (v, w) in enumerate(itertools.pairwise(codes)):
                    if v < m and w < m:
                        joint = alpha[n][:, None] + log_a[n] + b[n + 1] + beta[n + 1] - total
                        sums.steps[v, w] += weight * np.exp(joint)
        return sums

    def occupancy(self):
        """Σ γ of the events of each type."""
        return np.array([self.sums.states[self.codes == w].sum(axis=0) for w in range(self.m)])

    def maximise(self):
        """Eqs. 12, 14 and 15, then the marginals of what they give."""
        m, sums, floor, fixed = self.m, self.sums, self.settings["count_floor"], self.settings["fixed"]
        self.marginal_start = shares_of(np.maximum(sums.start[m], floor))
        if "start" not in fixed:
            first = self.settings["start_estimate"] == "first_occurrence"
            for w in range(m):
                row = np.maximum((sums.first_seen if first else sums.start)[w], floor)
                self.start[w] = row / row.sum() if row.sum() > NO_MASS else self.marginal_start
        if "transitions" not in fixed:
            for v, w, i in itertools.product(range(m), range(m), range(self.M)):
                row = np.maximum(sums.steps[v, w, i], floor)
                if self.pairs[v, w] > 0 and row.sum() > NO_MASS:
                    self.trans[v, w, i] = row / row.sum()
        masses = [self.maximise_emission(k, "emission" in fixed) for k in range(len(self.families))]
        if self.settings["marginals"] == "exact":
            joint = sums.steps
            self.given_before, self.given_after = joint.sum(axis=1), joint.sum(axis=0)
            shares = [shares_of(mass.T).T for mass in masses]
            rows = [self.given_before[self.leaving > 0], self.given_after[self.entering > 0]]
            least = min(row.sum(axis=-1).min(initial=1.0) for row in rows)
            self.faint |= min(least, *(mass.sum(axis=0).min() for mass in masses)) < NO_MASS
        else:
            joint = self.trans * self.chain[:, :, None, None]
            self.given_before, self.given_after = joint.sum(axis=1), joint.sum(axis=0)
            shares = [np.repeat(self.prob[:, None], self.M, axis=1)] * len(self.families)
        self.marginal_trans = shares_of(joint.sum(axis=(0, 1)))
        self.given_before, self.given_after = shares_of(self.given_before), shares_of(self.given_after)
        self.marginal_emission = [self.mixed(k, shares[k]) for k in range(len(self.families))]

    def maximise_emission(self, k, fixed):
        """b[j | ω] of one feature; Σγ of the events that have a value, (m, M)."""
        family, table, mass = self.families[k], self.emission[k], np.zeros((self.m, self.M))
        floored = np.zeros((self.m, self.M), dtype=bool)
        for w, j in itertools.product(range(self.m), range(self.M)):
            here = (self.codes == w) & ~np.isnan(self.X[:, k])
            gamma, x = self.sums.states[here, j], self.X[here, k]
            mass[w, j] = gamma.sum()
            if not fixed:
                current = {name: values[w, j] for name, values in table.items()}
                found, floored[w, j] = best(
                    family, x, gamma, current, self.least[k], self.settings["count_floor"]
                )
                for name, value in found.items():
                    table[name][w, j] = value
        self.floored[k] = floored
        return mass

    def mixed(self, k, shares):
        """b[j]: one distribution with the mixture's moments."""
        table, found = self.emission[k], []
        for j in range(self.M):
            rows = [{name: values[w, j] for name, values in table.items()} for w in range(self.m)]
            found.append(mixture(self.families[k], rows, shares[:, j]))
        return {name: np.array([row[name] for row in found]) for name in table}

    def smooth(self):
        """Eqs. 32–36, corrected: everything towards the same marginals, in one pass."""
        rules, fixed = self.settings["smoothing"], self.settings["fixed"]
        if self.m == 1:
            return
        if rules["start"] is not None and "start" not in fixed:
            first = self.settings["start_estimate"] == "first_occurrence"
            keep = kept(rules["start"], self.types if first else self.begins)[:, None]
            self.start = keep * self.start + (1 - keep) * self.marginal_start
        if rules["transitions"] is not None and "transitions" not in fixed:
            for v, w in zip(*np.nonzero(self.pairs), strict=True):
                self.trans[v, w] = self.smoothed_step(v, w, self.trans[v, w])
        self.smooth_emission()

    def smoothed_step(self, v, w, own):
        rule, pair = self.settings["smoothing"]["transitions"], self.pairs[v, w]
        if rule == "frequency":
            a, b = 1 / (1 + pair + self.entering[w]), 1 / (1 + pair + self.leaving[v])
        else:
            a = b = rule / 2
        if self.settings["transition_weights"] != "published" and a + b > 1:
            a, b = a / (a + b), b / (a + b)
        mixed = (1 - a - b) * own + a * self.given_before[v] + b * self.given_after[w]
        return shares_of(np.maximum(mixed, 0.0))

    def smooth_emission(self):
        rule = self.settings["smoothing"]["emission"]
        if rule is None or "emission" in self.settings["fixed"] or self.m == 1:
            return
        keep = kept(rule, self.types)
        for k, family in enumerate(self.families):
            for w, j in itertools.product(range(self.m), range(self.M)):
                own = {name: values[w, j] for name, values in self.emission[k].items()}
                marginal = {name: values[j] for name, values in self.marginal_emission[k].items()}
                for name, value in between(family, own, marginal, keep[w]).items():
                    self.emission[k][name][w, j] = value

    def every_step(self):
        """(m, m, M, M); a pair that never occurred is uniform, smoothed as a count of zero would be."""
        table = self.trans.copy()
        for v, w in zip(*np.nonzero(self.pairs == 0), strict=True):
            table[v, w] = 1 / self.M
            if self.settings["smoothing"]["transitions"] is not None:
                table[v, w] = self.smoothed_step(v, w, table[v, w])
        return table


def kept(rule, counts):
    """What a type keeps of its own estimate."""
    return 1 - 1 / (1 + counts) if rule == "frequency" else np.full(len(counts), 1 - rule)


def shares_of(rows):
    """Rows that add up to one; a row of zeros becomes uniform."""
    total = rows.sum(axis=-1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1 / rows.shape[-1])


def log_sum(values, axis):
    return special.logsumexp(values, axis=axis)


def density(family, x, params):
    if family == "categorical":
        with np.errstate(divide="ignore"):
            return np.log(np.array([params["p0"], params["p1"], params["p2"]])[x.astype(int)])
    return log_density(family, x, params)


def begin_at(family, mean, deviation, shift):
    """One distribution of the family around mean + shift, on the scale of its moments."""
    if family == "gamma":
        # ln x has a standard deviation of about 1 / √shape.
        return {"shape": deviation**-2, "scale": math.exp(mean + shift) * deviation**2}
    if family == "exponential":
        return {"scale": max(mean, deviation) * math.exp(min(max(shift / deviation, -10.0), 10.0))}
    if family == "categorical":
        middle, width = min(max(mean + shift, 0.0), 2.0), max(deviation, 0.5)
        bell = np.exp(-0.5 * ((np.arange(3) - middle) / width) ** 2)
        return dict(zip(("p0", "p1", "p2"), 0.9 * bell / bell.sum() + 0.1 / 3, strict=True))
    params = {"loc": mean + shift, "scale": deviation}
    return params | {"df": 4.0} if "student" in family else params


def best(family, x, gamma, current, least, count_floor):
    """The parameters that maximise Σγ ln f, and whether the scale floor acted."""
    mass, y = gamma.sum(), np.log(x) if family in ON_LOG_SCALE else x
    if family in ("normal", "lognormal"):
        if mass <= NO_MASS and count_floor == 0.0:
            return current, False
        divisor = max(mass, count_floor)
        loc = (gamma * y).sum() / divisor
        scale = math.sqrt((gamma * (y - loc) ** 2).sum() / divisor)
        return {"loc": loc, "scale": max(scale, least)}, scale < least
    if mass <= max(NO_MASS, count_floor):
        return current, False
    if family == "categorical":
        return {f"p{c}": gamma[x == c].sum() / mass for c in range(3)}, False
    mean = (gamma * x).sum() / mass
    if family == "exponential":
        return {"scale": max(mean, least)}, mean < least
    if family == "gamma":
        excess = math.log(mean) - (gamma * y).sum() / mass
        largest = least**-2

        def gap(shape):
            return math.log(shape) - special.digamma(shape) - excess

        if gap(largest) >= 0.0:
            return {"shape": largest, "scale": mean / largest}, True
        shape = optimize.brentq(gap, 1e-3, largest, xtol=1e-13, rtol=1e-14)
        return {"shape": shape, "scale": mean / shape}, False
    # Liu and Rubin's weights under the current parameters, ν as it is.
    nu = current["df"]
    precision = gamma * (nu + 1) / (nu + ((y - current["loc"]) / current["scale"]) ** 2)
    loc = (precision * y).sum() / precision.sum()
    scale = math.sqrt((precision * (y - loc) ** 2).sum() / mass)
    return {"loc": loc, "scale": max(scale, least), "df": nu}, scale < least


def mixture(family, rows, shares):
    if family == "categorical":
        return {
            name: sum(share * row[name] for share, row in zip(shares, rows, strict=True)) for name in rows[0]
        }
    return mixed_moments(family, rows, shares)


def between(family, own, marginal, keep):
    """Interpolated: moments of the gamma, squared scales of the t families, parameters of all others."""

    def mix(a, b):
        return keep * a + (1 - keep) * b

    if family == "gamma":
        mean = mix(own["shape"] * own["scale"], marginal["shape"] * marginal["scale"])
        variance = mix(own["shape"] * own["scale"] ** 2, marginal["shape"] * marginal["scale"] ** 2)
        return {"shape": mean**2 / variance, "scale": variance / mean}
    mixed = {name: mix(own[name], marginal[name]) for name in own}
    if "student" in family:
        mixed["scale"] = math.sqrt(mix(own["scale"] ** 2, marginal["scale"] ** 2))
    return mixed
