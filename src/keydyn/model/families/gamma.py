"""The exponential and the gamma distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.engine.densities import HALF_LOG_TAU, STIRLING
from keydyn.model.engine.sums import mixture_moments, weighted_moments
from keydyn.model.families.family import (
    NO_MASS,
    Family,
    Params,
    Stats,
    at_least,
    check_positive,
    register,
    where_some,
)


@register
@dataclass(frozen=True)
class Exponential(Family):
    """The exponential distribution with mean `scale`.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Exponential
    >>> x = np.random.default_rng(0).exponential(100.0, (500, 1))
    >>> model = HMM(n_states=1, emission=Exponential()).fit(x)
    >>> bool(np.allclose(model.emission_[0].params["scale"], x.mean()))
    True
    """

    name: ClassVar[str] = "exponential"
    parameters: ClassVar[tuple[str, ...]] = ("scale",)
    lowest: ClassVar[float] = 0.0
    domain: ClassVar[str] = "zero or greater, at most 1e100"

    def log_density(self, x: Floats, params: Params) -> Floats:
        return -x / params["scale"] - np.log(params["scale"])

    def cdf(self, x: Floats, params: Params) -> Floats:
        return -np.expm1(-np.maximum(x, 0.0) / params["scale"])

    def quantile(self, q: Floats, params: Params) -> Floats:
        return -special.log1p(-np.asarray(q)) * params["scale"]

    def mean(self, params: Params) -> Floats:
        return params["scale"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return np.minimum(generator.exponential(params["scale"]), self.highest)

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        # Means must stay positive, so they are spread by factors e^(shift / scale).
        return {"scale": np.maximum(mean, scale) * np.exp(np.clip(shift / scale, -10.0, 10.0))}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, mean, _ = weighted_moments(rows, n_rows, posterior, x)
        return {"count": count, "sum": count * mean}

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        some = stats["count"] > max(NO_MASS, count_floor)
        scale, floored = at_least(stats["sum"] / np.where(some, stats["count"], 1.0), min_scale)
        return where_some(some, {"scale": scale}, current), floored & some

    def check(self, params: Params) -> None:
        check_positive(params, "scale")


@register
@dataclass(frozen=True)
class Gamma(Family):
    """The gamma distribution with parameters `shape` and `scale`, whose mean is their product.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Gamma
    >>> x = np.random.default_rng(0).gamma(4.0, 25.0, (500, 1))
    >>> sorted(HMM(n_states=1, emission=Gamma()).fit(x).emission_[0].params)
    ['scale', 'shape']
    """

    name: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[str, ...]] = ("shape", "scale")
    lowest: ClassVar[float] = 1e-100
    domain: ClassVar[str] = "greater than zero (1e-100 to 1e100)"
    on_log_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        shape, scale = params["shape"], params["scale"]
        ratio = x / scale
        direct = special.xlogy(shape - 1.0, ratio) - ratio - special.gammaln(shape) - np.log(scale)
        # Terms as large as the shape cancel in the direct formula; Stirling's series is free of them.
        large = np.maximum(shape, STIRLING)
        relative = ratio / large
        series = (1 / 12 - 1 / (360 * large**2)) / large
        cancelled = large * (np.log(relative) - (relative - 1.0)) + 0.5 * np.log(large) - series
        return np.where(shape > STIRLING, cancelled - HALF_LOG_TAU - np.log(x), direct)

    def cdf(self, x: Floats, params: Params) -> Floats:
        return np.asarray(special.gammainc(params["shape"], np.maximum(x, 0.0) / params["scale"]))

    def quantile(self, q: Floats, params: Params) -> Floats:
        return special.gammaincinv(params["shape"], q) * params["scale"]

    def mean(self, params: Params) -> Floats:
        return params["shape"] * params["scale"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return np.clip(generator.gamma(params["shape"], params["scale"]), self.lowest, self.highest)

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        # The standard deviation of ln x is about 1/√shape.
        middle = np.exp(np.clip(mean + shift, math.log(self.lowest), math.log(self.highest)))
        shape = np.broadcast_to(scale**-2.0, middle.shape).copy()
        return {"shape": shape, "scale": middle / shape}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, log_mean, _ = weighted_moments(rows, n_rows, posterior, np.log(x))
        _, mean, _ = weighted_moments(rows, n_rows, posterior, x)
        return {"count": count, "sum": count * mean, "log_sum": count * log_mean}

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        count = stats["count"]
        some = count > max(NO_MASS, count_floor)
        divisor = np.where(some, count, 1.0)
        mean = np.where(some, stats["sum"], 1.0) / divisor
        excess = np.log(mean) - np.where(some, stats["log_sum"], -1.0) / divisor
        largest = max(min_scale, 1e-100) ** -2.0
        # ln a − ψ(a) = excess; at the largest shape it is about 1 / (2a)
        floored = excess <= _log_minus_digamma(np.array(largest))
        shape = np.where(floored, largest, gamma_shape(np.where(floored, 1.0, excess)))
        return where_some(some, {"shape": shape, "scale": mean / shape}, current), floored & some

    def marginal(self, params: Params, weights: Floats) -> Params:
        return _gamma_from_moments(*mixture_moments(*_gamma_moments(params), weights))

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        own, other = _gamma_moments(params), _gamma_moments(marginal)
        mean, variance = (keep * a + (1.0 - keep) * b for a, b in zip(own, other, strict=True))
        return _gamma_from_moments(mean, variance)

    def check(self, params: Params) -> None:
        # Within these bounds neither x / scale nor x / scale / shape underflows or overflows.
        check_positive(params, "shape", "scale", least=1e-150, most=1e150)
        mean = "shape times scale"
        check_positive({mean: params["shape"] * params["scale"]}, mean, least=1e-150, most=1e150)


def gamma_shape(excess: Floats) -> Floats:
    """The a with ln a − ψ(a) = excess > 0, by Newton's method on 1/a (Minka), to full precision."""
    shape = (3.0 - excess + np.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
    for _ in range(8):
        value = _log_minus_digamma(shape) - excess
        slope = 1.0 / shape - special.polygamma(1, shape)
        shape = 1.0 / (1.0 / shape + value / (shape**2 * slope))
    return shape


def _log_minus_digamma(shape: Floats) -> Floats:
    """ln a − ψ(a); for large a, where the two are nearly equal, from ψ's asymptotic series."""
    large = np.maximum(shape, 20.0) ** -2.0
    series = large * (1 / 12 - large * (1 / 120 - large * (1 / 252 - large * (1 / 240 - large / 132))))
    direct = np.log(shape) - special.digamma(shape)
    return np.where(shape > 20.0, 0.5 / shape + series, direct)


def _gamma_moments(params: Params) -> tuple[Floats, Floats]:
    return params["shape"] * params["scale"], params["shape"] * params["scale"] ** 2


def _gamma_from_moments(mean: Floats, variance: Floats) -> Params:
    return {"shape": mean**2 / variance, "scale": variance / mean}
