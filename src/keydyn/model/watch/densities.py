"""The densities of the families that come with the package, compiled: one value at a time.

The family itself remains the definition. Here is the same arithmetic with everything that depends on
parameters alone done before, for loops that cannot call NumPy on every event.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from keydyn.arrays import Floats, compiled
from keydyn.model.engine.densities import HALF_LOG_TAU, STIRLING
from keydyn.model.families import Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.families.family import Family, Params

CUSTOM, NORMAL, LOG_NORMAL, STUDENT, LOG_STUDENT, EXPONENTIAL, GAMMA = range(7)
KINDS: dict[type[Family], int] = {
    Normal: NORMAL,
    LogNormal: LOG_NORMAL,
    Student: STUDENT,
    LogStudent: LOG_STUDENT,
    Exponential: EXPONENTIAL,
    Gamma: GAMMA,
}
# Numbers kept for each feature, type and state.
COEFFICIENTS = 4


def kind_of(family: Family) -> int:
    """Which compiled density is this family's; CUSTOM where only the family itself knows."""
    return KINDS.get(type(family), CUSTOM)


def coefficients_of(family: Family, params: Params) -> Floats:
    """(..., COEFFICIENTS): location, scale, the constant of the log-density, degrees of freedom or shape."""
    kind = kind_of(family)
    scale = params["scale"]
    zero = np.zeros_like(scale)
    # A marginal's scale can underflow to zero; that matters only to an event that uses it.
    with np.errstate(divide="ignore"):
        constant = -np.log(scale)
    if kind in (NORMAL, LOG_NORMAL):
        return np.stack([params["loc"], scale, constant - HALF_LOG_TAU, zero], axis=-1)
    if kind in (STUDENT, LOG_STUDENT):
        df = params["df"]
        constant += special.gammaln(0.5 * (df + 1.0)) - special.gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
        return np.stack([params["loc"], scale, constant, df], axis=-1)
    if kind == EXPONENTIAL:
        return np.stack([zero, scale, constant, zero], axis=-1)
    shape = params["shape"]
    large = np.maximum(shape, STIRLING)
    series = (1 / 12 - 1 / (360 * large**2)) / large
    cancelled = 0.5 * np.log(large) - series - HALF_LOG_TAU
    constant = np.where(shape > STIRLING, cancelled, constant - special.gammaln(shape))
    return np.stack([zero, scale, constant, shape], axis=-1)


@compiled
def takes_logarithm(kind: int) -> bool:
    """Whether a density of this kind needs ln x."""
    return kind in (LOG_NORMAL, LOG_STUDENT, GAMMA)


@compiled
def log_density(
    kind: int, x: float, log_x: float, location: float, scale: float, constant: float, more: float
) -> float:
    """ln f(x); `log_x` is ln x for the kinds that take it."""
    if kind in (NORMAL, LOG_NORMAL):
        on_log_scale = kind == LOG_NORMAL
        standard = ((log_x if on_log_scale else x) - location) / scale
        value = constant - 0.5 * standard * standard
        return value - log_x if on_log_scale else value
    if kind in (STUDENT, LOG_STUDENT):
        on_log_scale = kind == LOG_STUDENT
        standard = ((log_x if on_log_scale else x) - location) / scale
        value = constant - 0.5 * (more + 1.0) * math.log1p(standard * standard / more)
        return value - log_x if on_log_scale else value
    ratio = x / scale
    if kind == EXPONENTIAL:
        return constant - ratio
    if more > STIRLING:
        relative = ratio / more
        return more * (math.log(relative) - (relative - 1.0)) + constant - log_x
    power = (more - 1.0) * math.log(ratio) if more != 1.0 else 0.0
    return power - ratio + constant
