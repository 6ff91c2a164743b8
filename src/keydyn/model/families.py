"""The emission families: normal, log-normal, gamma, exponential, Student's t and its log."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from keydyn.model.arrays import Floats, Integers
from keydyn.model.emissions import NO_MASS, Family, Params, Stats, add_stats, mixture_moments, register
from keydyn.model.sums import weighted_moments, weighted_sums

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
SMALLEST = 5e-324


def merge_moments(a: Stats, b: Stats, weight: str = "count") -> Stats:
    """Weights, means and squared deviations of two sets together (Chan, Golub and LeVeque)."""
    total = a[weight] + b[weight]
    share = np.divide(b[weight], total, out=np.zeros_like(total), where=total > 0)
    difference = b["mean"] - a["mean"]
    return {
        weight: total,
        "mean": a["mean"] + difference * share,
        "square": a["square"] + b["square"] + difference**2 * a[weight] * share,
    }


def _at_least(values: Floats, floor: float) -> tuple[Floats, NDArray[np.bool_]]:
    return np.maximum(values, floor), values < floor


def _check_positive(params: Params, *names: str) -> None:
    for name in names:
        if (params[name] <= 0).any():
            raise ValueError(f"{name} must be greater than zero")


@register
@dataclass(frozen=True)
class Normal(Family):
    """The normal distribution: mean `loc`, standard deviation `scale`."""

    name: ClassVar[str] = "normal"
    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    location_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        standard = (x - params["loc"]) / params["scale"]
        return -0.5 * standard**2 - np.log(params["scale"]) - HALF_LOG_TAU

    def cdf(self, x: Floats, params: Params) -> Floats:
        return np.asarray(special.ndtr((x - params["loc"]) / params["scale"]))

    def quantile(self, q: Floats, params: Params) -> Floats:
        return params["loc"] + params["scale"] * special.ndtri(q)

    def mean(self, params: Params) -> Floats:
        return params["loc"]

    def location(self, params: Params) -> Floats:
        return params["loc"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return generator.normal(params["loc"], params["scale"])

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        loc = mean + shift
        return {"loc": loc, "scale": np.broadcast_to(scale, loc.shape).copy()}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, mean, square = weighted_moments(rows, n_rows, posterior, self.working(x))
        return {"count": count, "mean": mean, "square": square}

    def merge(self, a: Stats, b: Stats) -> Stats:
        return merge_moments(a, b)

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        count = stats["count"]
        some = (count > NO_MASS) | (count_floor > 0)
        divisor = np.maximum(count, max(count_floor, SMALLEST))
        loc = count * stats["mean"] / divisor if count_floor > 0 else stats["mean"]
        # Σγ(x − loc)², for a loc that is not the mean where the divisor was raised
        square = stats["square"] + count * (stats["mean"] - loc) ** 2
        scale, floored = _at_least(np.sqrt(square / divisor), min_scale)
        params = {
            "loc": np.where(some, loc, current["loc"]),
            "scale": np.where(some, scale, current["scale"]),
        }
        return params, floored & some

    def marginal(self, params: Params, weights: Floats) -> Params:
        loc, variance = mixture_moments(params["loc"], params["scale"] ** 2, weights)
        return {"loc": loc, "scale": np.sqrt(variance)}

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        return {name: keep * params[name] + (1.0 - keep) * marginal[name] for name in self.parameters}

    def check(self, params: Params) -> None:
        _check_positive(params, "scale")


@register
@dataclass(frozen=True)
class LogNormal(Normal):
    """The log-normal (Eq. 16): ln x is normal with mean `loc` = η and standard deviation `scale` = ρ."""

    name: ClassVar[str] = "lognormal"
    lowest: ClassVar[float] = SMALLEST
    highest: ClassVar[float] = np.finfo(float).max
    domain: ClassVar[str] = "greater than zero"
    on_log_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        log_x = np.log(x)
        return super().log_density(log_x, params) - log_x

    def cdf(self, x: Floats, params: Params) -> Floats:
        return super().cdf(_log_or_minus_inf(x), params)

    def quantile(self, q: Floats, params: Params) -> Floats:
        return _exp_or_inf(super().quantile(q, params))

    def mean(self, params: Params) -> Floats:
        return _exp_or_inf(params["loc"] + 0.5 * params["scale"] ** 2)

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return _exp_within_range(super().draw(generator, params))


@register
@dataclass(frozen=True)
class Gamma(Family):
    """The gamma distribution: `shape`, and `scale` = mean / shape."""

    name: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[str, ...]] = ("shape", "scale")
    lowest: ClassVar[float] = 1e-100
    domain: ClassVar[str] = "greater than zero (1e-100 to 1e100)"
    on_log_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        shape, scale = params["shape"], params["scale"]
        ratio = x / scale
        return special.xlogy(shape - 1.0, ratio) - ratio - special.gammaln(shape) - np.log(scale)

    def cdf(self, x: Floats, params: Params) -> Floats:
        return np.asarray(special.gammainc(params["shape"], np.maximum(x, 0.0) / params["scale"]))

    def quantile(self, q: Floats, params: Params) -> Floats:
        return special.gammaincinv(params["shape"], q) * params["scale"]

    def mean(self, params: Params) -> Floats:
        return params["shape"] * params["scale"]

    def location(self, params: Params) -> Floats:
        return self.mean(params)

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return np.maximum(generator.gamma(params["shape"], params["scale"]), self.lowest)

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        # The standard deviation of ln x is about 1/√shape.
        middle = np.exp(np.clip(mean + shift, math.log(self.lowest), math.log(self.highest)))
        shape = np.broadcast_to(scale**-2.0, middle.shape).copy()
        return {"shape": shape, "scale": middle / shape}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, log_mean, _ = weighted_moments(rows, n_rows, posterior, np.log(x))
        _, mean, _ = weighted_moments(rows, n_rows, posterior, x)
        return {"count": count, "sum": count * mean, "log_sum": count * log_mean}

    def merge(self, a: Stats, b: Stats) -> Stats:
        return add_stats(a, b)

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        count = stats["count"]
        some = count > max(NO_MASS, count_floor)
        divisor = np.where(some, count, 1.0)
        mean = np.where(some, stats["sum"], 1.0) / divisor
        excess = np.log(mean) - np.where(some, stats["log_sum"], -1.0) / divisor
        largest = max(min_scale, 1e-100) ** -2.0
        # ln a − ψ(a) = excess; at the largest shape it is about 1 / (2a)
        floored = excess <= _log_minus_digamma(np.array(largest))
        shape = np.where(floored, largest, gamma_shape(np.where(floored, 1.0, excess)))
        params = {
            "shape": np.where(some, shape, current["shape"]),
            "scale": np.where(some, mean / shape, current["scale"]),
        }
        return params, floored & some

    def marginal(self, params: Params, weights: Floats) -> Params:
        return _gamma_from_moments(*mixture_moments(*_gamma_moments(params), weights))

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        own, other = _gamma_moments(params), _gamma_moments(marginal)
        mean, variance = (keep * a + (1.0 - keep) * b for a, b in zip(own, other, strict=True))
        return _gamma_from_moments(mean, variance)

    def check(self, params: Params) -> None:
        _check_positive(params, "shape", "scale")


@register
@dataclass(frozen=True)
class Exponential(Family):
    """The exponential distribution, `scale` its mean."""

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

    def location(self, params: Params) -> Floats:
        return params["scale"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return generator.exponential(params["scale"])

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        # Means are positive: spread them by factors, e^h at the most extreme.
        return {"scale": np.maximum(mean, scale) * np.exp(np.clip(shift / scale, -10.0, 10.0))}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, mean, _ = weighted_moments(rows, n_rows, posterior, x)
        return {"count": count, "sum": count * mean}

    def merge(self, a: Stats, b: Stats) -> Stats:
        return add_stats(a, b)

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        some = stats["count"] > max(NO_MASS, count_floor)
        scale, floored = _at_least(stats["sum"] / np.where(some, stats["count"], 1.0), min_scale)
        return {"scale": np.where(some, scale, current["scale"])}, floored & some

    def marginal(self, params: Params, weights: Floats) -> Params:
        return {"scale": np.sum(weights * params["scale"], axis=0)}

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        return {"scale": keep * params["scale"] + (1.0 - keep) * marginal["scale"]}

    def check(self, params: Params) -> None:
        _check_positive(params, "scale")


@register
@dataclass(frozen=True)
class Student(Family):
    """Student's t: `loc`, `scale` and degrees of freedom `df`, one a feature.

    `Student(df=4.0)` keeps ν fixed; `Student(estimate_df=True)` estimates it, starting at `df`, between
    0.5 and 200. Estimation is EM with the precision of each event as a second hidden variable, so that it
    stays monotone (Liu and Rubin).
    """

    df: float = 4.0
    estimate_df: bool = False

    name: ClassVar[str] = "student"
    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "df")
    location_scale: ClassVar[bool] = True
    lowest_df: ClassVar[float] = 0.5
    highest_df: ClassVar[float] = 200.0

    def __post_init__(self) -> None:
        if not self.lowest_df <= self.df <= self.highest_df:
            raise ValueError(f"df must be between {self.lowest_df} and {self.highest_df}, not {self.df}")

    def log_density(self, x: Floats, params: Params) -> Floats:
        df = params["df"]
        standard = (x - params["loc"]) / params["scale"]
        constant = special.gammaln(0.5 * (df + 1.0)) - special.gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
        return constant - np.log(params["scale"]) - 0.5 * (df + 1.0) * np.log1p(standard**2 / df)

    def cdf(self, x: Floats, params: Params) -> Floats:
        return np.asarray(special.stdtr(params["df"], (x - params["loc"]) / params["scale"]))

    def quantile(self, q: Floats, params: Params) -> Floats:
        # scipy's stdtrit gives +inf at 0
        standard = np.where(np.asarray(q) == 0.0, -np.inf, special.stdtrit(params["df"], q))
        return params["loc"] + params["scale"] * standard

    def mean(self, params: Params) -> Floats:
        return np.where(params["df"] > 1.0, params["loc"], np.inf)

    def location(self, params: Params) -> Floats:
        return params["loc"]

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return params["loc"] + params["scale"] * generator.standard_t(params["df"])

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        loc = mean + shift
        return {
            "loc": loc,
            "scale": np.broadcast_to(scale, loc.shape).copy(),
            "df": np.full(loc.shape, self.df),
        }

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        values = self.working(x)
        present = ~np.isnan(values)
        rows, values, posterior = rows[present], values[present], posterior[present]
        df = params["df"][rows]
        standard = (values[:, None] - params["loc"][rows]) / params["scale"][rows]
        precision = (df + 1.0) / (df + standard**2)
        weights = posterior * precision
        precise, mean, square = weighted_moments(rows, n_rows, weights, values)
        expected_log = (
            np.log(precision) + special.digamma(0.5 * (df + 1.0)) - np.log(0.5 * (df + 1.0)) - precision
        )
        return {
            "count": weighted_sums(rows, n_rows, posterior),
            "precision": precise,
            "mean": mean,
            "square": square,
            "log_precision": weighted_sums(rows, n_rows, posterior * expected_log),
        }

    def merge(self, a: Stats, b: Stats) -> Stats:
        together = merge_moments(a, b, weight="precision")
        return together | {name: a[name] + b[name] for name in ("count", "log_precision")}

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        some = (stats["precision"] > NO_MASS) & (stats["count"] > count_floor)
        square = stats["square"] / np.where(some, stats["count"], 1.0)
        scale, floored = _at_least(np.sqrt(square), min_scale)
        params = {
            "loc": np.where(some, stats["mean"], current["loc"]),
            "scale": np.where(some, scale, current["scale"]),
            "df": current["df"],
        }
        if self.estimate_df and stats["count"].sum() > NO_MASS:
            params["df"] = np.full_like(current["df"], self._best_df(stats))
        return params, floored & some

    def _best_df(self, stats: Stats) -> float:
        mean_log = float(stats["log_precision"].sum() / stats["count"].sum())

        def slope(df: float) -> float:
            return math.log(0.5 * df) + 1.0 - float(special.digamma(0.5 * df)) + mean_log

        if slope(self.lowest_df) <= 0.0:
            return self.lowest_df
        if slope(self.highest_df) >= 0.0:
            return self.highest_df
        return float(optimize.brentq(slope, self.lowest_df, self.highest_df, xtol=1e-10))

    def marginal(self, params: Params, weights: Floats) -> Params:
        loc, square = mixture_moments(params["loc"], params["scale"] ** 2, weights)
        return {"loc": loc, "scale": np.sqrt(square), "df": params["df"][0].copy()}

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        square = keep * params["scale"] ** 2 + (1.0 - keep) * marginal["scale"] ** 2
        return {
            "loc": keep * params["loc"] + (1.0 - keep) * marginal["loc"],
            "scale": np.sqrt(square),
            "df": params["df"],
        }

    def check(self, params: Params) -> None:
        _check_positive(params, "scale", "df")

    def free_parameters(self) -> int:
        return 2

    def shared_parameters(self) -> int:
        return 1 if self.estimate_df else 0


@register
@dataclass(frozen=True)
class LogStudent(Student):
    """ln x has Student's t distribution: a log-normal with heavy tails, and no finite mean."""

    name: ClassVar[str] = "logstudent"
    lowest: ClassVar[float] = SMALLEST
    highest: ClassVar[float] = np.finfo(float).max
    domain: ClassVar[str] = "greater than zero"
    on_log_scale: ClassVar[bool] = True

    def log_density(self, x: Floats, params: Params) -> Floats:
        log_x = np.log(x)
        return super().log_density(log_x, params) - log_x

    def cdf(self, x: Floats, params: Params) -> Floats:
        return super().cdf(_log_or_minus_inf(x), params)

    def quantile(self, q: Floats, params: Params) -> Floats:
        return _exp_or_inf(super().quantile(q, params))

    def mean(self, params: Params) -> Floats:
        return np.full_like(params["loc"], np.inf)

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return _exp_within_range(super().draw(generator, params))


def _log_or_minus_inf(x: Floats) -> Floats:
    x = np.asarray(x, dtype=np.float64)
    return np.log(x, out=np.full_like(x, -np.inf), where=x > 0)


def _exp_or_inf(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.exp(x)


def _exp_within_range(x: Floats) -> Floats:
    """e^x where that is a number greater than zero, or the nearest such number."""
    largest = math.log(np.finfo(float).max)
    return np.exp(np.clip(x, -largest, largest))


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
