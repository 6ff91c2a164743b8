"""A person's posterior against dense Gaussian algebra and against integration."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from keydyn.arrays import compiled
from keydyn.population.cells import Cells
from keydyn.population.features import Typing
from keydyn.population.learn.variances import PERSON_NOISE_LEANS, initial_variances
from keydyn.population.person.fitting import GAIN_LEANS, Chosen, Prior, fit_people
from keydyn.population.person.posterior import Differences, Posterior, effects, expected, uncertainty


@partial(compiled, _nrt=False)
def solve(variance, mean, differences, posterior, base, unsure):
    effects(variance, mean, differences, posterior)
    for c in range(len(variance)):
        base[c] = expected(c, differences, posterior)
        unsure[c] = uncertainty(c, differences, posterior)


def solved(variance, mean, differences):
    """The posterior of z and S, and of V z + a, mean and variance of each cell."""
    posterior, base, unsure = Posterior.room(differences), np.empty(len(mean)), np.empty(len(mean))
    solve(variance, mean, differences, posterior, base, unsure)
    return posterior.z, posterior.S, base, unsure


@pytest.mark.parametrize("seed", range(5))
def test_posterior_is_that_of_dense_algebra(seed):
    """z, V z + a, and its variance, from the joint normal distribution of everything."""
    random = np.random.default_rng(seed)
    C, G, R = 9, 4, 3
    key = np.concatenate([np.arange(G), random.integers(0, G, C - G)])
    feature = np.array([0, 0, 1, 1])
    V = random.normal(size=(C, R))
    weight = random.uniform(0.5, 5.0, C) * (random.uniform(size=C) > 0.3)
    noise, lam, kappa = random.uniform(0.2, 1.0, C), np.array([0.3, 0.1]), np.array([0.2, 0.05])
    mean = random.normal(size=C)
    typed = weight > 0
    variance = np.where(typed, noise / np.where(typed, weight, 1.0), np.inf)
    z, S, base, unsure = solved(variance, mean, Differences(V, key, feature, lam, kappa))

    shared = np.eye(G)[key]
    prior = V @ V.T + shared @ np.diag(kappa[feature]) @ shared.T
    own = lam[feature[key]] + variance
    seen = prior[np.ix_(typed, typed)] + np.diag(own[typed])
    gain = np.linalg.solve(seen, prior[typed]).T
    np.testing.assert_allclose(base, gain @ mean[typed], atol=1e-10)
    np.testing.assert_allclose(unsure, np.diag(prior - gain @ prior[typed]), atol=1e-10)
    to_factors = np.linalg.solve(seen, V[typed]).T
    np.testing.assert_allclose(z, to_factors @ mean[typed], atol=1e-10)
    np.testing.assert_allclose(S, np.eye(R) - to_factors @ V[typed], atol=1e-10)


def test_posterior_is_that_of_integration():
    """Two cells of one key, one factor: moments by brute force over z and a."""
    V, lam, kappa, noise = np.array([[0.8], [-0.5]]), 0.3, 0.2, np.array([0.4, 0.6])
    weight, mean = np.array([2.0, 3.0]), np.array([0.7, 0.4])

    factor, own = np.linspace(-7, 7, 801)[:, None, None], np.linspace(-4, 4, 801)[None, :, None]
    effect = V[:, 0] * factor + own
    seen = stats.norm.pdf(mean, effect, np.sqrt(lam + noise / weight)).prod(axis=2)
    density = seen * stats.norm.pdf(factor[..., 0]) * stats.norm.pdf(own[..., 0], 0.0, np.sqrt(kappa))
    density /= density.sum()
    first = (effect[..., 0] * density).sum()
    second = (effect[..., 0] ** 2 * density).sum()
    key, feature = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)
    differences = Differences(V, key, feature, np.array([lam]), np.array([kappa]))
    _, _, base, unsure = solved(noise / weight, mean, differences)
    assert base[0] == pytest.approx(first, abs=1e-6)
    assert unsure[0] == pytest.approx(second - first**2, abs=1e-6)


def known(n_features=2):
    nothing = np.array([], dtype=np.int64)
    cells = Cells(np.array(["a", "b"]), n_features, nothing, nothing)
    full = np.full(n_features, 1.0)
    variances = replace(
        initial_variances(n_features),
        slope=np.full((n_features, 3), 0.1),
        slope_variance=np.full((n_features, 3), 0.01),
        gain=0.8 * full,
    )
    V = np.random.default_rng(0).normal(0.0, 0.3, (cells.n_cells, 2))
    return cells, variances, V


def fit_person(y, cell, offsets, cells, V, variances):
    """The only person of these samples."""
    n = len(offsets) - 1
    typing = Typing(y, cell, offsets, np.zeros(len(y), dtype=np.int64))
    people = fit_people(typing, Chosen.one_person(n), Prior.of(cells, V, variances))
    return SimpleNamespace(**{name: of[0] for name, of in people._asdict().items() if n or name != "tempo"})


def test_a_person_without_samples_is_the_population():
    cells, variances, V = known()
    nothing = np.zeros((0, 2))
    person = fit_person(nothing, nothing.astype(np.int64), np.zeros(1, dtype=np.int64), cells, V, variances)
    np.testing.assert_array_equal(person.mean, 0.0)
    np.testing.assert_allclose(person.spread, (V**2).sum(axis=1) + 0.05 + 0.2, rtol=1e-12)
    np.testing.assert_allclose(person.noise, 0.5, rtol=1e-12)
    np.testing.assert_allclose(person.slopes, 0.1, rtol=1e-12)
    np.testing.assert_allclose(person.gain, 0.8, rtol=1e-12)


def test_the_parts_of_a_gain_are_those_that_gains_are_learnt_from():
    """The parts of the gain, with the population's before they are divided, are the gain."""
    cells, variances, V = known()
    rng = np.random.default_rng(3)
    y, cell = rng.normal(0.0, 0.5, (90, 2)), np.arange(2) * 2 + rng.integers(0, 2, (90, 1))
    person = fit_person(y, cell, np.array([0, 30, 90]), cells, V, variances)
    before, after = person.gain_sums.T
    assert (person.gain_sums > 0.0).all()
    np.testing.assert_allclose(person.gain, (after + GAIN_LEANS * 0.8) / (before + GAIN_LEANS), rtol=1e-12)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("cells", "cell", [[-1, 2], [0, 2], [1, 3]]),
        ("cells", "cell", [[0, 2], [0, 2], [1, 99]]),
        ("cells", "cell", [[0], [0], [1]]),
        ("offsets", "offsets", [1, 2, 3]),
        ("offsets", "offsets", [0, 2, 4]),
        ("samples", "samples", [0, 2]),
        ("samples", "samples", [-1, 1]),
        ("people", "begins", [1, 2]),
        ("people", "begins", [0, 3]),
        ("variances", "tempo", [0.1]),
        ("variances", "noise", [0.1, 0.1, 0.1]),
        ("slopes", "slope", [[0.1, 0.1]] * 2),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_compiled_code_sees_them(part, name, value):
    cells, variances, V = known()
    cell = np.array([[0, 2], [0, 2], [1, 3]])
    typing = Typing(np.zeros((3, 2)), cell, np.array([0, 2, 3]), np.zeros(3, dtype=np.int64))
    chosen, prior = Chosen(np.array([0, 1]), np.array([0, 2])), Prior.of(cells, V, variances)
    assert fit_people(typing, chosen, prior).mean.shape == (1, cells.n_cells)
    wrong = {name: np.array(value)}
    with pytest.raises(ValueError, match=rf"differ in size: (\w+, )*{part}"):
        fit_people(
            *(one._replace(**wrong) if name in one._fields else one for one in (typing, chosen, prior))
        )


def test_with_many_samples_a_person_is_what_was_typed():
    """The prior is forgotten: means, noise and slopes are those the values were drawn with."""
    cells, variances, V = known()
    random = np.random.default_rng(1)
    n, lengths = 200, 50
    wanted_mean, wanted_scale, slope = random.normal(0.0, 0.5, cells.n_cells), 0.6, 0.35
    code = random.integers(0, 2, n * lengths)
    cell = np.stack([code, cells.n_codes + code], axis=1)
    r = random.standard_t(4, (n * lengths, 2))
    for k in range(1, len(r)):
        if k % lengths:
            r[k, 0] += slope * np.clip(r[k - 1, 0], -3, 3)
    y = wanted_mean[cell] + wanted_scale * r
    offsets = np.arange(0, n * lengths + 1, lengths)
    person = fit_person(y, cell, offsets, cells, V, variances)
    typed = np.unique(cell)
    # Standard errors are about .01.
    np.testing.assert_allclose(person.mean[typed], wanted_mean[typed], atol=0.06)
    np.testing.assert_allclose(person.slopes[0, 0], slope, atol=0.06)
    np.testing.assert_allclose(person.slopes[1], 0.0, atol=0.05)
    np.testing.assert_allclose(person.own_noise[1], wanted_scale**2, rtol=0.05)
    assert person.gain[0] < 0.95


def test_no_value_leaves_the_noise_at_its_prior():
    """One value: the person's noise has moved by one pseudo-observation in eleven at most."""
    cells, variances, V = known()
    y, cell = np.array([[np.nan, 0.0]]), np.array([[0, cells.n_codes]])
    person = fit_person(y, cell, np.array([0, 1]), cells, V, variances)
    np.testing.assert_allclose(person.own_noise[0], 0.5, rtol=1e-12)
    shifted = person.own_noise[1] / 0.5
    assert PERSON_NOISE_LEANS / (PERSON_NOISE_LEANS + 1.25) - 0.01 < shifted < 1.1


def test_what_does_not_fit_is_refused_before_anything_is_computed():
    cells, variances, V = known()
    prior, codes = Prior.of(cells, V, variances), np.zeros((1, 2), dtype=np.int64)
    typing = Typing(np.zeros((1, 2)), codes, np.array([0, 1]), np.zeros(1, dtype=np.int64))
    wrong = {
        "cells": (typing._replace(cell=codes + cells.n_cells), Chosen.one_person(1), prior),
        "offsets": (typing._replace(offsets=np.array([0, 2])), Chosen.one_person(1), prior),
        "samples": (typing, Chosen(np.array([3]), np.array([0, 1])), prior),
        "people": (typing, Chosen(np.array([0]), np.array([0, 2])), prior),
        "slopes": (typing, Chosen.one_person(1), prior._replace(slope=np.zeros((3, 3)))),
    }
    for what, given in wrong.items():
        with pytest.raises(ValueError, match=f"differ in size: {what}$"):
            fit_people(*given)
