"""Numerical distribution function, quantiles and mean for families that define only a density."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import integrate, special

from keydyn.arrays import Floats, Integers

if TYPE_CHECKING:
    from keydyn.model.families.family import Family, Params

Logarithm = Callable[[Floats], Floats]

# Starting places for the search for a mode: a density with one mode rises from each of them towards it.
DECADES = 10.0 ** np.arange(-100.0, 101.0, 2.0)
PLACES = np.concatenate([-DECADES[::-1], [0.0], DECADES])
SMALLEST = 1e-300
# Logarithms relative to the value at the mode: densities below the first are taken as zero; an integral
# whose integrand is still above the second at its end does not converge.
NOTHING = -40.0
LITTLE = -23.0
FURTHEST = 700.0
PRECISION = 1e-10
# Limit of intervals in a quadrature: where rounding of u makes a density rough, more do not help.
INTERVALS = 40


class Peak:
    """The integral of e^g(u) over `lowest` ≤ u ≤ `highest`, cell by cell.

    `g` takes and returns an array with one number per cell. It should have one mode; further modes are
    covered if the density between them does not vanish. The sides of the mode are −1 (below) and 1 (above).
    On each side, w ≥ 0 measures the distance from the mode: u = mode + side · width · sinh(w).

    Attributes
    ----------
    mode, height : the u at which g is largest, and its value there
    found : whether the density is positive anywhere
    """

    def __init__(self, g: Logarithm, n_cells: int, lowest: float, highest: float) -> None:
        self.g, self.n_cells = g, n_cells
        self.lowest, self.highest = lowest, highest
        self.mode, height = self._mode()
        self.found = height > -np.inf
        self.height = np.where(self.found, height, 0.0)
        self.widths = {side: self._width(side) for side in (-1.0, 1.0)}
        self.ends = {side: self._end(side) for side in (-1.0, 1.0)}

    def at(self, cells: Integers, g: Logarithm) -> Peak:
        """The integral for selected cells, in any order and with repetitions; `g` is for these cells."""
        taken = copy(self)
        taken.g, taken.n_cells = g, len(cells)
        taken.mode, taken.height, taken.found = self.mode[cells], self.height[cells], self.found[cells]
        taken.widths = {side: width[cells] for side, width in self.widths.items()}
        taken.ends = {side: end[cells] for side, end in self.ends.items()}
        return taken

    def end(self, side: Floats | float) -> Floats:
        """The w beyond which the density is negligible."""
        return np.where(np.asarray(side) < 0.0, self.ends[-1.0], self.ends[1.0])

    def width(self, side: Floats | float) -> Floats:
        """The distance from the mode at which g has fallen by one."""
        return np.where(np.asarray(side) < 0.0, self.widths[-1.0], self.widths[1.0])

    def place(self, side: Floats | float, w: Floats) -> Floats:
        """The u that corresponds to w."""
        return np.clip(self.mode + side * self.width(side) * np.sinh(w), self.lowest, self.highest)

    def distance(self, side: float, u: Floats) -> Floats:
        """The w that corresponds to u, at most `end`; 0 if u is on the other side of the mode."""
        with np.errstate(over="ignore"):
            away = np.maximum(side * (u - self.mode), 0.0) / self.width(side)
        return np.minimum(np.arcsinh(away), self.end(side))

    def log_integrand(self, side: Floats | float, w: Floats) -> Floats:
        """The logarithm of the integrand over w, relative to its value at the mode."""
        return self._log(self.place(side, w)) - self.height + np.logaddexp(w, -w) - math.log(2.0)

    def size(self, side: Floats | float) -> Floats:
        """The factor that turns integrals of `log_integrand` over w into integrals over u."""
        with np.errstate(over="ignore"):
            size: Floats = np.exp(self.height + np.log(self.width(side)))
        return size

    def between(self, side: Floats | float, low: Floats, high: Floats) -> Floats:
        """The integral over low ≤ w ≤ high."""
        return self.size(side) * _quadrature(lambda w: self.log_integrand(side, w), low, high)

    def whole(self, side: float) -> Floats:
        """The integral over one side."""
        return self.between(side, np.zeros(self.n_cells), self.end(side))

    def integral(self, side: float, log_integrand: Logarithm) -> Floats:
        """The integral of another function of w over one side; inf where it does not converge."""
        near, last = self.end(side), np.maximum(self._last(side), self.end(side))
        steps = np.linspace(0.0, 1.0, 65)[:, None]
        w = np.concatenate([steps * near, near + steps[1:] * (last - near)])
        logs = np.array([log_integrand(row) for row in w])
        top = logs.max(axis=0)
        top = np.where(top > -np.inf, top, 0.0)
        # The first place after which the integrand is negligible.
        counted = np.cumsum((logs > top + NOTHING)[::-1], axis=0)[::-1] > 0
        end = np.take_along_axis(w, np.minimum(counted.sum(axis=0), len(w) - 1)[None], axis=0)[0]
        with np.errstate(over="ignore"):
            size = np.exp(top) * self.size(side)
            found = size * _quadrature(lambda v: log_integrand(v) - top, np.zeros(self.n_cells), end)
        return np.where(logs[-1] > top + LITTLE, np.inf, found)

    def _log(self, u: Floats) -> Floats:
        """g, with −inf instead of poles and undefined values, which cannot be integrated."""
        with np.errstate(all="ignore"):
            logs = np.asarray(self.g(u), dtype=np.float64)
        return np.where(np.isnan(logs) | np.isposinf(logs), -np.inf, logs)

    def _mode(self) -> tuple[Floats, Floats]:
        """The mode and g there: the best of `PLACES`, refined by golden-section search around it."""
        places = np.unique(np.clip(PLACES, self.lowest, self.highest))
        chosen, height = np.zeros(self.n_cells, dtype=np.int64), np.full(self.n_cells, -np.inf)
        for n, place in enumerate(places):
            here = self._log(np.full(self.n_cells, place))
            chosen, height = np.where(here > height, n, chosen), np.maximum(height, here)
        low, mode = places[np.maximum(chosen - 1, 0)], places[chosen]
        high = places[np.minimum(chosen + 1, len(places) - 1)]
        for _ in range(90):
            upward = high - mode > mode - low
            probe = np.where(upward, mode + 0.382 * (high - mode), mode - 0.382 * (mode - low))
            there = self._log(probe)
            better = there > height
            low, high = (
                np.where(better & upward, mode, np.where(~better & ~upward, probe, low)),
                np.where(better & ~upward, mode, np.where(~better & upward, probe, high)),
            )
            mode, height = np.where(better, probe, mode), np.where(better, there, height)
        return mode, height

    def _room(self, side: float) -> Floats:
        """The distance from the mode to the end of the line."""
        return np.maximum(self.highest - self.mode if side > 0.0 else self.mode - self.lowest, SMALLEST)

    def _last(self, side: float) -> Floats:
        """The w at the end of the line, at most `FURTHEST`."""
        with np.errstate(over="ignore"):
            return np.minimum(np.arcsinh(self._room(side) / self.widths[side]), FURTHEST)

    def _width(self, side: float) -> Floats:
        """The width, by bisection of its logarithm; the whole side if g never falls by one."""
        low, high = np.full(self.n_cells, math.log(SMALLEST)), np.log(self._room(side))
        for _ in range(24):
            middle = 0.5 * (low + high)
            u = np.clip(self.mode + side * np.exp(middle), self.lowest, self.highest)
            near = self._log(u) > self.height - 1.0
            low, high = np.where(near, middle, low), np.where(near, high, middle)
        return np.exp(high)

    def _end(self, side: float) -> Floats:
        """The end, by bisection, so that a density that drops to zero is cut off exactly there."""
        high = self._last(side)
        low = np.where(self.log_integrand(side, high) > NOTHING, high, 0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            some = self.log_integrand(side, middle) > NOTHING
            low, high = np.where(some, middle, low), np.where(some, high, middle)
        return high


def _quadrature(log_integrand: Logarithm, low: Floats, high: Floats) -> Floats:
    """∫ e^log_integrand(w) dw from low to high, by adaptive quadrature in all cells at once."""
    length = high - low

    def integrand(share: float) -> Floats:
        return length * np.exp(log_integrand(low + share * length))

    found, *_ = integrate.quad_vec(
        integrand, 0.0, 1.0, epsabs=PRECISION, epsrel=PRECISION, norm="max", limit=INTERVALS
    )
    return np.asarray(found)


# Bounds of this magnitude or more count as no bound.
NO_BOUND = 1e100
# For u between these, e^u neither underflows nor overflows.
LEAST_LOG, LARGEST_LOG = -745.0, 709.0
# Numbers that differ relatively by less than this count as equal.
SPACING = 4.0 * float(np.finfo(float).eps)
# Largest accepted difference between the integral of a density and one.
TOLERANCE = 1e-6


class RealLine:
    """Mapping of values x of a domain to unbounded numbers u: x itself, ln (x − lowest), or a logit."""

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
        """The u of an x; for x outside the domain, the u of the nearest end."""
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
    """The distributions of a family for given parameters, one per cell; all arrays are flat.

    Results are NaN where there is no density at all, as for NaN parameters. The constructor raises
    `ValueError` if a density does not integrate to one.
    """

    def __init__(self, family: Family, params: Params) -> None:
        self.family, self.params = family, params
        self.n_cells = len(next(iter(params.values())))
        self.line = RealLine(family.lowest, family.highest)
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
        """The distributions of selected cells, in any order and with repetitions."""
        taken = copy(self)
        taken.params = {name: values[cells] for name, values in self.params.items()}
        taken.n_cells, taken.below, taken.total = len(cells), self.below[cells], self.total[cells]
        taken.peak = self.peak.at(cells, taken._over_line)
        return taken

    def cdf(self, x: Floats) -> Floats:
        """P(X ≤ x), with each tail integrated from its own end."""
        u = self.line.u(np.where(np.isnan(x), 0.0, x))
        side = np.where(u < self.peak.mode, -1.0, 1.0)
        w = np.where(side < 0.0, self.peak.distance(-1.0, u), self.peak.distance(1.0, u))
        tail = self.peak.between(side, w, self.peak.end(side)) / self.total
        share = np.where(side < 0.0, tail, 1.0 - tail)
        share = np.where(x < self.line.lowest, 0.0, np.where(x >= self.line.highest, 1.0, share))
        return np.where(np.isnan(x) | np.isnan(self.total), np.nan, share)

    def quantile(self, q: Floats) -> Floats:
        """The x with P(X ≤ x) = q, by Newton's method on the log of the tail, safeguarded by bisection."""
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
        """The expected value; infinite where its integral diverges or converges too slowly."""
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
    """The distinct distributions among these parameters (many are often equal), and the index of each."""
    values = np.stack(
        np.broadcast_arrays(*(np.asarray(params[name], dtype=np.float64) for name in family.parameters))
    )
    shape = values.shape[1:]
    different, cells = np.unique(values.reshape(len(values), -1), axis=1, return_inverse=True)
    return _density(family, different.shape[1], different.tobytes()), cells.reshape(shape)


@lru_cache(maxsize=16)
def _density(family: Family, n_cells: int, values: bytes) -> Density:
    """A cached `Density`: a root search on the distribution function asks for the same one many times."""
    table = np.frombuffer(values).reshape(-1, n_cells)
    return Density(family, dict(zip(family.parameters, table, strict=True)))
