"""Integrals of densities of which only the logarithm is known, wherever on the line they lie.

Every function works on many densities at once, one per cell of a flat array. Each is first looked for: its
mode, how far from there it falls by a factor e, and where nothing is left of it. From the mode outwards
u = mode ± width · sinh(w) is the variable, in which tails of any weight fall exponentially, so that ordinary
adaptive quadrature does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy

import numpy as np
from scipy import integrate

from keydyn.arrays import Floats, Integers

Logarithm = Callable[[Floats], Floats]

# Places to look for a mode from: a density with one mode rises from each of them towards it.
DECADES = 10.0 ** np.arange(-100.0, 101.0, 2.0)
PLACES = np.concatenate([-DECADES[::-1], [0.0], DECADES])
SMALLEST = 1e-300
# ln of what is no longer counted, beside the mode; and of what a convergent integral has left at its end.
NOTHING = -40.0
LITTLE = -23.0
FURTHEST = 700.0
PRECISION = 1e-10
# Where rounding of u makes a density rough, more intervals do not help.
INTERVALS = 40


class Peak:
    """The integral of e^g(u) over `lowest` ≤ u ≤ `highest`, cell by cell.

    `g` takes and returns an array with one number per cell. It should have one mode; others are found where
    the density between does not vanish. The sides of the mode are −1, below, and 1, above.

    Attributes
    ----------
    mode, height : where g is largest, and its value there
    found : whether there is any density
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
        """Some of the cells, in any order and as often as wanted, with the g of these."""
        taken = copy(self)
        taken.g, taken.n_cells = g, len(cells)
        taken.mode, taken.height, taken.found = self.mode[cells], self.height[cells], self.found[cells]
        taken.widths = {side: width[cells] for side, width in self.widths.items()}
        taken.ends = {side: end[cells] for side, end in self.ends.items()}
        return taken

    def end(self, side: Floats | float) -> Floats:
        """The w beyond which there is nothing."""
        return np.where(np.asarray(side) < 0.0, self.ends[-1.0], self.ends[1.0])

    def width(self, side: Floats | float) -> Floats:
        """How far from the mode g falls by one."""
        return np.where(np.asarray(side) < 0.0, self.widths[-1.0], self.widths[1.0])

    def place(self, side: Floats | float, w: Floats) -> Floats:
        """u at w."""
        return np.clip(self.mode + side * self.width(side) * np.sinh(w), self.lowest, self.highest)

    def distance(self, side: float, u: Floats) -> Floats:
        """w at u, at most the end; 0 on the other side of the mode."""
        with np.errstate(over="ignore"):
            away = np.maximum(side * (u - self.mode), 0.0) / self.width(side)
        return np.minimum(np.arcsinh(away), self.end(side))

    def log_integrand(self, side: Floats | float, w: Floats) -> Floats:
        """What is integrated over w, beside its value at the mode."""
        return self._log(self.place(side, w)) - self.height + np.logaddexp(w, -w) - math.log(2.0)

    def size(self, side: Floats | float) -> Floats:
        """What integrals over w are multiplied with."""
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
        """That of another function of w over one side; inf where it has not fallen when the line ends."""
        near, last = self.end(side), np.maximum(self._last(side), self.end(side))
        steps = np.linspace(0.0, 1.0, 65)[:, None]
        w = np.concatenate([steps * near, near + steps[1:] * (last - near)])
        logs = np.array([log_integrand(row) for row in w])
        top = logs.max(axis=0)
        top = np.where(top > -np.inf, top, 0.0)
        # The first place after which nothing is left.
        counted = np.cumsum((logs > top + NOTHING)[::-1], axis=0)[::-1] > 0
        end = np.take_along_axis(w, np.minimum(counted.sum(axis=0), len(w) - 1)[None], axis=0)[0]
        with np.errstate(over="ignore"):
            size = np.exp(top) * self.size(side)
            found = size * _quadrature(lambda v: log_integrand(v) - top, np.zeros(self.n_cells), end)
        return np.where(logs[-1] > top + LITTLE, np.inf, found)

    def _log(self, u: Floats) -> Floats:
        """g without what cannot be integrated: poles, and where it is not defined."""
        with np.errstate(all="ignore"):
            logs = np.asarray(self.g(u), dtype=np.float64)
        return np.where(np.isnan(logs) | np.isposinf(logs), -np.inf, logs)

    def _mode(self) -> tuple[Floats, Floats]:
        """The best of the places, then golden sections between its neighbours."""
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
        """From the mode to the end of the line."""
        return np.maximum(self.highest - self.mode if side > 0.0 else self.mode - self.lowest, SMALLEST)

    def _last(self, side: float) -> Floats:
        """The w at the end of the line."""
        with np.errstate(over="ignore"):
            return np.minimum(np.arcsinh(self._room(side) / self.widths[side]), FURTHEST)

    def _width(self, side: float) -> Floats:
        """By bisection of the logarithm; the whole side if g never falls."""
        low, high = np.full(self.n_cells, math.log(SMALLEST)), np.log(self._room(side))
        for _ in range(24):
            middle = 0.5 * (low + high)
            u = np.clip(self.mode + side * np.exp(middle), self.lowest, self.highest)
            near = self._log(u) > self.height - 1.0
            low, high = np.where(near, middle, low), np.where(near, high, middle)
        return np.exp(high)

    def _end(self, side: float) -> Floats:
        """By bisection, so that a density that drops to zero is cut where it does."""
        high = self._last(side)
        low = np.where(self.log_integrand(side, high) > NOTHING, high, 0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            some = self.log_integrand(side, middle) > NOTHING
            low, high = np.where(some, middle, low), np.where(some, high, middle)
        return high


def _quadrature(log_integrand: Logarithm, low: Floats, high: Floats) -> Floats:
    """∫ e^… from low to high, adaptive, in all cells at once."""
    length = high - low

    def integrand(share: float) -> Floats:
        return length * np.exp(log_integrand(low + share * length))

    found, *_ = integrate.quad_vec(
        integrand, 0.0, 1.0, epsabs=PRECISION, epsrel=PRECISION, norm="max", limit=INTERVALS
    )
    return np.asarray(found)
