"""Information criteria."""

from __future__ import annotations


class Criterion(float):
    """A value of AIC or BIC that remembers whether it is approximate.

    The criteria assume maximum likelihood. Smoothed parameters and floored densities are no such estimates;
    the value says so when printed.
    """

    approximate: bool

    def __new__(cls, value: float, approximate: bool = False) -> Criterion:
        made = super().__new__(cls, value)
        made.approximate = approximate
        return made

    def __repr__(self) -> str:
        return f"{float(self)!r}{' (approximate: smoothed or floored)' if self.approximate else ''}"

    __str__ = __repr__
