"""Learn the loadings V, the directions in which people differ, by EM of a factor model with missing cells.

Objective, at fixed precisions p and means ȳ of each person's cells:

    Σ_u ln N(ȳ_u; 0, V Vᵀ + diag 1/p_u)  −  ½ ρ Σ_c |V_c − V_key(c)|²  −  ½ ρ₀ Σ_key |V_key|²

and, if V was learnt from other people before, + Σ_c (B_c V_c − ½ P_c |V_c|²): their evidence about V_c if
their z had unit second moment, with P the sum of their precisions and B such that V was their maximum.

The maximisation step solves for V and V_key together. Then z, whose second moment is Γ, is brought to unit
second moment, as if its variance were a parameter too (parameter-expanded EM). The likelihood gains at least
(U/2) (tr Γ − ln |Γ| − R) by that; it is done only if the penalties lose less, so the objective never falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Truths
from keydyn.population.cells import Cells
from keydyn.population.learn.groups import Passes, Stored

# ρ and ρ₀. Weaker penalties would let V memorise the people it is learnt from.
CELL_RIDGE, KEY_RIDGE = 500.0, 200.0
# The number of iterations from scratch, and from a V that is nearly right.
ITERATIONS, FURTHER_ITERATIONS = 15, 8
MOST_FACTORS, LEAST_FACTORS, PEOPLE_PER_FACTOR = 20, 2, 12


def n_factors(n_people: int) -> int:
    """The number of factors R, less than the number of people."""
    wanted = min(MOST_FACTORS, max(LEAST_FACTORS, n_people // PEOPLE_PER_FACTOR))
    return max(1, min(wanted, n_people - 1))


@dataclass(frozen=True, eq=False)
class Before:
    """Evidence of earlier people about V: the V learnt from them, (C, R), and sums of precisions, (C,)."""

    loadings: Floats
    support: Floats

    def linear(self, cells: Cells) -> Floats:
        """B, (C, R)."""
        V_key = _keys_of(self.loadings, cells)[cells.key]
        B: Floats = (self.support[:, None] + CELL_RIDGE) * self.loadings - CELL_RIDGE * V_key
        return B


# Stored variances and means of people's cells, (U, C) each, and which of the people count.
Cases = tuple[Stored, Truths]


def fit_loadings(
    cases: Sequence[Cases],
    cell_variance: Floats,
    cells: Cells,
    n_factors: int,
    passes: Passes,
    begun: Floats | None = None,
    before: Before | None = None,
    history: list[float] | None = None,
) -> tuple[Floats, Floats]:
    """Learn V, (C, R), and its support, (C,).

    `cell_variance` is λ of each cell, and `begun` a V to start from. The objective at the start of each
    iteration is appended to `history`.
    """
    said, heard = np.zeros((cells.n_cells, n_factors)), np.zeros(cells.n_cells)
    if before is not None:
        begun, said, heard = before.loadings, before.linear(cells), before.support
    if begun is None:
        V_key = _start(cases, cell_variance, cells, n_factors, passes)
        V = V_key[cells.key]
    else:
        V, V_key = begun, _keys_of(begun, cells)
    support = np.zeros(cells.n_cells)

    def lost(V: Floats, V_key: Floats) -> float:
        of_others = 0.5 * (heard[:, None] * V**2).sum() - (said * V).sum()
        return _ridges(V, V_key, cells) + float(of_others)

    for _ in range(ITERATIONS if begun is None else FURTHER_ITERATIONS):
        A, b, second, likelihood, support, n = passes.sums(partial(_expected, V, cell_variance), cases)
        if history is not None:
            history.append(float(likelihood) - lost(V, V_key))
        A = _unpacked(A, n_factors) + heard[:, None, None] * np.eye(n_factors)
        V, V_key = _maximised(A, b + said, cells)
        second = second / n
        gain = 0.5 * n * (np.trace(second) - np.linalg.slogdet(second)[1] - n_factors)
        root = np.linalg.cholesky(second)
        turned, turned_key = V @ root, V_key @ root
        if gain > lost(turned, turned_key) - lost(V, V_key):
            V, V_key = turned, turned_key
    return np.ascontiguousarray(V), heard + support


def _keys_of(V: Floats, cells: Cells) -> Floats:
    """The best V_key, given V."""
    total = _by_key(V, cells)
    count = np.bincount(cells.key, minlength=cells.n_keys)[:, None]
    keys: Floats = CELL_RIDGE * total / (CELL_RIDGE * count + KEY_RIDGE)
    return keys


def _ridges(V: Floats, V_key: Floats, cells: Cells) -> float:
    return float(0.5 * (CELL_RIDGE * ((V - V_key[cells.key]) ** 2).sum() + KEY_RIDGE * (V_key**2).sum()))


def _expected(
    V: Floats, cell_variance: Floats, case: Cases
) -> tuple[Floats, Floats, Floats, float, Floats, int]:
    """Σ p E[zzᵀ] of cells, packed; Σ p ȳ E[z]; Σ E[zzᵀ]; the part of ln P that depends on V; Σ p; and U."""
    precision, mean = _precisions(case, cell_variance)
    R = V.shape[1]
    rows, columns = np.tril_indices(R)
    inverse = np.eye(R) + _unpacked(precision @ (V[:, rows] * V[:, columns]), R)
    S = np.linalg.inv(inverse)
    product = precision * mean
    linear = product @ V
    z = np.einsum("urs,us->ur", S, linear)
    second = S + z[:, :, None] * z[:, None, :]
    likelihood = 0.5 * float((linear * z).sum() - np.linalg.slogdet(inverse)[1].sum())
    of_cells = precision.T @ second[:, rows, columns]
    return of_cells, product.T @ z, second.sum(axis=0), likelihood, precision.sum(axis=0), len(z)


def _precisions(case: Cases, cell_variance: Floats) -> tuple[Floats, Floats]:
    stored, counts = case
    variance, mean = (array[counts] for array in stored.load())
    return 1.0 / (variance + cell_variance), mean


def _unpacked(packed: Floats, R: int) -> Floats:
    """(n, R, R) symmetric matrices from their lower triangles, (n, R (R + 1) / 2)."""
    rows, columns = np.tril_indices(R)
    full = np.empty((len(packed), R, R))
    full[:, rows, columns] = packed
    full[:, columns, rows] = packed
    return full


def _maximised(A: Floats, b: Floats, cells: Cells) -> tuple[Floats, Floats]:
    eye = np.eye(A.shape[1])
    own = np.linalg.inv(A + CELL_RIDGE * eye)
    # The evidence of a key's cells about V_key, with V at its best for it.
    left = KEY_RIDGE * eye + _by_key(CELL_RIDGE * (eye - CELL_RIDGE * own), cells)
    right = _by_key(CELL_RIDGE * np.einsum("crs,cs->cr", own, b), cells)
    V_key = np.asarray(np.linalg.solve(left, right[:, :, None])[:, :, 0], dtype=np.float64)
    V: Floats = np.einsum("crs,cs->cr", own, b + CELL_RIDGE * V_key[cells.key])
    return V, V_key


def _by_key(of_cells: Floats, cells: Cells) -> Floats:
    """Sums over the cells of each key; every key has at least one."""
    order = np.argsort(cells.key, kind="stable")
    begins = np.searchsorted(cells.key[order], np.arange(cells.n_keys))
    sums: Floats = np.add.reduceat(of_cells[order], begins, axis=0)
    return sums


def _start(
    cases: Sequence[Cases], cell_variance: Floats, cells: Cells, n_factors: int, passes: Passes
) -> Floats:
    """The V_key to start from: principal directions of people's means per key, scaled by their spread."""
    (moments, n) = passes.sums(partial(_key_moments, cell_variance, cells), cases)
    sizes, directions = np.linalg.eigh(moments / n)
    V_key = np.zeros((cells.n_keys, n_factors))
    found = min(n_factors, len(sizes))
    largest = slice(None, -found - 1, -1)
    V_key[:, :found] = directions[:, largest] * np.sqrt(np.maximum(sizes[largest], 0.0))
    return V_key


def _key_moments(cell_variance: Floats, cells: Cells, case: Cases) -> tuple[Floats, int]:
    """Σ m mᵀ over people, where m are a person's means per key, and the number of people."""
    precision, mean = _precisions(case, cell_variance)
    total, product = _by_key(precision.T, cells), _by_key((precision * mean).T, cells)
    means = product / (total + 1.0)
    return means @ means.T, means.shape[1]
