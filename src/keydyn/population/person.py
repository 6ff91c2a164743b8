"""A person from samples: five reweighted Gaussian posteriors, then the slopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.population.cells import Cells
from keydyn.population.parameters import Strengths
from keydyn.population.posterior import effects, expected, inverted, uncertainty

DEGREES = 4.0
ITERATIONS = 5
# Pseudo-observations: a cell's noise leans on its key's, that on the person's, that on the population's.
CELL_NOISE_LEANS, KEY_NOISE_LEANS, PERSON_NOISE_LEANS = 100.0, 30.0, 10.0
GAIN_LEANS = 20.0
CLIP = 3.0


@dataclass(frozen=True, eq=False)
class Person:
    """What samples say of a person.

    Attributes
    ----------
    weight, cell_mean : (C,) sum of weights and weighted mean of y in each cell, the tempo removed
    noise, mean, spread : (C,) σ², and mean and variance of the person's effect
    own_noise : (F,) σ² of the person
    slopes, slope_spread : (F, 3) β and its posterior variance; gain : (F,) g²; gain_sums : (F, 2) its parts
    tempo : (n, F) d̂ of each sample
    """

    weight: Floats
    cell_mean: Floats
    noise: Floats
    mean: Floats
    spread: Floats
    own_noise: Floats
    slopes: Floats
    slope_spread: Floats
    gain: Floats
    gain_sums: Floats
    tempo: Floats

    @property
    def scale(self) -> Floats:
        """(C,) the scale used for scoring: few samples make it wide."""
        scale: Floats = np.sqrt(self.noise + self.spread)
        return scale


def fit_person(
    y: Floats,
    cell: Integers,
    offsets: Integers,
    cells: Cells,
    loadings: Floats,
    strengths: Strengths,
    parents: Integers,
) -> Person:
    """The person who typed these samples; without any samples, anybody."""
    C, F = cells.n_cells, cells.n_features
    person = Person(
        np.zeros(C),
        np.zeros(C),
        np.zeros(C),
        np.zeros(C),
        np.zeros(C),
        np.zeros(F),
        np.zeros((F, 3)),
        np.zeros((F, 3)),
        np.zeros(F),
        np.zeros((F, 2)),
        np.zeros((len(offsets) - 1, F)),
    )
    _fit(
        np.ascontiguousarray(y),
        np.ascontiguousarray(cell),
        np.ascontiguousarray(offsets),
        loadings,
        cells.key,
        cells.key_feature,
        (strengths.cell, strengths.key, strengths.tempo, strengths.noise, strengths.gain),
        (strengths.slope, strengths.slope_variance),
        parents,
        (person.weight, person.cell_mean, person.noise, person.mean, person.spread),
        (person.own_noise, person.gain),
        (person.slopes, person.slope_spread, person.gain_sums, person.tempo),
    )
    return person


@inner
def _tempos(r: Floats, weight: Floats, offsets: Integers, tempo_variance: Floats, tempo: Floats) -> None:
    """d̂ of each sample and feature, from residuals and their weights."""
    for s in range(len(offsets) - 1):
        for f in range(r.shape[1]):
            total, product = 1.0 / tempo_variance[f], 0.0
            for n in range(offsets[s], offsets[s + 1]):
                if not np.isnan(r[n, f]):
                    total += weight[n, f]
                    product += weight[n, f] * r[n, f]
            tempo[s, f] = product / total


@inner
def _noise(
    squares: Floats,
    weight: Floats,
    noise: Floats,
    own: Floats,
    population: Floats,
    cell_key: Integers,
    key_feature: Integers,
) -> None:
    """σ² of each cell, leaning on its key's, that on the person's, that on the population's."""
    G, F = len(key_feature), len(population)
    key_sum, key_weight = np.zeros(G), np.zeros(G)
    for c in range(len(cell_key)):
        key_sum[cell_key[c]] += squares[c]
        key_weight[cell_key[c]] += weight[c]
    for f in range(F):
        own[f] = PERSON_NOISE_LEANS * population[f]
    total = np.full(F, PERSON_NOISE_LEANS)
    for key in range(G):
        own[key_feature[key]] += key_sum[key]
        total[key_feature[key]] += key_weight[key]
    for f in range(F):
        own[f] /= total[f]
    for key in range(G):
        leaning = KEY_NOISE_LEANS * own[key_feature[key]]
        key_sum[key] = (key_sum[key] + leaning) / (key_weight[key] + KEY_NOISE_LEANS)
    for c in range(len(cell_key)):
        leaning = CELL_NOISE_LEANS * key_sum[cell_key[c]]
        noise[c] = (squares[c] + leaning) / (weight[c] + CELL_NOISE_LEANS)


@compiled
def _fit(
    y: Floats,
    cell: Integers,
    offsets: Integers,
    loadings: Floats,
    cell_key: Integers,
    key_feature: Integers,
    strengths: tuple[Floats, Floats, Floats, Floats, Floats],
    slope_prior: tuple[Floats, Floats],
    parents: Integers,
    of_cells: tuple[Floats, Floats, Floats, Floats, Floats],
    of_features: tuple[Floats, Floats],
    of_person: tuple[Floats, Floats, Floats, Floats],
) -> None:
    cell_variance, key_variance, tempo_variance, population_noise, population_gain = strengths
    weight, cell_mean, noise, mean, spread = of_cells
    own, gain = of_features
    slopes, slope_spread, gain_sums, tempo = of_person
    (N, F), (C, R), G = y.shape, loadings.shape, len(key_feature)
    r, w = np.full((N, F), np.nan), np.ones((N, F))
    S, z = np.empty((R, R)), np.empty(R)
    key_mean, key_spread, pull = np.empty(G), np.empty(G), np.empty((G, R))
    squares = np.empty(C)
    for c in range(C):
        noise[c] = population_noise[key_feature[cell_key[c]]]
    for iteration in range(ITERATIONS):
        if iteration > 0:
            # The first time the tempo would absorb the person.
            for n in range(N):
                for f in range(F):
                    r[n, f] = (y[n, f] - mean[cell[n, f]]) / np.sqrt(noise[cell[n, f]])
            for s in range(len(offsets) - 1):
                for n in range(offsets[s], offsets[s + 1]):
                    for f in range(F):
                        e = r[n, f] - tempo[s, f]
                        w[n, f] = (DEGREES + 1.0) / (DEGREES + e * e)
            _tempos(r, w, offsets, tempo_variance, tempo)
        weight[:] = 0.0
        cell_mean[:] = 0.0
        for s in range(len(offsets) - 1):
            for n in range(offsets[s], offsets[s + 1]):
                for f in range(F):
                    if not np.isnan(y[n, f]):
                        c = cell[n, f]
                        weight[c] += w[n, f]
                        cell_mean[c] += w[n, f] * (y[n, f] - tempo[s, f] * np.sqrt(noise[c]))
        for c in range(C):
            if weight[c] > 0.0:
                cell_mean[c] /= weight[c]
        effects(
            weight, cell_mean, noise, loadings, cell_key, key_feature, cell_variance, key_variance,
            S, z, key_mean, key_spread, pull,
        )  # fmt: skip
        for c in range(C):
            key = cell_key[c]
            lam = cell_variance[key_feature[key]]
            if weight[c] > 0.0:
                base = expected(c, key, loadings, z, key_mean)
                k = lam / (lam + noise[c] / weight[c])
                mean[c] = base + k * (cell_mean[c] - base)
                spread[c] = (1.0 - k) ** 2 * uncertainty(c, key, loadings, S, key_spread, pull)
                spread[c] += lam * (1.0 - k)
            elif iteration == ITERATIONS - 1:
                mean[c] = expected(c, key, loadings, z, key_mean)
                spread[c] = uncertainty(c, key, loadings, S, key_spread, pull) + lam
        for c in range(C):
            squares[c] = weight[c] * spread[c]
        for s in range(len(offsets) - 1):
            for n in range(offsets[s], offsets[s + 1]):
                for f in range(F):
                    if not np.isnan(y[n, f]):
                        c = cell[n, f]
                        e = y[n, f] - mean[c] - tempo[s, f] * np.sqrt(noise[c])
                        squares[c] += w[n, f] * e * e
        _noise(squares, weight, noise, own, population_noise, cell_key, key_feature)
    for n in range(N):
        for f in range(F):
            c = cell[n, f]
            r[n, f] = (y[n, f] - mean[c]) / np.sqrt(noise[c] + spread[c])
    _slopes(
        r, w, offsets, tempo, parents, slope_prior, population_gain, slopes, slope_spread, gain, gain_sums
    )


@inner
def parent(r: Floats, n: int, first: int, of: int, before: int) -> float:
    """The clipped residual of a parent; 0 if there is none, if it is missing or before the sample's start."""
    if of < 0 or n - before < first:
        return 0.0
    value = r[n - before, of]
    if np.isnan(value):
        return 0.0
    clipped: float = min(max(value, -CLIP), CLIP)
    return clipped


@inner
def _slopes(
    r: Floats,
    w: Floats,
    offsets: Integers,
    tempo: Floats,
    parents: Integers,
    prior: tuple[Floats, Floats],
    population_gain: Floats,
    slopes: Floats,
    slope_spread: Floats,
    gain: Floats,
    gain_sums: Floats,
) -> None:
    """Ridge regression of residuals on their parents, and the share of the squares that it leaves."""
    A, b, x = np.empty((3, 3)), np.empty(3), np.empty(3)
    for f in range(r.shape[1]):
        A[:] = 0.0
        for j in range(3):
            A[j, j] = 1.0 / prior[1][f, j]
            b[j] = A[j, j] * prior[0][f, j]
        for fitted in range(2):
            before, after = 0.0, 0.0
            for s in range(len(offsets) - 1):
                for n in range(offsets[s], offsets[s + 1]):
                    if np.isnan(r[n, f]):
                        continue
                    target = r[n, f] - tempo[s, f]
                    left = target
                    for j in range(3):
                        x[j] = parent(r, n, offsets[s], parents[f, j, 0], parents[f, j, 1])
                    if fitted == 0:
                        for j in range(3):
                            b[j] += w[n, f] * x[j] * target
                            for k in range(j + 1):
                                A[j, k] += w[n, f] * x[j] * x[k]
                    else:
                        for j in range(3):
                            left -= slopes[f, j] * x[j]
                        before += w[n, f] * target * target
                        after += w[n, f] * left * left
            if fitted == 0:
                inverted(A)
                for j in range(3):
                    slope_spread[f, j] = A[j, j]
                    slopes[f, j] = A[j, 0] * b[0] + A[j, 1] * b[1] + A[j, 2] * b[2]
        gain_sums[f, 0], gain_sums[f, 1] = before, after
        gain[f] = (after + GAIN_LEANS * population_gain[f]) / (before + GAIN_LEANS)
