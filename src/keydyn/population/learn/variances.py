"""How strongly people, keys and samples differ: λ, κ, η, β0, τ², estimated or fixed by reason.

λ and κ come from people that the loadings were not learnt from: in the others they come out far too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, Truths, compiled
from keydyn.population.cells import Cells
from keydyn.population.chain import Chain
from keydyn.population.features import Typing
from keydyn.population.learn.groups import Stored
from keydyn.population.parameters import Variances
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.person.posterior import Differences, Posterior, effects, expected, uncertainty
from keydyn.population.score.kernel import Asked, Columns, Shared, filled

# Before anything is known.
CELL, KEY, TEMPO, NOISE = 0.2, 0.05, 0.04, 0.5
LEAST_VARIANCE = 1e-3
# The EM of λ and κ ends when neither changes by more than this share.
ITERATIONS, TOLERANCE = 50, 1e-3
# ν of residuals. Pseudo-observations: a cell's noise leans on its key's, that on the person's, that on the
# population's.
DEGREES = 4.0
CELL_NOISE_LEANS, KEY_NOISE_LEANS, PERSON_NOISE_LEANS = 100.0, 30.0, 10.0
# What final fits take instead of λ as estimated, and how much of η: what was found on other people.
CELL_FACTOR, TEMPO_FACTOR = 1.7, 1.25
LEAST_TEMPO, LEAST_SLOPE_VARIANCE = 0.004, 0.001
# People of one compiled call, well under a second of work: between calls signals are heard.
AT_A_TIME = 200
# A sample's mean tempo counts up to this many robust deviations: a few samples on another keyboard would
# dominate the variance.
TEMPO_CLIP = 3.0
TEMPO_STEPS = 5
# A group's typing, and which of its people count.
Some = tuple[Stored, Truths]


def initial_variances(n_features: int) -> Variances:
    """Where estimation begins: no slopes known, any slope possible."""
    cell, key, tempo, noise = (np.full(n_features, level) for level in (CELL, KEY, TEMPO, NOISE))
    slope, variance, gain = np.zeros((n_features, 3)), np.ones((n_features, 3)), np.ones(n_features)
    leans = np.array([CELL_NOISE_LEANS, KEY_NOISE_LEANS, PERSON_NOISE_LEANS])
    return Variances(cell, key, tempo, noise, slope, variance, gain, leans, np.array([DEGREES]))


def cell_and_key_variances(
    variance: Floats, mean: Floats, cells: Cells, loadings: Floats, start: Variances
) -> tuple[Floats, Floats]:
    """λ and κ of each feature, by EM over people's cells: (U, C) variances and means."""
    cell, key = start.cell.copy(), start.key.copy()
    for _ in range(ITERATIONS):
        sums = np.zeros((cells.n_features, 4))
        differences = Differences.of(cells, loadings, cell, key)
        for u in range(0, len(variance), AT_A_TIME):
            now = slice(u, u + AT_A_TIME)
            _second_moments(variance[now], mean[now], differences, Posterior.room(differences), sums)
        # A feature without values keeps what it has.
        some = (sums[:, 1] > 0) & (sums[:, 3] > 0)
        before = np.concatenate([cell, key])
        cell[some] = np.maximum(sums[some, 0] / sums[some, 1], LEAST_VARIANCE)
        key[some] = np.maximum(sums[some, 2] / sums[some, 3], LEAST_VARIANCE)
        if (np.abs(np.concatenate([cell, key]) - before) <= TOLERANCE * before).all():
            break
    return cell, key


@partial(compiled, _nrt=False)
def _second_moments(
    variance: Floats, mean: Floats, differences: Differences, posterior: Posterior, sums: Floats
) -> None:
    """Σ E[b²] and the number of cells typed, Σ E[a²] and the number of keys typed, of each feature."""
    cell_key, key_feature, pull, S = differences.key, differences.feature, posterior.pull, posterior.S
    R = len(S)
    for u in range(len(variance)):
        effects(variance[u], mean[u], differences, posterior)
        for c in range(variance.shape[1]):
            if variance[u, c] < np.inf:
                f = key_feature[cell_key[c]]
                lam = differences.cell_variance[f]
                k = lam / (lam + variance[u, c])
                gap = mean[u, c] - expected(c, differences, posterior)
                unsure = uncertainty(c, differences, posterior)
                sums[f, 0] += k * k * (gap * gap + unsure) + lam * (1.0 - k)
                sums[f, 1] += 1.0
        for key in range(len(key_feature)):
            # A key that was typed has some precision.
            if posterior.precision[key] > 0.0:
                f = key_feature[key]
                total = posterior.key_mean[key] ** 2 + posterior.key_spread[key]
                for i in range(R):
                    for j in range(R):
                        total += pull[key, i] * S[i, j] * pull[key, j]
                sums[f, 2] += total
                sums[f, 3] += 1.0


def tempos(r: Floats, offsets: Integers, degrees: float) -> tuple[Floats, Floats]:
    """(n, F) robust means of the residuals of samples, and their variances; NaN where there are no values."""
    there, values = np.isfinite(r), np.nan_to_num(r)
    lengths = np.diff(offsets)
    total = np.add.reduceat(there, offsets[:-1], axis=0, dtype=np.float64)
    some = total > 0
    mean = np.zeros(total.shape)
    for _ in range(TEMPO_STEPS):
        w = there * (degrees + 1) / (degrees + (values - np.repeat(mean, lengths, axis=0)) ** 2)
        total = np.where(some, np.add.reduceat(w, offsets[:-1], axis=0), 1.0)
        mean = np.add.reduceat(w * values, offsets[:-1], axis=0) / total
    variance = (degrees + 3) / (degrees + 1) / total
    return np.where(some, mean, np.nan), np.where(some, variance, np.nan)


def tempo_variance(mean: Floats, variance: Floats, fallback: Floats) -> Floats:
    """η from held-out samples' means, (n, F), and their variances: how much the means vary beyond that."""
    result = fallback.copy()
    for f in range(len(fallback)):
        known = np.isfinite(mean[:, f])
        d, v = mean[known, f], variance[known, f]
        if len(d) < 2:
            continue
        limit = TEMPO_CLIP * 1.4826 * np.median(np.abs(d))
        clipped = np.clip(d, -limit, limit)
        result[f] = max(TEMPO_FACTOR * float(np.mean(clipped**2 - v)), LEAST_TEMPO)
    return result


def with_slopes(
    variances: Variances, noise: Floats, slopes: Floats, slope_spread: Floats, gain_sums: Floats
) -> Variances:
    """β0 and τ² by moments over people who were fitted with any slope possible; σ² and g² as means."""
    variance = slopes.var(axis=0, ddof=1) - slope_spread.mean(axis=0)
    sums = gain_sums.sum(axis=0)
    gain = np.where(sums[:, 0] > 0, sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], 1.0), 1.0)
    return replace(
        variances,
        noise=noise.mean(axis=0),
        slope=slopes.mean(axis=0),
        slope_variance=np.maximum(variance, LEAST_SLOPE_VARIANCE),
        gain=np.clip(gain, 0.1, 1.0),
    )


def loaded(stored: Stored) -> tuple[Typing, Integers]:
    """A group's typing, and the sample with which each person begins, (U + 1,)."""
    *arrays, begins = stored.load()
    return Typing(*arrays), begins


def cell_means(prior: Prior, stored: Stored) -> tuple[Floats, Floats, Floats]:
    """(U, C) variances and means of all people's cells, and (F,) the sum of their own noise."""
    typing, begins = loaded(stored)
    people = fit_people(typing, _samples(begins), prior, False)
    return people.variance, people.cell_mean, people.own_noise.sum(axis=0)


def unexplained(prior: Prior, stored: Stored) -> Floats:
    """(N, F) y without the person's effects and the sample's tempo."""
    typing, begins = loaded(stored)
    people = fit_people(typing, _samples(begins), prior, False)
    person = np.repeat(np.arange(len(begins) - 1), np.diff(typing.offsets[begins]))[:, None]
    tempo = np.repeat(people.tempo, np.diff(typing.offsets), axis=0)
    noise = people.noise[person, typing.cell]
    left: Floats = typing.y - people.mean[person, typing.cell] - tempo * np.sqrt(noise)
    return left


def held_out_people(prior: Prior, some: Some) -> tuple[Floats, Floats, Floats, Floats]:
    """Variances and means of people's cells, and tempos of samples held out of the fit, with variances."""
    typing, begins = loaded(some[0])
    people = fit_people(typing, _samples(begins, some[1]), prior, False)
    train, held_out = _folds(begins, some[1])
    others = fit_people(typing, train, prior)
    part = _part(typing, held_out.samples)
    person = np.repeat(np.arange(len(held_out.begins) - 1), np.diff(part.offsets[held_out.begins]))[:, None]
    r = (part.y - others.mean[person, part.cell]) / others.scale[person, part.cell]
    return people.variance, people.cell_mean, *tempos(r, part.offsets, prior.degrees)


def held_out_residuals(prior: Prior, chain: Chain, some: Some) -> tuple[Floats, Integers, Integers]:
    """e without the tempo, classes of keys and offsets, of samples that are held out of the person's fit."""
    typing, begins = loaded(some[0])
    train, held_out = _folds(begins, some[1])
    people, part = fit_people(typing, train, prior), _part(typing, held_out.samples)
    e, shared = np.empty(part.y.shape), Shared.of(prior.tempo, chain)
    for u in range(len(held_out.begins) - 1):
        own = part.offsets[held_out.begins[u] : held_out.begins[u + 1] + 1]
        rows = slice(own[0], own[-1])
        columns = Columns(
            people.mean[u][:, None],
            1.0 / people.scale[u][:, None],
            people.slopes[u][..., None],
            people.gain[u][:, None] ** -0.5,
        )
        of_one = Typing(part.y[rows], part.cell[rows], own - own[0], part.classes[rows])
        filled(of_one, columns, shared, Asked(residuals=e[rows][..., None]))
    return e, part.classes, part.offsets


def slopes_and_gains(prior: Prior, some: Some) -> tuple[Floats, Floats, Floats, Floats]:
    """Own noise, slopes, their variances, and the parts of the gain, of the people who count."""
    typing, begins = loaded(some[0])
    people = fit_people(typing, _samples(begins, some[1]), prior, False)
    return people.own_noise, people.slopes, people.slope_spread, people.gain_sums


def _samples(begins: Integers, counts: Truths | None = None) -> Chosen:
    """The samples of the people who count."""
    if counts is None:
        return Chosen(np.arange(begins[-1]), begins)
    return _joined([np.arange(*begins[u : u + 2]) for u in np.flatnonzero(counts)])


def _folds(begins: Integers, counts: Truths) -> tuple[Chosen, Chosen]:
    """Samples to fit and samples held out: each half of a person's in turn, none of a single sample."""
    train, held_out = [], []
    for u in np.flatnonzero(counts):
        own = np.arange(*begins[u : u + 2])
        if len(own) > 1:
            train += [own[1::2], own[0::2]]
            held_out += [own[0::2], own[1::2]]
    return _joined(train), _joined(held_out)


def _joined(parts: Sequence[Integers]) -> Chosen:
    begins = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Chosen(np.concatenate([*parts, begins[:0]]), begins)


def _part(typing: Typing, samples: Integers) -> Typing:
    """These samples alone."""
    lengths = np.diff(typing.offsets)[samples]
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.repeat(typing.offsets[samples] - begins[:-1], lengths) + np.arange(begins[-1])
    return Typing(typing.y[rows], typing.cell[rows], begins, typing.classes[rows])
