"""What families with a location and a scale have in common, and what a family of ln x adds to one of x."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.families.family import GREATEST, Family, Params, check_positive
from keydyn.model.moments import mixture_moments

LARGEST_FLOAT = float(np.finfo(float).max)


class LocationScale(Family):
    """Location `loc` and scale `scale`; the marginal has the mixture's location and squared scale."""

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    location_scale: ClassVar[bool] = True

    def location(self, params: Params) -> Floats:
        return params["loc"]

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        loc = mean + shift
        return {"loc": loc, "scale": scale + np.zeros(loc.shape)}

    def within(self, drawn: Floats) -> Floats:
        """Draws as near as the values that a family on the linear scale takes."""
        return np.clip(drawn, Family.lowest, Family.highest)

    def marginal(self, params: Params, weights: Floats) -> Params:
        loc, square = mixture_moments(params["loc"], params["scale"] ** 2, weights)
        return {"loc": loc, "scale": np.sqrt(square)}

    def check(self, params: Params) -> None:
        check_positive(params, "scale")
        if (np.abs(params["loc"]) > GREATEST).any():
            raise ValueError(f"loc must be between -{GREATEST:g} and {GREATEST:g}")


class LogScale(Family):
    """Put before a family in the list of bases: x is positive, and ln x has the other's distribution.

    The other must have its own `cdf`, `quantile` and `draw`: the defaults would integrate the density of x.
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
        """The nearest positive number where e^x is none."""
        drawn = super().draw(generator, params)
        return np.exp(np.clip(drawn, -math.log(LARGEST_FLOAT), math.log(LARGEST_FLOAT)))


def of_working_values(family: Family) -> Family:
    """The family that ln x has if x has this one; itself for a family that works with x."""
    if not isinstance(family, LogScale):
        return family
    kind = next(base for base in type(family).__bases__ if base is not LogScale)
    linear: Family = kind(**family.settings())
    return linear


def exp_or_inf(x: Floats) -> Floats:
    """e^x, without a warning where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(x)
