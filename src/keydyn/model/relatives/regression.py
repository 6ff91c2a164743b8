"""Maximisation steps for parameters that depend on the previous value: lines and multinomial logits.

Neither lowers the expected log-likelihood, so EM stays monotone (generalised EM).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Truths, compiled
from keydyn.model.families.family import NO_MASS, Emission, Family, Params, Stats
from keydyn.model.families.location_scale import of_working_values


class SeenFeature(NamedTuple):
    """A feature of N events on its family's working scale, and u, the deviation of each previous value."""

    y: Floats
    deviation: Floats


# Newton steps in one M-step; the next M-step continues from there.
NEWTON_STEPS = 2
HALVINGS = 30
# A deviation counts as constant if its variance is less than this share of its mean square.
FLAT = 1e-12
# Newton's method ends with a step that gains less than this share of the objective.
ENOUGH = 1e-12
# Directions of the logits about which the data say relatively less than this are not changed.
UNTOLD = 1e-10


def tilted(transmat: Floats, slopes: Floats, deviation: Floats) -> Floats:
    """a[i, j | u] ∝ a[i, j] exp(c[i, j] u) for each deviation u (N,) of the previous value; (N, M, M)."""
    exponents = np.where(transmat > 0.0, slopes * deviation[:, None, None], -np.inf)
    steps = transmat * np.exp(exponents - exponents.max(axis=2, keepdims=True))
    shares: Floats = steps / steps.sum(axis=2, keepdims=True)
    return shares


@compiled
def logit_sums(
    logits: Floats, deviation: Floats, expected: Floats, gradient: Floats, curvature: Floats
) -> float:
    """Σ_n Σ_j expected[n, j] ln p_n[j], with its gradient and negative second derivatives.

    p_n = softmax(logits[0] + logits[1] u_n); logits[0] are the levels and logits[1] the slopes.
    """
    n_terms, n_targets = logits.shape
    chances = np.empty(n_targets)
    # Sums of each event's contribution times 1, u and u², from which all derivatives are taken.
    slope, bend = np.zeros((2, n_targets)), np.zeros((3, n_targets, n_targets))
    value = 0.0
    for n in range(len(deviation)):
        u = deviation[n]
        largest, total, mass = -math.inf, 0.0, 0.0
        for j in range(n_targets):
            chances[j] = logits[0, j] + logits[1, j] * u
            largest = max(largest, chances[j])
        for j in range(n_targets):
            chances[j] -= largest
            value += expected[n, j] * chances[j]
            chances[j] = math.exp(chances[j])
            total += chances[j]
            mass += expected[n, j]
        value -= mass * math.log(total)
        for j in range(n_targets):
            chances[j] /= total
        for j in range(n_targets):
            left = expected[n, j] - mass * chances[j]
            slope[0, j] += left
            slope[1, j] += left * u
            for k in range(j + 1):
                weight = mass * chances[j] * ((1.0 if j == k else 0.0) - chances[k])
                bend[0, j, k] += weight
                bend[1, j, k] += weight * u
                bend[2, j, k] += weight * u * u
    for d in range(n_terms):
        for j in range(n_targets):
            gradient[d * n_targets + j] = slope[d, j]
            for e in range(n_terms):
                for k in range(n_targets):
                    curvature[d * n_targets + j, e * n_targets + k] = bend[d + e, max(j, k), min(j, k)]
    return value if math.isfinite(value) else -math.inf


def newton(logits: Floats, deviation: Floats, expected: Floats) -> Floats:
    """Levels and slopes (2, J) that raise Σ_n Σ_j expected[n, j] ln softmax(level + slope · u_n)[j]."""
    gradient, curvature = np.empty(logits.size), np.empty((logits.size, logits.size))
    value = logit_sums(logits, deviation, expected, gradient, curvature)
    for _ in range(NEWTON_STEPS):
        step = np.linalg.lstsq(curvature, gradient, UNTOLD)[0].reshape(logits.shape)
        tried, halvings = -math.inf, 0
        while halvings < HALVINGS:
            tried = logit_sums(logits + step, deviation, expected, gradient, curvature)
            if tried >= value:
                break
            step *= 0.5
            halvings += 1
        if halvings == HALVINGS:
            return logits
        logits = logits + step
        gain, value = tried - value, tried
        if gain <= ENOUGH * (1.0 + abs(value)):
            break
    return logits


@np.errstate(over="ignore", invalid="ignore")
def update_logits(
    transmat: Floats, slopes: Floats, deviation: Floats, expected: Floats, least: float
) -> None:
    """Update a (M, M) and c (M, M) in place from ξ of each step (N, M, M), by Newton's method with halving.

    Parameters that the data do not determine stay: the row of a state that is never left (each sum of ξ
    counts as `least` or more), and the slopes if the previous value never varies. Events whose ξ is all zero
    have no step.
    """
    later = expected.any(axis=(1, 2))  # the first event of a sequence has no step
    expected, scaled = expected[later], deviation[later]
    square = float(scaled @ scaled)
    unit = math.sqrt(square / len(scaled)) if square > 0.0 else 1.0
    scaled = scaled / unit
    for i, shares in enumerate(np.maximum(expected.sum(axis=0), least)):
        if shares.sum() <= NO_MASS:
            continue
        possible = np.flatnonzero(transmat[i] > 0.0)
        logits = np.array([np.log(transmat[i, possible]), slopes[i, possible] * unit])
        logits = newton(logits, scaled, np.ascontiguousarray(expected[:, i, possible]))
        chances = np.exp(logits[0] - logits[0].max())
        transmat[i] = 0.0
        transmat[i, possible] = chances / chances.sum()
        # Only differences of slopes matter; they are taken relative to staying.
        slopes[i, possible] = logits[1] / unit
        slopes[i] = np.where(transmat[i] > 0.0, slopes[i] - slopes[i, i], 0.0)


class LineLimits(NamedTuple):
    """The lower bounds in the update of a line: smallest scale and smallest divisor."""

    least_scale: float
    count_floor: float


def line_update(
    emission: Emission, slopes: Floats, seen: SeenFeature, weights: Floats, limits: LineLimits
) -> tuple[Emission, Floats, Truths]:
    """The updated emission (1, M) and slopes (M,), with location = loc + slope · deviation.

    Also returns where the scale floor acted. `weights` are (N, M). The slope is from weighted least squares,
    where the weights of a t family include each event's expected precision. After its effect is removed, the
    family's own update does the rest.
    """
    family, params = emission.distribution, emission.params
    loc, slopes = np.empty_like(slopes), slopes.copy()
    scale, df = params["scale"][0], params.get("df", params["scale"])[0]
    least_squares(seen, weights, Line(params["loc"][0], scale, df, "df" in params), loc, slopes)
    params = params | {"loc": loc[None]}
    family = of_working_values(family)
    stats = _level_statistics(family, params, seen, weights, slopes)
    updated, floored = family.update(stats, params, limits.least_scale, limits.count_floor)
    return emission.replace(updated), slopes, floored


def _level_statistics(
    family: Family, params: Params, seen: SeenFeature, weights: Floats, slopes: Floats
) -> Stats:
    """The family's statistics of values less the slopes' effect, which differs by state.

    States are therefore passed as rows, and every event occurs once for each state.
    """
    n_states = weights.shape[1]
    levels = (seen.y[:, None] - slopes * seen.deviation[:, None]).ravel()
    rows = np.tile(np.arange(n_states), len(seen.y))
    columns = {name: np.ascontiguousarray(values.T) for name, values in params.items()}
    stats = family.statistics(levels, weights.reshape(-1, 1), rows, n_states, columns)
    return {name: np.ascontiguousarray(values.T) for name, values in stats.items()}


class Line(NamedTuple):
    """The location, scale and (for heavy tails) degrees of freedom of a line in each state, (M,)."""

    loc: Floats
    scale: Floats
    df: Floats
    heavy_tails: bool


@compiled
def least_squares(seen: SeenFeature, weights: Floats, line: Line, new_loc: Floats, slopes: Floats) -> None:
    """Fit `new_loc` and `slopes`, (M,) each; both stay as they were where the data do not determine them."""
    y, deviation, (loc, scale, df, heavy_tails) = seen.y, seen.deviation, line
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
