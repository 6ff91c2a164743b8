"""V: how people differ, by EM of a factor model with missing cells.

Objective, at fixed precisions p and means ȳ of each person's cells:

    Σ_u ln N(ȳ_u; 0, V Vᵀ + diag 1/p_u)  −  ½ ρ Σ_c |V_c − V_key(c)|²  −  ½ ρ₀ Σ_key |V_key|²

The maximisation step solves for V and V_key together, and a rotation is taken only where it gains, so the
objective never falls.
"""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats
from keydyn.population.cells import Cells

# ρ and ρ₀. With weaker ones the people learnt from are memorised.
CELL_RIDGE, KEY_RIDGE = 500.0, 200.0
ITERATIONS = 15
ROTATE_EVERY = 3
MOST_FACTORS, LEAST_FACTORS, PEOPLE_PER_FACTOR = 20, 2, 12


def n_factors(n_people: int) -> int:
    """R; fewer than there are people."""
    wanted = min(MOST_FACTORS, max(LEAST_FACTORS, n_people // PEOPLE_PER_FACTOR))
    return max(1, min(wanted, n_people - 1))


def fit_loadings(
    precision: Floats, mean: Floats, cells: Cells, n_factors: int, history: list[float] | None = None
) -> Floats:
    """(C, R) loadings from (U, C) precisions, 0 where a cell was not typed, and means.

    `history` receives the objective after each step.
    """
    V, V_key = _start(precision, mean, cells, n_factors)
    for iteration in range(ITERATIONS):
        z, second = _factors(V, precision, mean)
        V, V_key = _maximised(precision, mean, z, second, cells)
        if iteration % ROTATE_EVERY == ROTATE_EVERY - 1:
            _, second = _factors(V, precision, mean)
            root = np.linalg.cholesky(second.mean(axis=0))
            turned, turned_key = V @ root, V_key @ root
            if objective(turned, turned_key, precision, mean, cells) > objective(
                V, V_key, precision, mean, cells
            ):
                V, V_key = turned, turned_key
        if history is not None:
            history.append(objective(V, V_key, precision, mean, cells))
    return np.ascontiguousarray(V)


def objective(V: Floats, V_key: Floats, precision: Floats, mean: Floats, cells: Cells) -> float:
    """The penalised log-likelihood above, without what does not depend on V."""
    A = _precision_of_factors(V, precision)
    linear = (precision * mean) @ V
    fitted = np.einsum("ur,ur->", linear, np.linalg.solve(A, linear[:, :, None])[:, :, 0])
    penalty = CELL_RIDGE * ((V - V_key[cells.key]) ** 2).sum() + KEY_RIDGE * (V_key**2).sum()
    return float(0.5 * (fitted - np.linalg.slogdet(A)[1].sum() - penalty))


def _precision_of_factors(V: Floats, precision: Floats) -> Floats:
    R = V.shape[1]
    outer = (V[:, :, None] * V[:, None, :]).reshape(len(V), R * R)
    total: Floats = np.eye(R) + (precision @ outer).reshape(-1, R, R)
    return total


def _factors(V: Floats, precision: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Each person's E[z], (U, R), and E[z zᵀ], (U, R, R)."""
    S = np.linalg.inv(_precision_of_factors(V, precision))
    z = np.einsum("urs,us->ur", S, (precision * mean) @ V)
    return z, S + z[:, :, None] * z[:, None, :]


def _maximised(
    precision: Floats, mean: Floats, z: Floats, second: Floats, cells: Cells
) -> tuple[Floats, Floats]:
    U, R = z.shape
    A = (precision.T @ second.reshape(U, R * R)).reshape(-1, R, R)
    b = (precision * mean).T @ z
    own = np.linalg.inv(A + CELL_RIDGE * np.eye(R))
    # What a key's cells say of V_key once they are at their best given it.
    shared = CELL_RIDGE * (np.eye(R) - CELL_RIDGE * own)
    says = CELL_RIDGE * np.einsum("crs,cs->cr", own, b)
    left = np.tile(KEY_RIDGE * np.eye(R), (cells.n_keys, 1, 1))
    right = np.zeros((cells.n_keys, R))
    np.add.at(left, cells.key, shared)
    np.add.at(right, cells.key, says)
    V_key = np.asarray(np.linalg.solve(left, right[:, :, None])[:, :, 0], dtype=np.float64)
    V: Floats = np.einsum("crs,cs->cr", own, b + CELL_RIDGE * V_key[cells.key])
    return V, V_key


def _start(precision: Floats, mean: Floats, cells: Cells, n_factors: int) -> tuple[Floats, Floats]:
    """The largest singular vectors of people's means per key."""
    U = len(mean)
    total, product = np.zeros((cells.n_keys, U)), np.zeros((cells.n_keys, U))
    np.add.at(total, cells.key, precision.T)
    np.add.at(product, cells.key, (precision * mean).T)
    means = product / (total + 1.0)
    _, sizes, directions = np.linalg.svd(means.T, full_matrices=False)
    V_key = np.zeros((cells.n_keys, n_factors))
    found = min(n_factors, len(sizes))
    V_key[:, :found] = (directions[:found] * sizes[:found, None]).T / np.sqrt(U)
    return V_key[cells.key], V_key
