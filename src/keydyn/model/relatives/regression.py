"""Maximisation steps in which parameters depend on the value before: lines and multinomial logits.

Neither lowers the expected log-likelihood, so that EM stays monotone (generalised EM).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from keydyn.model.arrays import Floats, compiled
from keydyn.model.emissions import NO_MASS, Family, Params
from keydyn.model.families.log_scale import of_working_values

# Steps in one M-step: the next continues where this one ends.
NEWTON_STEPS = 2
HALVINGS = 30
# A deviation whose variance is this much smaller than its mean square does not vary.
FLAT = 1e-12
# A step that gains less than this share of the objective is the last.
ENOUGH = 1e-12
# Directions of the logits that the data say this much less about than the others are left alone.
UNTOLD = 1e-10


def tilted(transmat: Floats, slopes: Floats, deviation: Floats) -> Floats:
    """a[i, j | u] ∝ a[i, j] exp(c[i, j] u) for each deviation u (N,) of the value before; (N, M, M)."""
    exponent = slopes * deviation[:, None, None]
    exponent = np.where(transmat > 0, exponent, -np.inf)
    weight: Floats = transmat * np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


def logit_update(
    transmat: Floats,
    slopes: Floats,
    deviation: Floats,
    expected: Floats,
    count_floor: float,
    free_slopes: bool,
) -> tuple[Floats, Floats]:
    """New a (M, M) and c (M, M) from ξ of each step (N, M, M), by Newton's method with halving.

    What cannot be told stays: a state never left, the slopes where the value before never varies. Without
    slopes a is the shares of ξ, sums below `count_floor` raised to it.
    """
    transmat, slopes = transmat.copy(), slopes.copy()
    unit = np.sqrt(np.mean(deviation**2)) if len(deviation) else 1.0
    unit = unit if unit > 0 else 1.0
    for i in range(len(transmat)):
        shares = np.maximum(expected[:, i].sum(axis=0), count_floor)
        if shares.sum() <= NO_MASS:
            continue
        if not free_slopes and not slopes[i].any():
            transmat[i] = shares / shares.sum()
            continue
        possible = np.flatnonzero(transmat[i] > 0)
        logits = np.stack([np.log(transmat[i, possible]), slopes[i, possible] * unit])
        level, slope = _newton(logits, deviation / unit, expected[:, i, possible], free_slopes)
        transmat[i] = 0.0
        transmat[i, possible] = np.exp(level - level.max())
        transmat[i] /= transmat[i].sum()
        if free_slopes:
            slopes[i, possible] = slope / unit
            # Only differences matter: staying is what the others are compared with.
            slopes[i] -= slopes[i, i]
            slopes[i, transmat[i] == 0] = 0.0
    return transmat, slopes


def _newton(logits: Floats, deviation: Floats, expected: Floats, free_slopes: bool) -> Floats:
    """Levels and slopes (2, J) that raise Σ_n Σ_j expected[n, j] ln softmax(level + slope · u_n)[j]."""
    n_terms = 2 if free_slopes else 1
    size = n_terms * logits.shape[1]
    gradient, curvature = np.empty(size), np.empty((size, size))
    value = logit_sums(logits, deviation, expected, gradient, curvature)
    for _ in range(NEWTON_STEPS):
        step = np.zeros_like(logits)
        found = np.linalg.lstsq(curvature, gradient, rcond=UNTOLD)[0]
        step[:n_terms] = found.reshape(n_terms, -1)
        for _ in range(HALVINGS):
            tried = logit_sums(logits + step, deviation, expected, gradient, curvature)
            if tried >= value:
                break
            step *= 0.5
        else:
            return logits
        logits, gain, value = logits + step, tried - value, tried
        if gain <= ENOUGH * (1.0 + abs(value)):
            break
    return logits


@compiled
def logit_sums(
    logits: Floats, deviation: Floats, expected: Floats, gradient: Floats, curvature: Floats
) -> float:
    """Σ_n Σ_j expected[n, j] ln p_n[j] with its gradient and minus its second derivatives.

    p_n = softmax(logits[0] + logits[1] u_n). Terms are the levels, then (if there is room) the slopes.
    """
    n_targets = logits.shape[1]
    n_terms = len(gradient) // n_targets
    chances = np.empty(n_targets)
    term = np.ones(2)
    gradient[:] = 0.0
    curvature[:] = 0.0
    value = 0.0
    for n in range(len(deviation)):
        term[1] = deviation[n]
        largest = -math.inf
        for j in range(n_targets):
            chances[j] = logits[0, j] + logits[1, j] * deviation[n]
            largest = max(largest, chances[j])
        total, mass = 0.0, 0.0
        for j in range(n_targets):
            chances[j] -= largest
            value += expected[n, j] * chances[j]
            chances[j] = math.exp(chances[j])
            total += chances[j]
            mass += expected[n, j]
        value -= mass * math.log(total)
        for j in range(n_targets):
            chances[j] /= total
        for d in range(n_terms):
            for j in range(n_targets):
                gradient[d * n_targets + j] += term[d] * (expected[n, j] - mass * chances[j])
                for e in range(n_terms):
                    weight = mass * term[d] * term[e] * chances[j]
                    curvature[d * n_targets + j, e * n_targets + j] += weight
                    for k in range(n_targets):
                        curvature[d * n_targets + j, e * n_targets + k] -= weight * chances[k]
    return value if math.isfinite(value) else -math.inf


def line_update(
    family: Family,
    y: Floats,
    deviation: Floats,
    weights: Floats,
    params: Params,
    slopes: Floats,
    least_scale: float,
    count_floor: float,
    free_slopes: bool,
) -> tuple[Params, Floats, NDArray[np.bool_]]:
    """A family's parameters (1, M) and slopes (M,), location = loc + slope · deviation of the value before.

    `y` (N,) are values on the family's working scale, NaN where missing, `weights` (N, M). The slope is
    that of weighted least squares; with it taken out, the family's own update does the rest. For a t family
    the weights include each event's expected precision.
    """
    if free_slopes:
        loc, slopes = np.empty_like(slopes), slopes.copy()
        scale, df = params["scale"][0], params.get("df", params["scale"])[0]
        least_squares(y, deviation, weights, params["loc"][0], scale, df, "df" in params, loc, slopes)
        params = params | {"loc": loc[None]}
    linear = of_working_values(family)
    # Each state has levels of its own, so states are rows here and events count once for each.
    n_states = weights.shape[1]
    levels = (y[:, None] - slopes * deviation[:, None]).ravel()
    rows = np.tile(np.arange(n_states), len(y))
    columns = {name: np.ascontiguousarray(values.T) for name, values in params.items()}
    stats = linear.statistics(levels, weights.reshape(-1, 1), rows, n_states, columns)
    stats = {name: np.ascontiguousarray(values.T) for name, values in stats.items()}
    updated, floored = linear.update(stats, params, least_scale, count_floor)
    return updated, slopes, floored


@compiled
def least_squares(
    y: Floats,
    deviation: Floats,
    weights: Floats,
    loc: Floats,
    scale: Floats,
    df: Floats,
    heavy_tails: bool,
    new_loc: Floats,
    slopes: Floats,
) -> None:
    """Location into `new_loc` and slope into `slopes`, (M,) each; as they were where the data do not tell."""
    for j in range(len(loc)):
        mass, sum_u, sum_y, square = 0.0, 0.0, 0.0, 0.0
        for second in range(2):
            middle_u, middle_y = (sum_u / mass, sum_y / mass) if second else (0.0, 0.0)
            spread, together = 0.0, 0.0
            for n in range(len(y)):
                if math.isnan(y[n]):
                    continue
                u, weight = deviation[n], weights[n, j]
                if heavy_tails:
                    standard = (y[n] - loc[j] - slopes[j] * u) / scale[j]
                    weight *= (df[j] + 1.0) / (df[j] + standard * standard)
                if second:
                    spread += weight * (u - middle_u) ** 2
                    together += weight * (u - middle_u) * (y[n] - middle_y)
                else:
                    mass += weight
                    sum_u += weight * u
                    sum_y += weight * y[n]
                    square += weight * u * u
            if not second and mass <= NO_MASS:
                break
        new_loc[j] = loc[j]
        if mass > NO_MASS and spread > FLAT * square:
            slopes[j] = together / spread
            new_loc[j] = middle_y - slopes[j] * middle_u
