"""Student's t and log-t distributions, for heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import optimize, special

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.engine.sums import merge_moments, weighted_moments, weighted_sums
from keydyn.model.families.family import (
    NO_MASS,
    Params,
    Stats,
    at_least,
    check_positive,
    register,
    where_some,
)
from keydyn.model.families.location_scale import LocationScale, LogScale

# Degrees of freedom whose distribution function is a short sum, ten times as fast as the general formula.
EVEN = range(2, 17, 2)


def even_cdf(standard: Floats, df: int) -> Floats:
    """The distribution function for even ν, as accurate in the tails as in the middle.

    With u = (1 + t/√(ν + t²)) / 2 it is the probability of ν/2 or more successes in ν − 1 trials with success
    probability u (a regularised incomplete beta function with integer parameters).
    """
    with np.errstate(over="ignore"):
        length = np.sqrt(df + standard**2)
    near = np.divide(np.abs(standard), length, out=np.ones_like(length), where=np.isfinite(length))
    near = 0.5 + 0.5 * near
    # u (1 − u) = ν / 4(ν + t²) gives the smaller of u and 1 − u without cancellation.
    far = (0.5 * math.sqrt(df) / length) ** 2 / near
    success, failure = np.where(standard > 0.0, near, far), np.where(standard > 0.0, far, near)
    half, total = df // 2, np.zeros_like(near)
    for successes in range(half, df):
        total = total * failure + math.comb(df - 1, successes) * success ** (successes - half)
    return np.where(np.isnan(standard), np.nan, np.minimum(total * success**half, 1.0))


@register
@dataclass(frozen=True)
class Student(LocationScale):
    """Student's t with location `loc`, scale `scale` and one number of degrees of freedom, `df`, per feature.

    `Student(df=4.0)` keeps ν fixed; `Student(estimate_df=True)` estimates it between 0.5 and 200, starting at
    `df`. Estimation treats the precision of each event as a second hidden variable, so that EM stays monotone
    (Liu and Rubin).

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Student
    >>> x = np.random.default_rng(0).standard_t(4.0, (500, 1))
    >>> HMM(n_states=1, emission=Student(df=4.0)).fit(x).emission_[0].loc.round(0).tolist() == [[0.0]]
    True
    """

    df: float = 4.0
    estimate_df: bool = False

    name: ClassVar[str] = "student"
    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "df")
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
        df, standard = params["df"], np.asarray((x - params["loc"]) / params["scale"])
        one = float(np.ravel(df)[0]) if np.size(df) else math.nan
        if one in EVEN and np.all(df == one):
            return even_cdf(standard, int(one))
        return np.asarray(special.stdtr(df, standard))

    def quantile(self, q: Floats, params: Params) -> Floats:
        # scipy's stdtrit gives +inf at 0
        standard = np.where(np.asarray(q) == 0.0, -np.inf, special.stdtrit(params["df"], q))
        return params["loc"] + params["scale"] * standard

    def mean(self, params: Params) -> Floats:
        return np.where(params["df"] > 1.0, params["loc"], np.inf)

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        return self.within(params["loc"] + params["scale"] * generator.standard_t(params["df"]))

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        params = super().start(mean, scale, shift)
        return params | {"df": np.full(params["loc"].shape, self.df)}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        values = self.working(x)
        present = ~np.isnan(values)
        rows, values, posterior = rows[present], values[present], posterior[present]
        df = params["df"][rows]
        standard = (values[:, None] - params["loc"][rows]) / params["scale"][rows]
        precision = (df + 1.0) / (df + standard**2)
        weights = posterior * precision
        precise, mean, square = weighted_moments(rows, n_rows, weights, values)
        count = weighted_sums(rows, n_rows, posterior)
        stats = {"count": count, "precision": precise, "mean": mean, "square": square}
        if self.estimate_df:
            half = 0.5 * (df + 1.0)
            expected_log = np.log(precision) + special.digamma(half) - np.log(half) - precision
            stats["log_precision"] = weighted_sums(rows, n_rows, posterior * expected_log)
        return stats

    def merge(self, a: Stats, b: Stats) -> Stats:
        return super().merge(a, b) | merge_moments(a, b, weight="precision")

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        some = (stats["precision"] > NO_MASS) & (stats["count"] > count_floor)
        deviation = np.sqrt(stats["square"] / np.where(some, stats["count"], 1.0))
        scale, floored = at_least(deviation, min_scale)
        params = where_some(some, {"loc": stats["mean"], "scale": scale}, current)
        params["df"] = current["df"]
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
        return super().marginal(params, weights) | {"df": params["df"][0].copy()}

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        square = keep * params["scale"] ** 2 + (1.0 - keep) * marginal["scale"] ** 2
        return {
            "loc": keep * params["loc"] + (1.0 - keep) * marginal["loc"],
            "scale": np.sqrt(square),
            "df": params["df"],
        }

    def check(self, params: Params) -> None:
        super().check(params)
        check_positive(params, "df", least=self.lowest_df, most=self.highest_df)
        if np.ptp(params["df"]) > 0:
            raise ValueError("df must be one number per feature, the same for all types and states")

    def free_parameters(self) -> int:
        return 2

    def shared_parameters(self) -> int:
        return 1 if self.estimate_df else 0


@register
@dataclass(frozen=True)
class LogStudent(LogScale, Student):
    """The log-t distribution: ln x has Student's t distribution. It has heavy tails and no finite mean.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import LogStudent
    >>> x = np.exp(5.0 + 0.2 * np.random.default_rng(0).standard_t(4.0, (500, 1)))
    >>> HMM(n_states=1, emission=LogStudent(df=4.0)).fit(x).emission_[0].loc.round(1).tolist()
    [[5.0]]
    """

    name: ClassVar[str] = "logstudent"

    def mean(self, params: Params) -> Floats:
        return np.full_like(params["loc"], np.inf)
