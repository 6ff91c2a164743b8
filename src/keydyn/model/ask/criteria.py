"""Information criteria."""

from __future__ import annotations


class Criterion(float):
    """A value of AIC or BIC that remembers whether it is approximate.

    The criteria assume maximum likelihood. Smoothed parameters and floored densities are no such estimates;
    the value says so when printed.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> criterion = HMM(n_states=1).fit(x).bic(x)
    >>> criterion.approximate, criterion == float(criterion)
    (False, True)
    """

    approximate: bool

    def __new__(cls, value: float, approximate: bool = False) -> Criterion:
        made = super().__new__(cls, value)
        made.approximate = approximate
        return made

    def __repr__(self) -> str:
        return f"{float(self)!r}{' (approximate: smoothed or floored)' if self.approximate else ''}"

    __str__ = __repr__
