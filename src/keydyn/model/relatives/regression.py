"""Maximisation steps in which parameters depend on the value before: lines and multinomial logits.

Neither lowers the expected log-likelihood, so that EM stays monotone (generalised EM).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keydyn.model.arrays import Floats
from keydyn.model.emissions import NO_MASS, Family, Params

NEWTON_STEPS = 5
HALVINGS = 30
# Directions of the logits that the data say this much less about than the others are left alone.
UNTOLD = 1e-10


def tilted(transmat: Floats, slopes: Floats, deviation: Floats) -> Floats:
    """a[i, j | u] ∝ a[i, j] exp(c[i, j] u) for each deviation u (N,) of the value before; (N, M, M)."""
    exponent = slopes * deviation[:, None, None]
    exponent = np.where(transmat > 0, exponent, -np.inf)
    weight = transmat * np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


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
    unit = np.sqrt(np.mean(deviation**2)) or 1.0
    design = np.stack([np.ones_like(deviation), deviation / unit], axis=1)[:, : 2 if free_slopes else 1]
    for i in range(len(transmat)):
        if not free_slopes and not slopes[i].any():
            shares = np.maximum(expected[:, i].sum(axis=0), count_floor)
            transmat[i] = shares / shares.sum() if shares.sum() > 0 else transmat[i]
            continue
        if expected[:, i].sum() <= NO_MASS:
            continue
        possible = np.flatnonzero(transmat[i] > 0)
        logits = np.stack([np.log(transmat[i, possible]), slopes[i, possible] * unit])
        fixed = np.zeros((len(deviation), len(possible)))
        if not free_slopes:
            fixed = np.outer(deviation / unit, logits[1])
        found = _newton(logits[: design.shape[1]], design, fixed, expected[:, i, possible])
        transmat[i] = 0.0
        transmat[i, possible] = np.exp(found[0] - found[0].max())
        transmat[i] /= transmat[i].sum()
        if free_slopes:
            slopes[i, possible] = found[1] / unit
            # Only differences matter: staying is what the others are compared with.
            slopes[i] -= slopes[i, i]
            slopes[i, transmat[i] == 0] = 0.0
    return transmat, slopes


def _newton(logits: Floats, design: Floats, fixed: Floats, expected: Floats) -> Floats:
    """Logits (D, J) that raise Σ_n Σ_j expected[n, j] ln softmax(design @ logits + fixed)[n, j]."""
    total = expected.sum(axis=1)
    value, chances = _objective(logits, design, fixed, expected)
    n_terms, n_targets = logits.shape
    for _ in range(NEWTON_STEPS):
        slope = design.T @ (expected - total[:, None] * chances)
        # Σ_n total (design ⊗ design) ⊗ (diag(p) − p pᵀ)
        weighted = total[:, None] * chances
        outer = np.einsum("nd,ne,nj,nk->djek", design, design, weighted, chances, optimize=True)
        curvature = -outer
        diagonal = np.einsum("nd,ne,nj->dej", design, design, weighted)
        for j in range(n_targets):
            curvature[:, j, :, j] += diagonal[:, :, j]
        size = n_terms * n_targets
        step = np.linalg.lstsq(curvature.reshape(size, size), slope.reshape(size), rcond=UNTOLD)[0]
        step = step.reshape(n_terms, n_targets)
        for _ in range(HALVINGS):
            tried, tried_chances = _objective(logits + step, design, fixed, expected)
            if tried >= value:
                break
            step = 0.5 * step
        else:
            return logits
        gain = tried - value
        logits, value, chances = logits + step, tried, tried_chances
        if gain <= 1e-12 * (1.0 + abs(value)):
            break
    return logits


def _objective(logits: Floats, design: Floats, fixed: Floats, expected: Floats) -> tuple[float, Floats]:
    scores = design @ logits + fixed
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    norm = chances.sum(axis=1, keepdims=True)
    value = float(np.sum(expected * (scores - np.log(norm))))
    return (value if np.isfinite(value) else -np.inf), chances / norm


def line_update(
    family: Family,
    x: Floats,
    deviation: Floats,
    weights: Floats,
    params: Params,
    slopes: Floats,
    least_scale: float,
    count_floor: float,
    free_slopes: bool,
) -> tuple[Params, Floats, NDArray[np.bool_]]:
    """A family's parameters (1, M) and slopes (M,), location = loc + slope · deviation of the value before.

    `x` (N,), `weights` (N, M). The slope is that of weighted least squares; with it taken out, the family's
    own update does the rest. For a t family the weights include each event's expected precision.
    """
    present = ~np.isnan(x)
    x, deviation, weights = x[present], deviation[present], weights[present]
    if free_slopes:
        params, slopes = _steeper(family, x, deviation, weights, params, slopes)
    everywhere = np.zeros(len(x), dtype=np.int64)
    parts = []
    for j in range(weights.shape[1]):
        shift = slopes[j] * deviation
        level = x * np.exp(-shift) if family.on_log_scale else x - shift
        own = {name: np.ascontiguousarray(values[:, j : j + 1]) for name, values in params.items()}
        parts.append(
            family.statistics(level, np.ascontiguousarray(weights[:, j : j + 1]), everywhere, 1, own)
        )
    stats = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    updated, floored = family.update(stats, params, least_scale, count_floor)
    return updated, slopes, floored


def _steeper(
    family: Family, x: Floats, deviation: Floats, weights: Floats, params: Params, slopes: Floats
) -> tuple[Params, Floats]:
    """Location and slope by weighted least squares; as they were where the data do not tell."""
    y = family.working(x)[:, None]
    u = deviation[:, None]
    if "df" in params:
        standard = (y - params["loc"] - slopes * u) / params["scale"]
        weights = weights * (params["df"] + 1.0) / (params["df"] + standard**2)
    mass = weights.sum(axis=0)
    divisor = np.where(mass > NO_MASS, mass, 1.0)
    middle_u, middle_y = (weights * u).sum(axis=0) / divisor, (weights * y).sum(axis=0) / divisor
    spread = (weights * (u - middle_u) ** 2).sum(axis=0)
    told = (mass > NO_MASS) & (spread > 1e-12 * (weights * u**2).sum(axis=0))
    together = (weights * (u - middle_u) * (y - middle_y)).sum(axis=0)
    slopes = np.where(told, together / np.where(told, spread, 1.0), slopes)
    loc = np.where(told, middle_y - slopes * middle_u, params["loc"])
    return params | {"loc": loc}, slopes
