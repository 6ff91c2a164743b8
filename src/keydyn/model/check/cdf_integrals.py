"""∫ F, the integral of a distribution function: what areas between distribution functions are made of.

It is taken over x, or over ln x. The integral of the normal, the log-normal, Student's t, the exponential and
the gamma has a closed form; that of any other family is integrated between its own quantiles, where its
distribution function is smooth whatever its scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from keydyn.arrays import Floats
from keydyn.model.families import Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.families.family import Family, Params
from keydyn.model.families.location_scale import exp_or_inf

# Beyond these standard normal scores lies a probability of 6e-16, less than a rounding error.
SCORES = np.linspace(-8.0, 8.0, 33)
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(10)


@dataclass(frozen=True)
class Mixture:
    """A mixture of distributions of one family.

    Attributes
    ----------
    distribution : the family; params : of C components, each (C,); weights : (C,), adding up to one
    over_log : whether points are ln x and integrals over it, or x itself
    """

    distribution: Family
    params: Params
    weights: Floats
    over_log: bool

    def points(self, x: Floats) -> Floats:
        """Values as points of the scale."""
        return np.log(x) if self.over_log else x

    def cdf(self, y: Floats) -> Floats:
        """F at points (Y,)."""
        values: Floats = self._component_cdf(y[:, None]) @ self.weights
        return values

    def integral(self) -> tuple[Callable[[Floats], Floats], float]:
        """The function ∫ F up to y, and the mean, ∫ (1 − F) of which above y is ∫ F − y + mean."""
        each, means = self._component_integrals()
        return lambda y: each(y) @ self.weights, float(means @ self.weights)

    def _component_cdf(self, y: Floats) -> Floats:
        return self.distribution.cdf(np.exp(y) if self.over_log else y, self.params)

    def _component_integrals(self) -> tuple[Callable[[Floats], Floats], Floats]:
        closed = CLOSED_FORMS.get((type(self.distribution), self.over_log))
        return self._by_quadrature() if closed is None else closed(self.params)

    def _by_quadrature(self) -> tuple[Callable[[Floats], Floats], Floats]:
        """Gauss and Legendre's rule between the components' quantiles."""
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


def _normal(params: Params) -> tuple[Callable[[Floats], Floats], Floats]:
    loc, scale = params["loc"], params["scale"]

    def integral(y: Floats) -> Floats:
        z = (y[:, None] - loc) / scale
        total: Floats = scale * (z * special.ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))
        return total

    return integral, loc


def _lognormal(params: Params) -> tuple[Callable[[Floats], Floats], Floats]:
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


def _student(params: Params) -> tuple[Callable[[Floats], Floats], Floats]:
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


def _exponential(params: Params) -> tuple[Callable[[Floats], Floats], Floats]:
    scale = params["scale"]

    def integral(y: Floats) -> Floats:
        x = np.maximum(y[:, None], 0.0)
        return x + scale * np.expm1(-x / scale)

    return integral, scale


def _gamma(params: Params) -> tuple[Callable[[Floats], Floats], Floats]:
    shape, scale = params["shape"], params["scale"]

    def integral(y: Floats) -> Floats:
        x = np.maximum(y[:, None], 0.0)
        below, weighted = special.gammainc(shape, x / scale), special.gammainc(shape + 1.0, x / scale)
        total: Floats = x * below - shape * scale * weighted
        return total

    return integral, shape * scale


# By family and whether integrals are over ln x.
CLOSED_FORMS: dict[
    tuple[type[Family], bool], Callable[[Params], tuple[Callable[[Floats], Floats], Floats]]
] = {
    (Normal, False): _normal,
    (LogNormal, True): _normal,
    (LogNormal, False): _lognormal,
    (Student, False): _student,
    (LogStudent, True): _student,
    (Exponential, False): _exponential,
    (Gamma, False): _gamma,
}
