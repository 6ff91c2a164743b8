"""The normal distribution, and the log-normal, which the paper uses for intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.sums import weighted_moments
from keydyn.model.families.family import NO_MASS, Params, Stats, at_least, register, where_some
from keydyn.model.families.location_scale import LocationScale, LogScale, exp_or_inf
from keydyn.model.moments import merge_moments

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


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
    ) -> tuple[Params, NDArray[np.bool_]]:
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
