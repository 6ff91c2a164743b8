"""Pseudo-residuals of a model, and tests of their distribution.

The forecast residual of an event is Φ⁻¹(F(x_n | x_1..n−1, Ω)); under the true model these are independent and
standard normal. The ordinary residual is conditioned on all *other* events; it is standard normal too, but
dependent. Both ignore any density floor used in scoring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import Parameters
from keydyn.short_repr import short_repr

# Bound for F and 1 − F: residuals are at most 8.2 in size, so that outliers stay finite.
LEAST_PROBABILITY = 2.0**-53
# The Shapiro–Wilk test is not valid for more values.
MOST_FOR_SHAPIRO = 5000


def pseudo_residuals(
    parameters: Parameters, X: Floats, index: EventIndex, from_later: bool, rosenblatt: bool
) -> Floats:
    """Forecast residuals (N, K), or ordinary ones if `from_later`; NaN where the value is missing.

    With `rosenblatt` each feature of an event is conditioned on those before it.
    """
    lattice = lattices.build(parameters, X, index, None)
    log_weights, increments = lattices.forecasts(lattice, from_later)
    lattices.check_possible(increments, lattice.offsets)
    residuals = np.full(X.shape, np.nan)
    for k in range(X.shape[1]):
        present = ~np.isnan(X[:, k])
        emission = parameters.emission_tables[k]
        values, params = X[present, k][:, None], emission.at(index.codes[present])
        weights = special.softmax(log_weights[present], axis=1)
        probability = np.sum(weights * emission.distribution.cdf(values, params), axis=1)
        residuals[present, k] = special.ndtri(
            np.clip(probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        )
        if rosenblatt:
            log_weights[present] += emission.distribution.log_density(values, params)
    return residuals


@dataclass(frozen=True)
class ResidualTest:
    """Tests whether residuals of one feature are standard normal and independent; small p-values reject it.

    Attributes
    ----------
    n : number of residuals tested
    mean, deviation : mean and standard deviation, 0 and 1 under the true model
    ks_statistic, ks_p : Kolmogorov and Smirnov's test of the standard normal distribution
    shapiro_statistic, shapiro_p : Shapiro and Wilk's test of any normal distribution
    ljung_box, ljung_box_p : Ljung and Box's test of independence
    autocorrelation : (L,) at lags 1 to L, within sequences

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.model import check_residuals
    >>> independent = np.random.default_rng(0).normal(size=500)
    >>> test = check_residuals(np.cumsum(independent), n_lags=5)  # anything but independent
    >>> test.n, test.ljung_box_p < 0.001, test.autocorrelation.shape
    (500, True, (5,))
    """

    n: int
    mean: float
    deviation: float
    ks_statistic: float
    ks_p: float
    shapiro_statistic: float
    shapiro_p: float
    ljung_box: float
    ljung_box_p: float
    autocorrelation: Floats

    __repr__ = short_repr


def check_residuals(residuals: ArrayLike, lengths: Given = None, n_lags: int = 10) -> ResidualTest:
    """Test the residuals of one feature, (N,) or (N, 1); NaN where there is none.

    `lengths` separates sequences, so that no lag reaches from one into the next. The tests assume a given
    model: with parameters fitted to the same data they reject somewhat less often than their level. Ordinary
    residuals are dependent even under the true model; for them only the first two tests are valid.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import check_residuals
    >>> x = np.random.default_rng(0).normal(size=(300, 1))
    >>> residuals = HMM(n_states=1, emission="normal").fit(x).forecast_residuals(x)
    >>> check_residuals(residuals).ks_p > 0.05
    True
    """
    z, offsets = _one_column(residuals, lengths)
    values = z[~np.isnan(z)]
    if len(values) < 3:
        raise ValueError(f"there are {len(values)} residuals; three or more are needed to test anything")
    if np.ptp(values) == 0.0:
        raise ValueError(f"every residual is {values[0]:g}: there is nothing to test")
    ks = stats.kstest(values, "norm")
    # If there are too many residuals, evenly spaced ones are tested.
    shapiro = stats.shapiro(values[:: -(-len(values) // MOST_FOR_SHAPIRO)])
    correlations, pairs = autocorrelation(z, offsets, n_lags)
    n, used = len(values), pairs > 0
    ljung_box = n * (n + 2.0) * np.sum(correlations[used] ** 2 / pairs[used])
    return ResidualTest(
        n=n,
        mean=float(values.mean()),
        deviation=float(values.std(ddof=1)),
        ks_statistic=float(ks.statistic),
        ks_p=float(ks.pvalue),
        shapiro_statistic=float(shapiro.statistic),
        shapiro_p=float(shapiro.pvalue),
        ljung_box=float(ljung_box),
        ljung_box_p=float(stats.chi2.sf(ljung_box, np.count_nonzero(used))) if used.any() else 1.0,
        autocorrelation=correlations,
    )


def autocorrelation(z: Floats, offsets: Integers, n_lags: int) -> tuple[Floats, Integers]:
    """The autocorrelation at lags 1 to L within sequences, and the number of pairs of values at each lag.

    For one sequence without gaps it is the usual autocorrelation. At a lag without any pair it is 0.
    """
    centred = np.nan_to_num(z - np.nanmean(z))
    there = ~np.isnan(z)
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    correlations, pairs = np.zeros(n_lags), np.zeros(n_lags, dtype=np.int64)
    for lag in range(1, min(n_lags, len(z) - 1) + 1):
        same = (sequence[lag:] == sequence[:-lag]) & there[lag:] & there[:-lag]
        pairs[lag - 1] = np.count_nonzero(same)
        correlations[lag - 1] = np.sum(centred[lag:][same] * centred[:-lag][same])
    return correlations / np.sum(centred**2), pairs


def _one_column(residuals: ArrayLike, lengths: Given) -> tuple[Floats, Integers]:
    z = as_numbers("residuals", residuals)
    if z.ndim == 2 and z.shape[1] == 1:
        z = z[:, 0]
    if z.ndim != 1:
        raise ValueError(f"residuals must be those of one feature, (N,), not of shape {z.shape}")
    given: Any = [len(z)] if lengths is None else lengths
    offsets = np.concatenate([[0], np.cumsum(given, dtype=np.int64)])
    if offsets[-1] != len(z) or (np.diff(offsets) < 0).any():
        raise ValueError(f"lengths add up to {offsets[-1]}, but there are {len(z)} residuals")
    return z, offsets
