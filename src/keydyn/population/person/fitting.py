"""Fit a person to samples: five reweighted Gaussian posteriors, then the slopes. Compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, merged, plain, within, without_counting
from keydyn.population.cells import Cells
from keydyn.population.features import CLIP, Typing, parents
from keydyn.population.person.posterior import (
    Differences,
    Posterior,
    effects,
    expected,
    inverted,
    uncertainty,
)
from keydyn.population.shared_parameters import Variances

ITERATIONS = 5
# The number of fits of the slopes, each with weights from the residuals of the last.
SLOPE_FITS = 2
GAIN_LEANS = 20.0
# A key's noise counts towards the person's with at most this multiple of the person's.
MOST_NOISE = 4.0


class Prior(NamedTuple):
    """What is known of a person before any sample: the population's differences and variances."""

    differences: Differences  # loadings, λ and κ
    # (F,) η, σ² and g²
    tempo: Floats
    noise: Floats
    gain: Floats
    # (F, 3) β0 and τ²
    slope: Floats
    slope_variance: Floats
    parents: Integers  # (F, 3, 2)
    leans: Floats  # (3,) pseudo-observations of the noise
    degrees: float  # ν

    @classmethod
    def of(cls, cells: Cells, loadings: Floats, variances: Variances) -> Prior:
        """Make the prior from parameters that were learnt, or are being learnt."""
        v, differences = variances, Differences.of(cells, loadings, variances.cell, variances.key)
        own = v.tempo, v.noise, v.gain, v.slope, v.slope_variance
        return cls(differences, *own, parents(cells.n_features), v.noise_leans, float(v.degrees[0]))


class Chosen(NamedTuple):
    """The samples of U people: those of person u are `samples[begins[u] : begins[u + 1]]`."""

    samples: Integers
    begins: Integers

    @classmethod
    def one_person(cls, n: int) -> Chosen:
        """Choose n samples that are all one person's."""
        return cls(np.arange(n), np.array([0, n]))


class People(NamedTuple):
    """U people fitted to their samples."""

    # (U, C) sum of weights, and weighted mean of y without the tempo, in each cell
    weight: Floats
    cell_mean: Floats
    # (U, C) σ², and mean and variance of the person's effect
    noise: Floats
    mean: Floats
    spread: Floats
    own_noise: Floats  # (U, F) σ² of the person
    # (U, F, 3) β and its posterior variance
    slopes: Floats
    slope_spread: Floats
    gain: Floats  # (U, F) g²
    gain_sums: Floats  # (U, F, 2) its parts
    tempo: Floats  # (n, F) d̂ of each sample

    @property
    def scale(self) -> Floats:
        """(U, C) the scale used for scoring, which few samples make wide."""
        scale: Floats = np.sqrt(self.noise + self.spread)
        return scale

    @property
    def variance(self) -> Floats:
        """(U, C) variance of each cell's mean; infinite in cells that the person has not typed."""
        with np.errstate(divide="ignore"):
            variance: Floats = self.noise / self.weight
        return variance


class OnePerson(NamedTuple):
    """One person's samples, rows of `People`, and tempos."""

    samples: Integers
    weight: Floats
    cell_mean: Floats
    noise: Floats
    mean: Floats
    spread: Floats
    own: Floats
    tempo: Floats


# Whether the means of cells that were not typed are wanted, and whether their variances are.
Untyped = tuple[bool, bool]


class PersonRoom(NamedTuple):
    """Work arrays for one person at a time: of events, (N, F), of cells, (C,), and of keys, (G,)."""

    r: Floats
    w: Floats
    scale: Floats
    variance: Floats
    squares: Floats
    key_sum: Floats
    key_weight: Floats
    A: Floats
    b: Floats
    x: Floats
    posterior: Posterior


def fit_people(
    typing: Typing, chosen: Chosen, prior: Prior, complete: bool = True, spreads: bool = True
) -> People:
    """Fit the people who typed these samples; means of untyped cells stay 0 unless the fit is `complete`.

    A person without samples becomes anyone. Without `spreads`, the variances of untyped cells stay 0 in any
    case: they take most of the time.
    """
    (N, F), C = typing.y.shape, len(prior.differences.loadings)
    U, G, n = len(chosen.begins) - 1, len(prior.differences.feature), len(chosen.samples)
    fits = {
        "cells": typing.cell.shape == (N, F) and (N == 0 or 0 <= typing.cell.min() <= typing.cell.max() < C),
        "offsets": typing.offsets[0] == 0 and typing.offsets[-1] == N,
        "samples": n == 0 or 0 <= chosen.samples.min() <= chosen.samples.max() < len(typing.offsets) - 1,
        "people": chosen.begins[0] == 0 and chosen.begins[-1] == n,
        "loadings": prior.differences.key.shape == (C,),
        "variances": prior.tempo.shape == prior.noise.shape == prior.gain.shape == (F,),
        "slopes": prior.slope.shape == prior.slope_variance.shape == (F, 3),
    }
    wrong = [name for name, right in fits.items() if not right]
    if wrong:
        raise ValueError(f"samples and what is known of people differ in size: {', '.join(wrong)}")
    shapes = *[(U, C)] * 5, (U, F), (U, F, 3), (U, F, 3), (U, F), (U, F, 2), (n, F)
    people = People(*map(np.zeros, shapes))
    room = PersonRoom(
        np.empty((N, F)), np.ones((N, F)), np.empty(C), np.empty(C), np.empty(C), np.empty(G), np.empty(G),
        np.empty((3, 3)), np.empty(3), np.empty(3), Posterior.room(prior.differences),
    )  # fmt: skip
    typing = Typing(plain(typing.y), plain(typing.cell), plain(typing.offsets), plain(typing.classes))
    chosen = Chosen(plain(chosen.samples), plain(chosen.begins))
    _fit(typing, chosen, prior, (complete, complete and spreads), people, room)
    return people


@without_counting
def _fit(
    typing: Typing, chosen: Chosen, prior: Prior, untyped: Untyped, people: People, room: PersonRoom
) -> None:
    for u in range(len(chosen.begins) - 1):
        first, end = chosen.begins[u], chosen.begins[u + 1]
        of_one = OnePerson(
            chosen.samples[first:end], people.weight[u], people.cell_mean[u], people.noise[u], people.mean[u],
            people.spread[u], people.own_noise[u], people.tempo[first:end],
        )  # fmt: skip
        for f in range(typing.y.shape[1]):
            of_one.own[f] = prior.noise[f]
        for c in range(len(room.scale)):
            of_one.noise[c] = prior.noise[prior.differences.feature[prior.differences.key[c]]]
            room.scale[c] = np.sqrt(of_one.noise[c])
        for iteration in range(ITERATIONS):
            if iteration > 0:
                # In the first iteration the tempo would absorb the person's effects.
                _weigh(typing, prior, of_one, room)
                _take_tempos(typing, prior, of_one, room)
            _take_means(typing, of_one, room)
            effects(room.variance, of_one.cell_mean, prior.differences, room.posterior)
            last = iteration == ITERATIONS - 1
            _take_effects(prior, (untyped[0] and last, untyped[1] and last), of_one, room)
            _take_noise(typing, prior, of_one, room)
        _take_residuals(typing, of_one, room)
        for f in range(typing.y.shape[1]):
            _fit_slopes(typing, prior, of_one, people, room, (u, f))


@merged
def _weigh(typing: Typing, prior: Prior, person: OnePerson, room: PersonRoom) -> None:
    """Compute residuals, and their weights by Student t."""
    y, cell, offsets, samples = typing.y, typing.cell, typing.offsets, person.samples
    r, w, scale, mean, tempo, degrees = room.r, room.w, room.scale, person.mean, person.tempo, prior.degrees
    for k in range(len(samples)):
        for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
            for f in range(y.shape[1]):
                r[n, f] = (y[n, f] - mean[cell[n, f]]) / scale[cell[n, f]]
                e = r[n, f] - tempo[k, f]
                w[n, f] = (degrees + 1.0) / (degrees + e * e)


@merged
def _take_tempos(typing: Typing, prior: Prior, person: OnePerson, room: PersonRoom) -> None:
    """Estimate d̂ = Σ w r / (Σ w + 1/η) of each sample and feature."""
    offsets, samples, r, w, tempo = typing.offsets, person.samples, room.r, room.w, person.tempo
    for k in range(len(samples)):
        for f in range(r.shape[1]):
            total, product = 1.0 / prior.tempo[f], 0.0
            for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
                if not np.isnan(r[n, f]):
                    total += w[n, f]
                    product += w[n, f] * r[n, f]
            tempo[k, f] = product / total


@merged
def _take_means(typing: Typing, person: OnePerson, room: PersonRoom) -> None:
    """Compute weighted means of cells without the tempo, and their variances σ²/W."""
    y, cell, offsets, samples = typing.y, typing.cell, typing.offsets, person.samples
    weight, cell_mean, tempo, w, scale = person.weight, person.cell_mean, person.tempo, room.w, room.scale
    for c in range(len(weight)):
        weight[c], cell_mean[c] = 0.0, 0.0
    for k in range(len(samples)):
        for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
            for f in range(y.shape[1]):
                if not np.isnan(y[n, f]):
                    c = cell[n, f]
                    weight[c] += w[n, f]
                    cell_mean[c] += w[n, f] * (y[n, f] - tempo[k, f] * scale[c])
    for c in range(len(weight)):
        room.variance[c] = np.inf
        if weight[c] > 0.0:
            cell_mean[c] /= weight[c]
            room.variance[c] = person.noise[c] / weight[c]


@merged
def _take_effects(prior: Prior, untyped: Untyped, person: OnePerson, room: PersonRoom) -> None:
    """Compute μ = m0 + k (ȳ − m0), m0 = V z + E[a], and its variance; of untyped cells as `untyped` says."""
    differences, posterior = prior.differences, room.posterior
    weight, mean, spread = person.weight, person.mean, person.spread
    for c in range(len(weight)):
        lam = differences.cell_variance[differences.feature[differences.key[c]]]
        room.squares[c] = 0.0
        # Without values k is 0.
        k_c = lam / (lam + room.variance[c])
        if weight[c] > 0.0 or untyped[0]:
            base = expected(c, differences, posterior)
            mean[c] = base + k_c * (person.cell_mean[c] - base)
        if weight[c] > 0.0 or untyped[1]:
            unsure = uncertainty(c, differences, posterior)
            spread[c] = (1.0 - k_c) ** 2 * unsure + lam * (1.0 - k_c)
            room.squares[c] = weight[c] * spread[c]


@merged
def _take_noise(typing: Typing, prior: Prior, person: OnePerson, room: PersonRoom) -> None:
    """Estimate the noise from the squares of residuals without the person's effects and the tempo."""
    y, cell, offsets, samples = typing.y, typing.cell, typing.offsets, person.samples
    mean, tempo, w, scale, squares = person.mean, person.tempo, room.w, room.scale, room.squares
    for k in range(len(samples)):
        for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
            for f in range(y.shape[1]):
                if not np.isnan(y[n, f]):
                    c = cell[n, f]
                    e = y[n, f] - mean[c] - tempo[k, f] * scale[c]
                    squares[c] += w[n, f] * e * e
    _share_noise(prior, person, room)
    for c in range(len(scale)):
        scale[c] = np.sqrt(person.noise[c])


@merged
def _share_noise(prior: Prior, person: OnePerson, room: PersonRoom) -> None:
    """Estimate σ² of each cell, shrunk towards its key's, the person's and the population's in turn.

    A key that varies far more than the person's others, because a few of its times were recorded wrongly,
    counts only in part towards the person's σ², because all keys are shrunk towards it.
    """
    cell_key, key_feature, leans = prior.differences.key, prior.differences.feature, prior.leans
    key_sum, key_weight, own = room.key_sum, room.key_weight, person.own
    for key in range(len(key_feature)):
        key_sum[key], key_weight[key] = 0.0, 0.0
    for c in range(len(cell_key)):
        key_sum[cell_key[c]] += room.squares[c]
        key_weight[cell_key[c]] += person.weight[c]
    for f in range(len(own)):
        squares, weight = leans[2] * prior.noise[f], leans[2]
        for key in range(len(key_feature)):
            if key_feature[key] == f:
                squares += min(key_sum[key], MOST_NOISE * own[f] * key_weight[key])
                weight += key_weight[key]
        own[f] = squares / weight
    for key in range(len(key_feature)):
        leaning = leans[1] * own[key_feature[key]]
        key_sum[key] = (key_sum[key] + leaning) / (key_weight[key] + leans[1])
    for c in range(len(cell_key)):
        leaning = leans[0] * key_sum[cell_key[c]]
        person.noise[c] = (room.squares[c] + leaning) / (person.weight[c] + leans[0])


@merged
def _take_residuals(typing: Typing, person: OnePerson, room: PersonRoom) -> None:
    """Compute residuals r in units of the scale used for scoring."""
    y, cell, offsets, samples, r = typing.y, typing.cell, typing.offsets, person.samples, room.r
    for k in range(len(samples)):
        for n in range(offsets[samples[k]], offsets[samples[k] + 1]):
            for f in range(y.shape[1]):
                c = cell[n, f]
                r[n, f] = (y[n, f] - person.mean[c]) / np.sqrt(person.noise[c] + person.spread[c])


@within
def _parent(r: Floats, n: int, first: int, of: int, before: int) -> float:
    """The clipped residual of a parent; 0 if there is no parent, or it is missing or before the sample."""
    if of < 0 or n - before < first:
        return 0.0
    value = r[n - before, of]
    if np.isnan(value):
        return 0.0
    clipped: float = min(max(value, -CLIP), CLIP)
    return clipped


@merged
def _fit_slopes(
    typing: Typing, prior: Prior, person: OnePerson, people: People, room: PersonRoom, place: tuple[int, int]
) -> None:
    """Fit a ridge regression of residuals on their parents, and the share of the squares that it leaves."""
    offsets, samples, tempo, parents = typing.offsets, person.samples, person.tempo, prior.parents
    r, w, A, b, x, degrees = room.r, room.w, room.A, room.b, room.x, prior.degrees
    u, f = place
    slopes, gain = people.slopes[u], people.gain[u]
    gain[f] = prior.gain[f]
    for _ in range(SLOPE_FITS):
        for j in range(3):
            for i in range(3):
                A[j, i] = 0.0
            A[j, j] = 1.0 / prior.slope_variance[f, j]
            b[j] = A[j, j] * prior.slope[f, j]
        for k in range(len(samples)):
            first = offsets[samples[k]]
            for n in range(first, offsets[samples[k] + 1]):
                if np.isnan(r[n, f]):
                    continue
                for j in range(3):
                    x[j] = _parent(r, n, first, parents[f, j, 0], parents[f, j, 1])
                for j in range(3):
                    b[j] += w[n, f] * x[j] * (r[n, f] - tempo[k, f])
                    for i in range(j + 1):
                        A[j, i] += w[n, f] * x[j] * x[i]
        inverted(A)
        for j in range(3):
            people.slope_spread[u, f, j] = A[j, j]
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
                    left -= slopes[f, j] * _parent(r, n, first, parents[f, j, 0], parents[f, j, 1])
                before += w[n, f] * target * target
                after += w[n, f] * left * left
                w[n, f] = (degrees + 1.0) / (degrees + left * left / gain[f])
        people.gain_sums[u, f, 0], people.gain_sums[u, f, 1] = before, after
        gain[f] = (after + GAIN_LEANS * prior.gain[f]) / (before + GAIN_LEANS)
