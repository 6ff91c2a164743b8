"""The EM of the loadings: never falls, finds the subspace, and its objective is the marginal likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, linalg, stats

from keydyn.population.cells import Cells
from keydyn.population.learn import loadings
from keydyn.population.learn.groups import Held, Passes
from keydyn.population.learn.loadings import CELL_RIDGE, KEY_RIDGE, Before, fit_loadings, n_factors

NOTHING = np.array([], dtype=np.int64)


# λ, of which the precisions of these tests have none.
NO_VARIANCE = 0.0


def cases_of(precision, mean, n_groups=1):
    """These people in groups."""
    with np.errstate(divide="ignore"):
        variance = 1.0 / precision
    parts = zip(np.array_split(variance, n_groups), np.array_split(mean, n_groups), strict=True)
    return [(Held((v, m)), np.ones(len(v), dtype=bool)) for v, m in parts]


def fitted(precision, mean, cells, rank, n_groups=1, **options):
    return fit_loadings(cases_of(precision, mean, n_groups), NO_VARIANCE, cells, rank, Passes(), **options)


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
    fitted(p, mean, cells, rank, n_groups=3, history=history)
    assert history[-1] > history[0]
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


def test_objective_is_the_penalised_marginal_likelihood():
    """Its changes from step to step, against the density with z integrated out by quadrature."""
    cells = Cells(np.array(["a"]), 2, NOTHING, NOTHING)
    random = np.random.default_rng(3)
    C = cells.n_cells
    p, mean = random.uniform(1.0, 4.0, (3, C)), random.normal(size=(3, C))
    p[0, 1] = 0.0
    before = Before(random.normal(0.0, 0.3, (C, 1)), random.uniform(0.0, 300.0, C))

    def by_quadrature(V, V_key):
        total = 0.0
        for u in range(len(p)):
            seen = p[u] > 0

            def density(z, u=u, seen=seen):
                return stats.norm.pdf(
                    mean[u, seen], V[seen, 0] * z, p[u, seen] ** -0.5
                ).prod() * stats.norm.pdf(z)

            total += np.log(integrate.quad(density, -8, 8, epsabs=1e-13)[0])
        penalty = CELL_RIDGE * ((V - V_key[cells.key]) ** 2).sum() + KEY_RIDGE * (V_key**2).sum()
        of_others = 0.5 * (before.support[:, None] * V**2).sum() - (before.linear(cells) * V).sum()
        return total - 0.5 * penalty - of_others

    steps = []
    real = loadings._ridges

    def watched(V, V_key, *others):
        steps.append((V, V_key))
        return real(V, V_key, *others)

    history = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loadings, "_ridges", watched)
        fitted(p, mean, cells, 1, before=before, history=history)
    # Of each iteration's three looks at the ridges the first is at where it starts.
    theirs = [by_quadrature(*step) for step in steps[::3]]
    assert np.abs(np.diff(history)).max() > 1e-3
    np.testing.assert_allclose(np.diff(history), np.diff(theirs), rtol=1e-6, atol=1e-8)


def test_with_what_others_said_loadings_are_those_of_everybody_together():
    """Nearly: the first half of the people counts as one number per cell."""
    cells = Cells(np.array(list("abcdefgh")), 2, np.arange(0, 40), np.arange(20, 60))
    random = np.random.default_rng(6)
    V = random.normal(0.0, 0.6, (cells.n_keys, 2))[cells.key]
    p, mean = drawn(1200, cells, V, 5.0, 7)
    together, support = fitted(p, mean, cells, 2)
    first, of_first = fitted(p[:600], mean[:600], cells, 2)
    more, of_both = fitted(p[600:], mean[600:], cells, 2, before=Before(first, of_first))
    np.testing.assert_allclose(of_both, support, rtol=1e-12)

    def difference(found):
        return np.linalg.norm(found @ found.T - V @ V.T)

    assert np.linalg.norm(more @ more.T - together @ together.T) < 0.1 * np.linalg.norm(together @ together.T)
    assert difference(more) < difference(first)


def test_groups_of_people_do_not_matter():
    cells = Cells(np.array(list("abcde")), 2, np.arange(3, 9), np.arange(4, 12))
    V = np.random.default_rng(8).normal(0.0, 0.7, (cells.n_cells, 2))
    p, mean = drawn(50, cells, V, 5.0, 9)
    one, several = (fitted(p, mean, cells, 2, n_groups=n)[0] for n in (1, 9))
    np.testing.assert_allclose(several @ several.T, one @ one.T, atol=1e-9)


def test_subspace_is_recovered():
    cells = Cells(np.array(list("abcdefgh")), 2, np.arange(0, 40), np.arange(20, 60))
    random = np.random.default_rng(4)
    of_key = random.normal(0.0, 1.0, (cells.n_keys, 2))
    V = of_key[cells.key] + random.normal(0.0, 0.1, (cells.n_cells, 2))
    p, mean = drawn(400, cells, V, 5.0, 5)
    found, _ = fitted(p, mean, cells, 2, n_groups=7)
    assert np.cos(linalg.subspace_angles(V, found)).min() > 0.98
    start = random.normal(size=V.shape)
    assert np.cos(linalg.subspace_angles(V, start)).min() < 0.5


def test_number_of_factors():
    assert [n_factors(n) for n in (2, 3, 10, 24, 60, 240, 10_000)] == [1, 2, 2, 2, 5, 20, 20]
