"""The exponential distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.sums import weighted_moments
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
    """The exponential distribution, `scale` its mean.

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
        # Means are positive: spread them by factors, e^h at the most extreme.
        return {"scale": np.maximum(mean, scale) * np.exp(np.clip(shift / scale, -10.0, 10.0))}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        count, mean, _ = weighted_moments(rows, n_rows, posterior, x)
        return {"count": count, "sum": count * mean}

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        some = stats["count"] > max(NO_MASS, count_floor)
        scale, floored = at_least(stats["sum"] / np.where(some, stats["count"], 1.0), min_scale)
        return where_some(some, {"scale": scale}, current), floored & some

    def check(self, params: Params) -> None:
        check_positive(params, "scale")
