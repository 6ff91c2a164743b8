"""A person from samples: five reweighted Gaussian posteriors, then the slopes. Compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner, merged
from keydyn.population.cells import Cells
from keydyn.population.features import CLIP
from keydyn.population.parameters import Variances
from keydyn.population.person.posterior import effects, expected, inverted, uncertainty

ITERATIONS = 5
# The slopes are fitted so often, each time with the weights of what the last ones left.
SLOPE_FITS = 2
GAIN_LEANS = 20.0


@dataclass(frozen=True, eq=False)
class People:
    """What samples say of U people.

    Attributes
    ----------
    weight, cell_mean : (U, C) sum of weights and weighted mean of y in each cell, the tempo removed
    noise, mean, spread : (U, C) σ², and mean and variance of the person's effect
    own_noise : (U, F) σ² of the person
    slopes, slope_spread : (U, F, 3) β and its posterior variance
    gain : (U, F) g²; gain_sums : (U, F, 2) its parts
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
        """(U, C) the scale used for scoring: few samples make it wide."""
        scale: Floats = np.sqrt(self.noise + self.spread)
        return scale

    @property
    def variance(self) -> Floats:
        """(U, C) of a cell's mean; infinite where a person has not typed."""
        with np.errstate(divide="ignore"):
            variance: Floats = self.noise / self.weight
        return variance


def fit_people(
    y: Floats,
    cell: Integers,
    offsets: Integers,
    chosen: Integers,
    begins: Integers,
    cells: Cells,
    loadings: Floats,
    variances: Variances,
    parents: Integers,
    complete: bool = True,
) -> People:
    """The people who typed the chosen samples, person u those from begins[u] to begins[u + 1].

    Somebody without samples is anybody. If not `complete`, cells that a person has not typed stay 0.
    """
    U, C, F = len(begins) - 1, cells.n_cells, cells.n_features
    people = People(
        np.zeros((U, C)),
        np.zeros((U, C)),
        np.zeros((U, C)),
        np.zeros((U, C)),
        np.zeros((U, C)),
        np.zeros((U, F)),
        np.zeros((U, F, 3)),
        np.zeros((U, F, 3)),
        np.zeros((U, F)),
        np.zeros((U, F, 2)),
        np.zeros((len(chosen), F)),
    )
    _fit(
        np.ascontiguousarray(y), np.ascontiguousarray(cell), np.ascontiguousarray(offsets),
        np.ascontiguousarray(chosen), np.ascontiguousarray(begins), loadings, cells.key, cells.key_feature,
        (variances.cell, variances.key, variances.tempo, variances.noise, variances.gain),
        (variances.slope, variances.slope_variance), variances.noise_leans, float(variances.degrees[0]),
        parents, complete,
        (people.weight, people.cell_mean, people.noise, people.mean, people.spread),
        (people.own_noise, people.gain),
        (people.slopes, people.slope_spread, people.gain_sums), people.tempo,
    )  # fmt: skip
    return people


@merged
def _tempos(
    r: Floats, weight: Floats, offsets: Integers, chosen: Integers, tempo_variance: Floats, tempo: Floats
) -> None:
    """d̂ of each sample and feature, from residuals and their weights."""
    for k in range(len(chosen)):
        for f in range(r.shape[1]):
            total, product = 1.0 / tempo_variance[f], 0.0
            for n in range(offsets[chosen[k]], offsets[chosen[k] + 1]):
                if not np.isnan(r[n, f]):
                    total += weight[n, f]
                    product += weight[n, f] * r[n, f]
            tempo[k, f] = product / total


@merged
def _noise(
    squares: Floats,
    weight: Floats,
    noise: Floats,
    own: Floats,
    population: Floats,
    leans: Floats,
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
        own[f] = leans[2] * population[f]
    total = np.full(F, leans[2])
    for key in range(G):
        own[key_feature[key]] += key_sum[key]
        total[key_feature[key]] += key_weight[key]
    for f in range(F):
        own[f] /= total[f]
    for key in range(G):
        leaning = leans[1] * own[key_feature[key]]
        key_sum[key] = (key_sum[key] + leaning) / (key_weight[key] + leans[1])
    for c in range(len(cell_key)):
        leaning = leans[0] * key_sum[cell_key[c]]
        noise[c] = (squares[c] + leaning) / (weight[c] + leans[0])


@compiled
def _fit(
    y: Floats,
    cell: Integers,
    offsets: Integers,
    chosen: Integers,
    begins: Integers,
    loadings: Floats,
    cell_key: Integers,
    key_feature: Integers,
    variances: tuple[Floats, Floats, Floats, Floats, Floats],
    slope_prior: tuple[Floats, Floats],
    leans: Floats,
    degrees: float,
    parents: Integers,
    complete: bool,
    of_cells: tuple[Floats, Floats, Floats, Floats, Floats],
    of_features: tuple[Floats, Floats],
    of_slopes: tuple[Floats, Floats, Floats],
    tempos: Floats,
) -> None:
    r, w = np.empty(y.shape), np.ones(y.shape)
    for u in range(len(begins) - 1):
        samples = chosen[begins[u] : begins[u + 1]]
        tempo = tempos[begins[u] : begins[u + 1]]
        scale = np.empty(loadings.shape[0])
        _fit_effects(
            y, cell, offsets, samples, loadings, cell_key, key_feature, variances, leans, degrees, complete,
            of_cells[0][u], of_cells[1][u], of_cells[2][u], of_cells[3][u], of_cells[4][u],
            of_features[0][u], tempo, scale, r, w,
        )  # fmt: skip
        for k in range(len(samples)):
            for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
                for f in range(y.shape[1]):
                    c = cell[n, f]
                    r[n, f] = (y[n, f] - of_cells[3][u, c]) / np.sqrt(of_cells[2][u, c] + of_cells[4][u, c])
        _fit_slopes(
            r, w, offsets, samples, tempo, parents, slope_prior, variances[4], degrees,
            of_slopes[0][u], of_slopes[1][u], of_features[1][u], of_slopes[2][u],
        )  # fmt: skip


@merged
def _fit_effects(
    y: Floats,
    cell: Integers,
    offsets: Integers,
    samples: Integers,
    loadings: Floats,
    cell_key: Integers,
    key_feature: Integers,
    variances: tuple[Floats, Floats, Floats, Floats, Floats],
    leans: Floats,
    degrees: float,
    complete: bool,
    weight: Floats,
    cell_mean: Floats,
    noise: Floats,
    mean: Floats,
    spread: Floats,
    own: Floats,
    tempo: Floats,
    scale: Floats,
    r: Floats,
    w: Floats,
) -> None:
    """One person's effects, noise and tempos; w has the last weights. `scale` and r are room to work in."""
    cell_variance, key_variance, tempo_variance, population_noise, _ = variances
    F, (C, R), G = y.shape[1], loadings.shape, len(key_feature)
    S, z, room = np.empty((R, R)), np.empty(R), np.empty(R)
    key_mean, key_spread, pull = np.empty(G), np.empty(G), np.empty((G, R))
    variance, squares = np.empty(C), np.empty(C)
    for c in range(C):
        noise[c] = population_noise[key_feature[cell_key[c]]]
        scale[c] = np.sqrt(noise[c])
    for iteration in range(ITERATIONS):
        if iteration > 0:
            # The first time the tempo would absorb the person.
            for k in range(len(samples)):
                for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
                    for f in range(F):
                        r[n, f] = (y[n, f] - mean[cell[n, f]]) / scale[cell[n, f]]
                        e = r[n, f] - tempo[k, f]
                        w[n, f] = (degrees + 1.0) / (degrees + e * e)
            _tempos(r, w, offsets, samples, tempo_variance, tempo)
        for c in range(C):
            weight[c], cell_mean[c] = 0.0, 0.0
        for k in range(len(samples)):
            for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
                for f in range(F):
                    if not np.isnan(y[n, f]):
                        c = cell[n, f]
                        weight[c] += w[n, f]
                        cell_mean[c] += w[n, f] * (y[n, f] - tempo[k, f] * scale[c])
        for c in range(C):
            variance[c] = np.inf
            if weight[c] > 0.0:
                cell_mean[c] /= weight[c]
                variance[c] = noise[c] / weight[c]
        effects(
            variance, cell_mean, loadings, cell_key, key_feature, cell_variance, key_variance,
            S, z, key_mean, key_spread, pull,
        )  # fmt: skip
        for c in range(C):
            key = cell_key[c]
            lam = cell_variance[key_feature[key]]
            squares[c] = 0.0
            if weight[c] > 0.0:
                base = expected(c, key, loadings, z, key_mean)
                k_c = lam / (lam + variance[c])
                mean[c] = base + k_c * (cell_mean[c] - base)
                spread[c] = (1.0 - k_c) ** 2 * uncertainty(c, key, loadings, S, key_spread, pull, room)
                spread[c] += lam * (1.0 - k_c)
                squares[c] = weight[c] * spread[c]
            elif complete and iteration == ITERATIONS - 1:
                mean[c] = expected(c, key, loadings, z, key_mean)
                spread[c] = uncertainty(c, key, loadings, S, key_spread, pull, room) + lam
        for k in range(len(samples)):
            for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
                for f in range(F):
                    if not np.isnan(y[n, f]):
                        c = cell[n, f]
                        e = y[n, f] - mean[c] - tempo[k, f] * scale[c]
                        squares[c] += w[n, f] * e * e
        _noise(squares, weight, noise, own, population_noise, leans, cell_key, key_feature)
        for c in range(C):
            scale[c] = np.sqrt(noise[c])


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


@merged
def _fit_slopes(
    r: Floats,
    w: Floats,
    offsets: Integers,
    samples: Integers,
    tempo: Floats,
    parents: Integers,
    prior: tuple[Floats, Floats],
    population_gain: Floats,
    degrees: float,
    slopes: Floats,
    slope_spread: Floats,
    gain: Floats,
    gain_sums: Floats,
) -> None:
    """Ridge regression of residuals on their parents, and the share of the squares that it leaves."""
    A, b, x = np.empty((3, 3)), np.empty(3), np.empty(3)
    for f in range(r.shape[1]):
        gain[f] = population_gain[f]
        for _ in range(SLOPE_FITS):
            for j in range(3):
                for i in range(3):
                    A[j, i] = 0.0
                A[j, j] = 1.0 / prior[1][f, j]
                b[j] = A[j, j] * prior[0][f, j]
            for k in range(len(samples)):
                first = offsets[samples[k]]
                for n in range(first, offsets[samples[k] + 1]):
                    if np.isnan(r[n, f]):
                        continue
                    for j in range(3):
                        x[j] = parent(r, n, first, parents[f, j, 0], parents[f, j, 1])
                    for j in range(3):
                        b[j] += w[n, f] * x[j] * (r[n, f] - tempo[k, f])
                        for i in range(j + 1):
                            A[j, i] += w[n, f] * x[j] * x[i]
            inverted(A)
            for j in range(3):
                slope_spread[f, j] = A[j, j]
                slopes[f, j] = A[j, 0] * b[0] + A[j, 1] * b[1] + A[j, 2] * b[2]
            before, after = 0.0, 0.0
            for k in range(len(samples)):
                first = offsets[samples[k]]
                for n in range(first, offsets[samples[k] + 1]):
                    if np.isnan(r[n, f]):
                        continue
                    target = r[n, f] - tempo[k, f]
                    left = target
                    for j in range(3):
                        left -= slopes[f, j] * parent(r, n, first, parents[f, j, 0], parents[f, j, 1])
                    before += w[n, f] * target * target
                    after += w[n, f] * left * left
                    w[n, f] = (degrees + 1.0) / (degrees + left * left / gain[f])
            gain_sums[f, 0], gain_sums[f, 1] = before, after
            gain[f] = (after + GAIN_LEANS * population_gain[f]) / (before + GAIN_LEANS)
