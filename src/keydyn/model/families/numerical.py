"""Distribution function, quantiles and mean of a family that has only a density."""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers
from keydyn.model.families.quadrature import Peak

if TYPE_CHECKING:
    from keydyn.model.families.family import Family, Params

# A bound of this size is none.
NO_BOUND = 1e100
# e^u is a number between these.
LEAST_LOG, LARGEST_LOG = -745.0, 709.0
# Numbers nearer to each other, relatively, are the same.
SPACING = 4.0 * float(np.finfo(float).eps)
# By how much a density may miss an integral of one.
TOLERANCE = 1e-6


class Line:
    """Values x of a domain as numbers u without a bound: x itself, ln (x − lowest), or a logit."""

    def __init__(self, lowest: float, highest: float) -> None:
        self.lowest, self.highest = lowest, highest
        self.bounded_below = lowest > -NO_BOUND
        self.bounded_above = highest < NO_BOUND
        if not self.bounded_below:
            self.ends = (lowest, highest)
        elif not self.bounded_above:
            self.ends = (LEAST_LOG, min(math.log(highest), LARGEST_LOG))
        else:
            self.ends = (LEAST_LOG, -LEAST_LOG)

    def x(self, u: Floats) -> Floats:
        if not self.bounded_below:
            return u
        return np.clip(self.lowest + np.exp(self.log_excess(u)), self.lowest, self.highest)

    def u(self, x: Floats) -> Floats:
        """The u of an x; outside the domain that of the nearest end."""
        if not self.bounded_below:
            return np.clip(x, *self.ends)
        with np.errstate(divide="ignore"):
            u = np.log(np.maximum(x - self.lowest, 0.0))
            if self.bounded_above:
                u = u - np.log(np.maximum(self.highest - x, 0.0))
        return np.clip(u, *self.ends)

    def log_excess(self, u: Floats) -> Floats:
        """ln (x − lowest)."""
        return math.log(self.highest - self.lowest) + special.log_expit(u) if self.bounded_above else u

    def log_slope(self, u: Floats) -> Floats | float:
        """ln dx/du."""
        if not self.bounded_below:
            return 0.0
        return self.log_excess(u) + (special.log_expit(-u) if self.bounded_above else 0.0)


class Density:
    """The distributions of a family with some parameters, one per cell; all arrays are flat.

    NaN where there is no density at all, as for parameters that are NaN. A `ValueError` where it does not
    integrate to one.
    """

    def __init__(self, family: Family, params: Params) -> None:
        self.family, self.params = family, params
        self.n_cells = len(next(iter(params.values())))
        self.line = Line(family.lowest, family.highest)
        self.peak = Peak(self._over_line, self.n_cells, *self.line.ends)
        self.below, above = self.peak.whole(-1.0), self.peak.whole(1.0)
        self.total = np.where(self.peak.found, self.below + above, np.nan)
        wrong = np.flatnonzero(np.abs(self.total - 1.0) > TOLERANCE)
        if len(wrong):
            given = ", ".join(f"{name} = {values[wrong[0]]:.6g}" for name, values in params.items())
            raise ValueError(
                f"the density of {family.name!r} with {given} integrates to {self.total[wrong[0]]:.9g} over "
                "its domain, not to 1; if it is right, give the family its own cdf, quantile and mean"
            )

    def at(self, cells: Integers) -> Density:
        """Some of the cells, in any order and as often as wanted."""
        taken = copy(self)
        taken.params = {name: values[cells] for name, values in self.params.items()}
        taken.n_cells, taken.below, taken.total = len(cells), self.below[cells], self.total[cells]
        taken.peak = self.peak.at(cells, taken._over_line)
        return taken

    def cdf(self, x: Floats) -> Floats:
        """P(X ≤ x), each tail from its own end."""
        u = self.line.u(np.where(np.isnan(x), 0.0, x))
        side = np.where(u < self.peak.mode, -1.0, 1.0)
        w = np.where(side < 0.0, self.peak.distance(-1.0, u), self.peak.distance(1.0, u))
        tail = self.peak.between(side, w, self.peak.end(side)) / self.total
        share = np.where(side < 0.0, tail, 1.0 - tail)
        share = np.where(x < self.line.lowest, 0.0, np.where(x >= self.line.highest, 1.0, share))
        return np.where(np.isnan(x) | np.isnan(self.total), np.nan, share)

    def quantile(self, q: Floats) -> Floats:
        """By Newton's method on the logarithm of the tail, and bisection where that leaves the bracket."""
        inner = np.where((q > 0.0) & (q < 1.0) & ~np.isnan(self.total), q, 0.5)
        side = np.where(inner * self.total < self.below, -1.0, 1.0)
        tail = np.where(side < 0.0, inner, 1.0 - inner) * self.total
        tail = np.where(np.isnan(tail), self.below, tail)
        end = self.peak.end(side)
        low, high, w, x = np.zeros(self.n_cells), end, 0.5 * end, np.full(self.n_cells, np.inf)
        for _ in range(60):
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                there = self.peak.between(side, w, end)
                gap = np.log(there / tail)
                slope = np.exp(self.peak.log_integrand(side, w)) * self.peak.size(side) / there
                probe = w + gap / slope
            low, high = np.where(gap > 0.0, w, low), np.where(gap > 0.0, high, w)
            probe = np.where((probe >= low) & (probe <= high), probe, 0.5 * (low + high))
            before, x = x, self.line.x(self.peak.place(side, probe))
            near = (np.abs(probe - w) <= 1e-12 * (1.0 + w)) | (np.abs(x - before) <= SPACING * np.abs(x))
            w = probe
            if near.all():
                break
        x = np.where(q == 0.0, self.line.lowest, np.where(q == 1.0, self.line.highest, x))
        return np.where((q >= 0.0) & (q <= 1.0) & ~np.isnan(self.total), x, np.nan)

    def mean(self) -> Floats:
        """Infinite where it diverges, or converges too slowly to be found."""
        middle = self.line.x(self.peak.mode)
        above, below = self._beyond(1.0, middle), self._beyond(-1.0, middle)
        finite = np.isfinite(above) & np.isfinite(below)
        mean = np.where(
            finite, middle + (np.where(finite, above, 0.0) - np.where(finite, below, 0.0)), np.inf
        )
        return np.where(np.isnan(self.total), np.nan, mean)

    def _beyond(self, side: float, middle: Floats) -> Floats:
        """∫ |x − middle| f over one side of the mode."""

        def log_integrand(w: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                away = np.log(np.abs(self.line.x(self.peak.place(side, w)) - middle))
            return self.peak.log_integrand(side, w) + away

        return self.peak.integral(side, log_integrand)

    def _over_line(self, u: Floats) -> Floats:
        """ln f per unit of u."""
        return self.family.log_density(self.line.x(u), self.params) + self.line.log_slope(u)


def cdf(family: Family, x: Floats, params: Params) -> Floats:
    """P(X ≤ x), elementwise."""
    density, cells = density_of(family, params)
    x, cells = np.broadcast_arrays(np.asarray(x, dtype=np.float64), cells)
    return density.at(cells.ravel()).cdf(x.ravel()).reshape(x.shape) if x.size else np.empty(x.shape)


def quantile(family: Family, q: Floats, params: Params) -> Floats:
    """The x with P(X ≤ x) = q, elementwise."""
    density, cells = density_of(family, params)
    q, cells = np.broadcast_arrays(np.asarray(q, dtype=np.float64), cells)
    return density.at(cells.ravel()).quantile(q.ravel()).reshape(q.shape) if q.size else np.empty(q.shape)


def mean(family: Family, params: Params) -> Floats:
    """The expected value, elementwise."""
    density, cells = density_of(family, params)
    means: Floats = density.mean()[cells] if cells.size else np.empty(cells.shape)
    return means


def density_of(family: Family, params: Params) -> tuple[Density, Integers]:
    """The different distributions among these, and which each is; parameters are often the same in many."""
    values = np.stack(
        np.broadcast_arrays(*(np.asarray(params[name], dtype=np.float64) for name in family.parameters))
    )
    shape = values.shape[1:]
    different, cells = np.unique(values.reshape(len(values), -1), axis=1, return_inverse=True)
    return _density(family, different.shape[1], different.tobytes()), cells.reshape(shape)


@lru_cache(maxsize=16)
def _density(family: Family, n_cells: int, values: bytes) -> Density:
    """Kept, because a search for a root of the distribution function asks for it again and again."""
    table = np.frombuffer(values).reshape(-1, n_cells)
    return Density(family, dict(zip(family.parameters, table, strict=True)))
