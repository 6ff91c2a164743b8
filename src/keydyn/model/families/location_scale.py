"""Families with a location and a scale: their common base classes, the normal and the log-normal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.engine.densities import HALF_LOG_TAU
from keydyn.model.engine.sums import merge_moments, mixture_moments, weighted_moments
from keydyn.model.families.family import (
    GREATEST,
    NO_MASS,
    Family,
    Params,
    Stats,
    at_least,
    check_positive,
    register,
    where_some,
)

LARGEST_FLOAT = float(np.finfo(float).max)


class LocationScale(Family):
    """Base of families with parameters `loc` and `scale`.

    The marginal has the location and the squared scale of the mixture.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    location_scale: ClassVar[bool] = True

    def location(self, params: Params) -> Floats:
        return params["loc"]

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        loc = mean + shift
        return {"loc": loc, "scale": scale + np.zeros(loc.shape)}

    def within(self, drawn: Floats) -> Floats:
        """Draws clipped to the values that a family on the linear scale can take."""
        return np.clip(drawn, Family.lowest, Family.highest)

    def marginal(self, params: Params, weights: Floats) -> Params:
        loc, square = mixture_moments(params["loc"], params["scale"] ** 2, weights)
        return {"loc": loc, "scale": np.sqrt(square)}

    def check(self, params: Params) -> None:
        check_positive(params, "scale")
        if (np.abs(params["loc"]) > GREATEST).any():
            raise ValueError(f"loc must be between -{GREATEST:g} and {GREATEST:g}")


class LogScale(Family):
    """Mixin that gives ln x, for positive x, the distribution of the family after it in the list of bases.

    That family must have its own `cdf`, `quantile` and `draw`: the defaults would integrate the density of x.
    """

    lowest: ClassVar[float] = 5e-324
    highest: ClassVar[float] = LARGEST_FLOAT
    domain: ClassVar[str] = "greater than zero"
    on_log_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        log_x = np.log(x)
        return super().log_density(log_x, params) - log_x  # type: ignore[safe-super]

    def cdf(self, x: Floats, params: Params) -> Floats:
        x = np.asarray(x, dtype=np.float64)
        log_x = np.log(x, out=np.full_like(x, -np.inf), where=x > 0)
        return super().cdf(log_x, params)

    def quantile(self, q: Floats, params: Params) -> Floats:
        return exp_or_inf(super().quantile(q, params))

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        """Random values; where e^x would overflow or underflow, the nearest positive number."""
        drawn = super().draw(generator, params)
        return np.exp(np.clip(drawn, -math.log(LARGEST_FLOAT), math.log(LARGEST_FLOAT)))


def of_working_values(family: Family) -> Family:
    """The family of ln x if this family is on the log scale, otherwise the family itself."""
    if not isinstance(family, LogScale):
        return family
    kind = next(base for base in type(family).__bases__ if base is not LogScale)
    linear: Family = kind(**family.settings())
    return linear


def exp_or_inf(x: Floats) -> Floats:
    """e^x, without a warning where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(x)


@register
@dataclass(frozen=True)
class Normal(LocationScale):
    """The normal distribution: mean `loc`, standard deviation `scale`.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Normal
    >>> x = np.random.default_rng(0).normal(100.0, 5.0, (500, 1))
    >>> HMM(n_states=1, emission=Normal()).fit(x).emission_[0].loc.round(-1).tolist()
    [[100.0]]
    """

    name: ClassVar[str] = "normal"

    def log_density(self, x: Floats, params: Params) -> Floats:
        standard = (x - params["loc"]) / params["scale"]
        return -0.5 * standard**2 - np.log(params["scale"]) - HALF_LOG_TAU

    def cdf(self, x: Floats, params: Params) -> Floats:
        return np.asarray(special.ndtr((x - params["loc"]) / params["scale"]))

    def quantile(self, q: Floats, params: Params) -> Floats:
        return params["loc"] + params["scale"] * special.ndtri(q)

    def mean(self, params: Params) -> Floats:
        return params["loc"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return self.within(generator.normal(params["loc"], params["scale"]))

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, mean, square = weighted_moments(rows, n_rows, posterior, self.working(x))
        return {"count": count, "mean": mean, "square": square}

    def merge(self, a: Stats, b: Stats) -> Stats:
        return merge_moments(a, b)

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        count, mean = stats["count"], stats["mean"]
        some = (count > NO_MASS) | (count_floor > 0.0)
        divisor = np.where(some, np.maximum(count, max(count_floor, 5e-324)), 1.0)
        loc = count * mean / divisor if count_floor > 0.0 else mean
        # Σγ(x − loc)², for a loc that is not the mean where the divisor was raised
        scale, floored = at_least(np.sqrt((stats["square"] + count * (mean - loc) ** 2) / divisor), min_scale)
        return where_some(some, {"loc": loc, "scale": scale}, current), floored & some


@register
@dataclass(frozen=True)
class LogNormal(LogScale, Normal):
    """The log-normal (Eq. 16): ln x is normal with mean `loc` = η and standard deviation `scale` = ρ.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import LogNormal
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.3, (500, 1))
    >>> HMM(n_states=1, emission=LogNormal()).fit(x).emission_[0].loc.round(1).tolist()
    [[5.0]]
    """

    name: ClassVar[str] = "lognormal"

    def mean(self, params: Params) -> Floats:
        return exp_or_inf(params["loc"] + 0.5 * params["scale"] ** 2)
