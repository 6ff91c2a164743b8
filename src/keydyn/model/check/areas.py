"""The exact area between the empirical and a model's distribution function.

Between two neighbouring values the empirical distribution function is constant and the model's rises, so they
cross at most once. The crossings are found first; between them the difference has one sign, and the area is a
difference of two integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers
from keydyn.model.engine import walks
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.families import Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.families.family import Emission, Family, Params
from keydyn.model.families.location_scale import exp_or_inf
from keydyn.model.theta.lattice import EventIndex, walked
from keydyn.model.theta.parameters import Parameters

# The function that gives ∫ F of C components up to points (Y,), as (Y, C), and the components' means (C,).
Integral = tuple[Callable[[Floats], Floats], Floats]
# Beyond these standard normal scores the probability is 6e-16, about a rounding error.
SCORES = np.linspace(-8.0, 8.0, 33)
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(10)


@dataclass(frozen=True)
class Mixture:
    """A mixture of distributions of one family.

    ∫ F has a closed form for the normal, the log-normal, Student's t, the exponential and the gamma.
    Otherwise it is integrated numerically between their own quantiles, where F is smooth whatever its scale.

    Attributes
    ----------
    distribution : the family; params : (C,) each, of C components; weights : (C,), adding up to one
    over_log : whether points are ln x, over which integrals are taken, rather than x
    """

    distribution: Family
    params: Params
    weights: Floats
    over_log: bool

    def points(self, x: Floats) -> Floats:
        """The values on the scale of points: x, or ln x."""
        return np.log(x) if self.over_log else x

    def cdf(self, y: Floats) -> Floats:
        """F at points (Y,)."""
        values: Floats = self._component_cdf(y[:, None]) @ self.weights
        return values

    def integral(self) -> tuple[Callable[[Floats], Floats], float]:
        """The function ∫ F up to y, and the mean; ∫ (1 − F) above y is then ∫ F − y + mean."""
        closed = CLOSED_FORMS.get((type(self.distribution), self.over_log))
        each, means = self._by_quadrature() if closed is None else closed(self.params)
        return lambda y: each(y) @ self.weights, float(means @ self.weights)

    def _component_cdf(self, y: Floats) -> Floats:
        return self.distribution.cdf(np.exp(y) if self.over_log else y, self.params)

    def _by_quadrature(self) -> Integral:
        """The integral by Gauss–Legendre quadrature between the components' quantiles."""
        x = self.distribution.quantile(special.ndtr(SCORES)[:, None], self.params)
        x = np.clip(x, self.distribution.lowest, self.distribution.highest)
        nodes = self.points(x)
        between = self._between(nodes[:-1], nodes[1:])
        up_to = np.concatenate([np.zeros((1, nodes.shape[1])), np.cumsum(between, axis=0)])
        column = np.arange(nodes.shape[1])

        def integral(y: Floats) -> Floats:
            below = np.maximum((nodes[None] <= y[:, None, None]).sum(axis=1) - 1, 0)
            low = nodes[below, column]
            inside = np.clip(y[:, None], low, nodes[-1])
            # Above the last node the distribution function is one.
            beyond = np.maximum(y[:, None] - nodes[-1], 0.0)
            total: Floats = up_to[below, column] + self._between(low, inside) + beyond
            return total

        return integral, nodes[-1] - up_to[-1]

    def _between(self, low: Floats, high: Floats) -> Floats:
        """∫ F from low to high, both (Y, C), one column per component."""
        half = 0.5 * (high - low)
        y = low[:, None] + half[:, None] * (1.0 + POINTS[:, None])
        total: Floats = half * np.einsum("p,ypc->yc", WEIGHTS, self._component_cdf(y))
        return total


def _normal(params: Params) -> Integral:
    loc, scale = params["loc"], params["scale"]

    def integral(y: Floats) -> Floats:
        z = (y[:, None] - loc) / scale
        total: Floats = scale * (z * special.ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
        return total

    return integral, loc


def _lognormal(params: Params) -> Integral:
    loc, scale = params["loc"], params["scale"]
    mean = exp_or_inf(loc + 0.5 * scale**2)
    if not np.isfinite(mean).all():
        raise ValueError(
            f"a log-normal with a log-deviation of {float(scale.max()):g} has a mean too large for a number: "
            "take areas over ln x, scale='log'"
        )

    def integral(y: Floats) -> Floats:
        x = np.maximum(y[:, None], 0.0)
        z = (np.log(x, out=np.full_like(x, -np.inf), where=x > 0) - loc) / scale
        total: Floats = x * special.ndtr(z) - mean * special.ndtr(z - scale)
        return total

    return integral, mean


def _student(params: Params) -> Integral:
    loc, scale, df = params["loc"], params["scale"], params["df"]
    if (df <= 1.0).any():
        raise ValueError(
            f"Student's t with {float(df.min()):g} degrees of freedom has no finite mean, so that the area "
            "between distribution functions is infinite: it needs more than one"
        )

    standard: Params = {"loc": np.zeros(1), "scale": np.ones(1), "df": df}

    def integral(y: Floats) -> Floats:
        z = (y[:, None] - loc) / scale
        density = np.exp(Student().log_density(z, standard))
        return scale * (z * Student().cdf(z, standard) + density * (df + z**2) / (df - 1.0))

    return integral, loc


def _exponential(params: Params) -> Integral:
    scale = params["scale"]

    def integral(y: Floats) -> Floats:
        x = np.maximum(y[:, None], 0.0)
        return x + scale * np.expm1(-x / scale)

    return integral, scale


def _gamma(params: Params) -> Integral:
    shape, scale = params["shape"], params["scale"]

    def integral(y: Floats) -> Floats:
        x = np.maximum(y[:, None], 0.0)
        below, weighted = special.gammainc(shape, x / scale), special.gammainc(shape + 1.0, x / scale)
        total: Floats = x * below - shape * scale * weighted
        return total

    return integral, shape * scale


# Closed forms by family, and by whether integrals are over ln x.
CLOSED_FORMS: dict[tuple[type[Family], bool], Callable[[Params], Integral]] = {
    (Normal, False): _normal,
    (LogNormal, True): _normal,
    (LogNormal, False): _lognormal,
    (Student, False): _student,
    (LogStudent, True): _student,
    (Exponential, False): _exponential,
    (Gamma, False): _gamma,
}


SCALES = ("auto", "linear", "log")
MARGINALS = ("exact", "printed", "states")
# The error of the area is of the order of the squared error of a crossing.
CROSSING_TOLERANCE = 1e-10


class Stretches(NamedTuple):
    """Stretches of sorted values, from index `first` to index `last`, with the sign of F − F_D.

    The sign is 0 if the two cross within a stretch, which then has two neighbouring values.
    """

    first: Integers
    last: Integers
    sign: Integers


def area(values: Floats, mixture: Mixture) -> float:
    """∫ |F_D − F| (Eq. 40) over the mixture's scale; `values` (N,) are points of it, in any order."""
    distinct, counts = np.unique(values, return_counts=True)
    level = np.cumsum(counts) / len(values)
    integral, mean = mixture.integral()
    if len(distinct) == 1:
        edge = integral(distinct)[0]
        return float(2.0 * edge - distinct[0] + mean)
    stretches = _stretches(distinct, level, mixture)
    points, empirical, sign = _breaks(distinct, level, stretches, mixture)
    of_model = integral(points)
    between = np.sum(sign * (np.diff(of_model) - np.diff(empirical)))
    above = of_model[-1] - points[-1] + mean
    return float(of_model[0] + between + above)


def _stretches(distinct: Floats, level: Floats, mixture: Mixture) -> Stretches:
    """Halve the range until all signs are known; as F rises, long stretches are settled at once."""
    first, last = np.array([0]), np.array([len(distinct) - 1])
    low, high = mixture.cdf(distinct[:1]), mixture.cdf(distinct[-1:])
    done: list[tuple[Integers, Integers, Integers]] = []
    while len(first):
        above, below = low >= level[last - 1], high <= level[first]
        known = above | below | (last - first == 1)
        sign = np.where(above, 1, np.where(below, -1, 0))
        done.append((first[known], last[known], sign[known]))
        first, last, low, high = first[~known], last[~known], low[~known], high[~known]
        middle = (first + last) // 2
        at_middle = mixture.cdf(distinct[middle])
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
        low, high = np.concatenate([low, at_middle]), np.concatenate([at_middle, high])
    starts, ends, signs = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.argsort(starts)
    return Stretches(starts[order], ends[order], signs[order])


def _breaks(
    distinct: Floats, level: Floats, stretches: Stretches, mixture: Mixture
) -> tuple[Floats, Floats, Integers]:
    """The points where the sign changes, ∫ F_D up to each, and the sign between neighbouring points."""
    up_to = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(distinct))])
    crossing = stretches.sign == 0
    place = stretches.first[crossing]
    crossed = _crossings(distinct[place], distinct[place + 1], level[place], mixture)
    # A crossing splits its stretch: F is below the level before it and above after it.
    points = np.concatenate([distinct[stretches.first], crossed, distinct[-1:]])
    empirical = np.concatenate(
        [up_to[stretches.first], up_to[place] + level[place] * (crossed - distinct[place]), up_to[-1:]]
    )
    sign = np.concatenate([np.where(crossing, -1, stretches.sign), np.ones(len(place), dtype=np.int64)])
    # Sorted by index, not by value, because a crossing can equal the next value up to rounding.
    order = np.argsort(np.concatenate([stretches.first, place + 0.5]))
    sign = sign[order]
    order = np.append(order, len(points) - 1)
    changes = np.concatenate([[True], sign[1:] != sign[:-1], [True]])
    return points[order][changes], empirical[order][changes], sign[changes[:-1]]


def _crossings(low: Floats, high: Floats, level: Floats, mixture: Mixture) -> Floats:
    """The points between low and high where F reaches the level, by the Illinois method (regula falsi)."""
    middle, side = low, np.zeros(len(low))
    under, over = mixture.cdf(low) - level, mixture.cdf(high) - level
    for _ in range(100 if len(low) else 0):
        middle = np.clip((low * over - high * under) / (over - under), low, high)
        error = mixture.cdf(middle) - level
        if (np.abs(error) < CROSSING_TOLERANCE).all():
            break
        # The value at an end that stays for the second time is halved, so that both ends move.
        rising = error < 0.0
        over = np.where(rising, np.where(side > 0, 0.5, 1.0) * over, error)
        under = np.where(rising, error, np.where(side < 0, 0.5, 1.0) * under)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        side = np.where(rising, 1.0, -1.0)
    return middle


def over_log(emission: Emission, scale: str) -> bool:
    """Whether areas are taken over ln x: as `scale` says, or for "auto" only if x has no finite mean."""
    if scale not in SCALES:
        raise ValueError(f"scale must be {' or '.join(map(repr, SCALES))}, not {scale!r}")
    distribution = emission.distribution
    if scale == "log" and distribution.lowest < 0.0:
        raise ValueError(f"a {distribution.name} emission can be negative: scale cannot be 'log'")
    without_mean = bool(np.isinf(distribution.mean(emission.params)).all())
    if scale == "linear" and without_mean:
        raise ValueError(
            f"a {distribution.name} emission has no finite mean, so that the area over x is infinite: "
            "take it over ln x, scale='log'"
        )
    return scale == "log" or (without_mean and distribution.lowest > 0.0)


def check_marginal(marginal: str) -> None:
    """Raise `ValueError` if this is not one of `MARGINALS`."""
    if marginal not in MARGINALS:
        raise ValueError(f"marginal must be {' or '.join(map(repr, MARGINALS))}, not {marginal!r}")


def feature_mixture(
    parameters: Parameters, index: EventIndex, present: Floats, feature: int, over_log: bool, marginal: str
) -> Mixture:
    """The model's marginal density g (Eq. 41) of one feature, as a mixture.

    "exact" is the corrected equation, Σ Π[ω] Π[j | ω] f(x; b[j | ω]); "printed" has Π[j] for Π[j | ω];
    "states" has one distribution per state, Σ Π[j] f(x; b[j]). Π is computed along these event sequences;
    `present` (N,) is 1 where the feature has a value, else 0.
    """
    occupancy = np.empty((len(index.codes), parameters.n_states))
    walks.propagate(walked(parameters, index), occupancy)
    emission = parameters.emission_tables[feature]
    n_rows = len(next(iter(emission.params.values())))
    shares = weighted_sums(index.codes, n_rows, occupancy * present[:, None])
    if marginal == "states":
        emission = parameters.known_marginal().emission[feature]
        shares = shares.sum(axis=0)
    elif marginal == "printed":
        shares = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0) / shares.sum()
    used = shares > 0.0
    return Mixture(emission.distribution, emission.at(used), shares[used] / shares.sum(), over_log)


def feature_area(
    parameters: Parameters, index: EventIndex, x: Floats, feature: int, over_log: bool, marginal: str
) -> float:
    """The area between the distribution of a feature's values (N,) and the model's marginal."""
    present = ~np.isnan(x)
    if not present.any():
        raise ValueError(f"there is no value of feature {feature}: no area can be taken")
    mixture = feature_mixture(parameters, index, present.astype(np.float64), feature, over_log, marginal)
    return area(mixture.points(x[present]), mixture)
