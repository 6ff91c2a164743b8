"""The EM of the loadings: never falls, finds the subspace, and its objective is the marginal likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, linalg, stats

from keydyn.population.cells import Cells
from keydyn.population.loadings import CELL_RIDGE, KEY_RIDGE, fit_loadings, n_factors, objective

NOTHING = np.array([], dtype=np.int64)


def drawn(n_people, cells, V, precision, seed):
    random = np.random.default_rng(seed)
    p = np.full((n_people, cells.n_cells), precision) * (random.uniform(size=(n_people, cells.n_cells)) < 0.7)
    z = random.normal(size=(n_people, V.shape[1]))
    mean = z @ V.T + random.normal(size=p.shape) / np.sqrt(precision)
    return p, np.where(p > 0, mean, 0.0)


@pytest.mark.parametrize(("n_people", "rank"), [(3, 1), (40, 2), (150, 4)])
def test_objective_never_falls(n_people, rank):
    cells = Cells(np.array(list("abcde")), 2, np.arange(3, 9), np.arange(4, 12))
    V = np.random.default_rng(1).normal(0.0, 0.7, (cells.n_cells, rank))
    p, mean = drawn(n_people, cells, V, 5.0, 2)
    history = []
    fit_loadings(p, mean, cells, rank, history)
    assert history[-1] > history[0]
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


def test_objective_is_the_penalised_marginal_likelihood():
    """Differences between loadings, against the density with z integrated out by quadrature."""
    cells = Cells(np.array(["a"]), 2, NOTHING, NOTHING)
    random = np.random.default_rng(3)
    C = cells.n_cells
    p, mean = random.uniform(1.0, 4.0, (2, C)), random.normal(size=(2, C))
    p[0, 1] = 0.0

    def by_quadrature(V, V_key):
        total = 0.0
        for u in range(2):
            seen = p[u] > 0

            def density(z, u=u, seen=seen):
                return stats.norm.pdf(
                    mean[u, seen], V[seen, 0] * z, p[u, seen] ** -0.5
                ).prod() * stats.norm.pdf(z)

            total += np.log(integrate.quad(density, -8, 8, epsabs=1e-13)[0])
        penalty = CELL_RIDGE * ((V - V_key[cells.key]) ** 2).sum() + KEY_RIDGE * (V_key**2).sum()
        return total - 0.5 * penalty

    pairs = [(random.normal(0.0, 0.1, (C, 1)), random.normal(0.0, 0.1, (cells.n_keys, 1))) for _ in range(3)]
    ours = [objective(V, V_key, p, mean, cells) for V, V_key in pairs]
    theirs = [by_quadrature(V, V_key) for V, V_key in pairs]
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-7)


def test_subspace_is_recovered():
    cells = Cells(np.array(list("abcdefgh")), 2, np.arange(0, 40), np.arange(20, 60))
    random = np.random.default_rng(4)
    of_key = random.normal(0.0, 1.0, (cells.n_keys, 2))
    V = of_key[cells.key] + random.normal(0.0, 0.1, (cells.n_cells, 2))
    p, mean = drawn(400, cells, V, 5.0, 5)
    found = fit_loadings(p, mean, cells, 2)
    assert np.cos(linalg.subspace_angles(V, found)).min() > 0.98
    start = random.normal(size=V.shape)
    assert np.cos(linalg.subspace_angles(V, start)).min() < 0.5


def test_number_of_factors():
    assert [n_factors(n) for n in (2, 3, 10, 24, 60, 240, 10_000)] == [1, 2, 2, 2, 5, 20, 20]
