"""Estimate λ, κ, η and ω together: the variances of people's cells, keys, tempos and levels.

ω is the variance of a person's level in all cells of a feature, beyond what the loadings explain. The mean of
a person's values in cell c and sample k, whose noise has variance 1/π_ck, is

    ȳ_ck = V_c z + l + a_key + b_c + s_c d_k + noise
    z ~ N(0, I), l ~ N(0, ω), a ~ N(0, κ), b ~ N(0, λ), d ~ N(0, η)

with s_c the cell's scale. The effects a and b are integrated out; z, l and the tempos d of all samples are
solved for together. With few samples, the person and the tempos are known only jointly: if one were taken as
known, its uncertainty would count as variance of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.population.features import Typing
from keydyn.population.person.fitting import Chosen, People
from keydyn.population.person.posterior import Differences, inverted

# Lower bounds of λ, κ, η and ω.
LEAST = np.array([[1e-3], [1e-3], [4e-3], [1e-3]])
# Estimation ends when no variance changes by more than this share.
ITERATIONS, TOLERANCE = 50, 3e-3
# Variances with less evidence than this, counted in people or samples known exactly, are not estimated.
LEAST_EVIDENCE = 1e-6
# The least variance of steps, in units of the noise.
LEAST_NOISE = 0.1
# People per compiled call, which takes well under a second: signals are handled only between calls.
AT_A_TIME = 200
# Tempos are clipped at this number of deviations, or a few samples on another keyboard would dominate.
TEMPO_CLIP = 3.0


class TypedCells(NamedTuple):
    """The cells that people typed, sorted by person and cell, and the part of each sample in them."""

    # (M,) for each cell of a person: its number, π, ȳ and s
    cell: Integers
    precision: Floats
    mean: Floats
    scale: Floats
    # (P,) for each sample in which the cell was typed: its number among the person's, its share of π, and the
    # distance of its mean from that of the cell
    sample: Integers
    share: Floats
    apart: Floats
    parts: Integers  # (M + 1,) where the samples of each cell begin
    begins: Integers  # (U + 1,) where the cells of each person begin
    n_samples: Integers  # (U,)


class Steps(NamedTuple):
    """The cells that a group of people typed, with raw steps; `joined` divides them by a common slope."""

    # (M,)
    cell: Integers
    feature: Integers
    expected: Floats
    scale: Floats
    # (P,) for each sample in which the cell was typed: the number of values, the tempo and the mean step
    sample: Integers
    counts: Integers
    tempo: Floats
    step: Floats
    parts: Integers
    begins: Integers
    n_samples: Integers
    # (4, F) the number of values, the sum of derivatives, the number of values beyond the first in a cell,
    # and the sum of squares about the cell's mean
    sums: Floats


def steps_of(typing: Typing, chosen: Chosen, people: People, degrees: float) -> Steps:
    """Steps of the values that people typed, from where fits with b = 0 in their means expect them.

    Noise has long tails, so each value is replaced by the expected one plus a bounded step towards it,
    e / (ν + e²), divided by its mean derivative: in the mean, steps then follow a person's normal effect
    (Stein's lemma). The variance of the steps comes from repeated values of a cell. Weights by distance do
    not serve here: a distant value counts little whether noise or an effect moved it, so effects would come
    out too small.
    """
    lengths, n = np.diff(typing.offsets)[chosen.samples], len(chosen.samples)
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.repeat(typing.offsets[chosen.samples] - first[:-1], lengths) + np.arange(first[-1])
    sample = np.repeat(np.arange(n), lengths)
    U, (_, C), F = len(chosen.begins) - 1, people.noise.shape, typing.y.shape[1]
    person = np.repeat(np.arange(U), np.diff(chosen.begins))[sample][:, None]
    cell = typing.cell[rows]
    scale, tempo = np.sqrt(people.noise[person, cell]), people.tempo[sample]
    e = (typing.y[rows] - people.mean[person, cell]) / scale - tempo
    there = np.isfinite(e)
    feature = np.nonzero(there)[1]
    codes, tempo, e = (one[there] for one in ((person * C + cell) * n + sample[:, None], tempo, e))
    step = e / (degrees + e**2)
    table, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    of_cells, which = np.unique(table // n, return_inverse=True)
    person_of_cells, cells = np.divmod(of_cells, C)
    total = np.bincount(which, counts, len(of_cells))
    about_mean = step - (np.bincount(which[place], step, len(of_cells)) / total)[which[place]]
    feature_of_cells = np.zeros(len(of_cells), dtype=np.int64)
    feature_of_cells[which[place]] = feature
    values, firsts = (np.bincount(one, minlength=F) for one in (feature, feature_of_cells))
    derivatives = np.bincount(feature, (degrees - e**2) / (degrees + e**2) ** 2, F)
    squares = np.bincount(feature, about_mean**2, F)
    of_part = np.zeros(len(table))
    of_part[place] = tempo
    noise, expected = people.noise[person_of_cells, cells], people.mean[person_of_cells, cells]
    return Steps(
        cells, feature_of_cells, expected, np.sqrt(noise), table % n - chosen.begins[person_of_cells[which]],
        counts, of_part, np.bincount(place, step, len(table)) / counts,
        np.searchsorted(which, np.arange(len(cells) + 1)), np.searchsorted(person_of_cells, np.arange(U + 1)),
        np.diff(chosen.begins), np.stack([values, derivatives, values - firsts, squares]),
    )  # fmt: skip


def joined(groups: Sequence[Steps], degrees: float) -> TypedCells:
    """Join the steps of all groups of people, divided by the mean derivative of each feature."""
    parts, begins = (
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(getattr(group, name)) for group in groups]))])
        for name in ("parts", "begins")
    )
    whole = Steps(*(np.concatenate(part) for part in zip(*groups, strict=True)))
    values, derivatives, repeats, squares = np.sum([group.sums for group in groups], axis=0)
    # At least half of its value for Student's t, so that steps stay bounded if nearly all values are far off.
    slope = np.maximum(derivatives / np.maximum(values, 1), 0.5 / (degrees + 3))
    variance = np.where(
        repeats > 0, squares / np.maximum(repeats, 1) / slope**2, (degrees + 3) / (degrees + 1)
    )
    which = np.repeat(np.arange(len(whole.cell)), np.diff(parts))
    total = np.bincount(which, whole.counts, len(whole.cell))
    share = whole.counts / total[which]
    mean = (whole.tempo + whole.step / slope[whole.feature[which]]) * whole.scale[which]
    mean_of_cells = np.bincount(which, share * mean, len(whole.cell))
    precision = total / np.maximum(variance, LEAST_NOISE)[whole.feature] / whole.scale**2
    return TypedCells(
        whole.cell, precision, whole.expected + mean_of_cells, whole.scale, whole.sample, share,
        mean - mean_of_cells[which], parts.astype(np.int64), begins.astype(np.int64), whole.n_samples,
    )  # fmt: skip


class Components(NamedTuple):
    """Variances of a person's own effects in cells and keys, of tempos and of levels, (F,) each."""

    cell: Floats
    key: Floats
    tempo: Floats
    level: Floats


def estimated(cells: TypedCells, differences: Differences, start: Components) -> Components:
    """λ, κ, η and ω that maximise the likelihood; those of `differences` are not used.

    Each is iterated as Σ mean² / Σ (1 − posterior variance / prior variance), an equation that holds at a
    maximum and leads to it in fewer steps than EM.
    """
    F = len(start.cell)
    levels = (differences.feature[differences.key][:, None] == np.arange(F)).astype(np.float64)
    V, now = np.hstack([differences.loadings, levels]), np.stack(start)
    D = V.shape[1] + F * int(cells.n_samples.max(initial=0))
    G = len(differences.feature)
    room = ComponentRoom(np.empty((D, D)), *map(np.empty, [(D,), (D,), (D,), (G, D), (G,), (G,)]))
    for _ in range(ITERATIONS):
        sums = np.zeros((4, F, 2))
        known = differences._replace(loadings=V, cell_variance=now[0], key_variance=now[1])
        for u in range(0, len(cells.n_samples), AT_A_TIME):
            people = u, min(u + AT_A_TIME, len(cells.n_samples))
            _add_moments(cells, people, known, now[2:], room, sums)
        before, some = now, sums[..., 1] > LEAST_EVIDENCE
        # A feature without values keeps its variances.
        now = np.where(some, np.maximum(sums[..., 0] / np.where(some, sums[..., 1], 1.0), LEAST), before)
        if (np.abs(now - before) <= TOLERANCE * before).all():
            break
    return Components(*now)


class ComponentRoom(NamedTuple):
    """Arrays for one person. D counts z, the levels, and the tempos of all samples, feature by feature."""

    S: Floats  # (D, D) precision, then covariance
    # (D,) linear term, mean, and the coefficients of a cell's mean
    linear: Floats
    mean: Floats
    x: Floats
    pull: Floats  # (G, D) coefficients of each key's a, negated
    # (G,) precision and mean of a
    total: Floats
    key_mean: Floats


@compiled
def _add_moments(
    cells: TypedCells,
    people: tuple[int, int],
    differences: Differences,
    others: Floats,
    room: ComponentRoom,
    sums: Floats,
) -> None:
    """Add Σ mean² and Σ (1 − variance / prior variance) of b, a, d and l, (4, F, 2); `others` are η and ω."""
    cell_variance, key_variance, key_feature = differences[3], differences[4], differences.feature
    S, mean, x, pull, total = room.S, room.mean, room.x, room.pull, room.total
    R, F = differences.loadings.shape[1], others.shape[1]
    for u in range(people[0], people[1]):
        n = cells.n_samples[u]
        D = R + F * n
        _solve(cells, u, differences, others, room)
        for g in range(len(key_feature)):
            f = key_feature[g]
            if total[g] > 0.0:
                variance = 1.0 / total[g] + _form(pull[g], S, R, R + f * n, R + (f + 1) * n)
                _add(room.key_mean[g] ** 2, variance / key_variance[f], sums[1, f])
        for i in range(cells.begins[u], cells.begins[u + 1]):
            g = differences.key[cells.cell[i]]
            f = key_feature[g]
            at = R + f * n
            _take_direction(cells, i, differences.loadings, at, x[:D])
            gap = cells.mean[i] - room.key_mean[g]
            for j in range(D):
                gap -= x[j] * mean[j]
                x[j] -= pull[g, j]
            lam = cell_variance[f]
            k = lam / (lam + 1.0 / cells.precision[i])
            variance = k * k * (1.0 / total[g] + _form(x, S, R, at, at + n)) + lam * (1.0 - k)
            _add((k * gap) ** 2, variance / lam, sums[0, f])
        for f in range(F):
            for i in range(R + f * n, R + (f + 1) * n):
                square = min(mean[i] ** 2, TEMPO_CLIP**2 * others[0, f])
                _add(square, S[i, i] / others[0, f], sums[2, f])
            i = R - F + f
            _add(mean[i] ** 2, S[i, i] / others[1, f], sums[3, f])


@inner
def _add(square: float, ratio: float, sums: Floats) -> None:
    sums[0] += square
    sums[1] += 1.0 - ratio


@inner
def _solve(cells: TypedCells, u: int, differences: Differences, others: Floats, room: ComponentRoom) -> None:
    """Compute the posterior of one person; `total` is 0 for keys that were not typed."""
    V, cell_key, key_feature, cell_variance, key_variance = differences
    S, linear, mean, x, pull, total, key_mean = room
    R, F, n, G = V.shape[1], others.shape[1], cells.n_samples[u], len(key_feature)
    D = R + F * n
    for i in range(D):
        linear[i] = 0.0
        for j in range(i):
            S[i, j] = 0.0
        S[i, i] = 1.0
    for f in range(F):
        S[R - F + f, R - F + f] = 1.0 / others[1, f]
        for i in range(R + f * n, R + (f + 1) * n):
            S[i, i] = 1.0 / others[0, f]
    for g in range(G):
        total[g], key_mean[g] = 0.0, 0.0
        for i in range(D):
            pull[g, i] = 0.0
    for i in range(cells.begins[u], cells.begins[u + 1]):
        g = cell_key[cells.cell[i]]
        f = key_feature[g]
        at, s = R + f * n, cells.scale[i]
        # The differences between the cell's samples inform about their tempos, whatever the person's effects,
        for k in range(cells.parts[i], cells.parts[i + 1]):
            row, precise = at + cells.sample[k], s * cells.precision[i] * cells.share[k]
            linear[row] += precise * cells.apart[k]
            S[row, row] += s * precise
            for j in range(cells.parts[i], k + 1):
                S[row, at + cells.sample[j]] -= s * precise * cells.share[j]
        # and the cell's mean informs about everything.
        _take_direction(cells, i, V, at, x[:D])
        p = 1.0 / (cell_variance[f] + 1.0 / cells.precision[i])
        total[g] += p
        key_mean[g] += p * cells.mean[i]
        _add_evidence(p, cells.mean[i], x, at + n, S, linear)
        for j in range(D):
            pull[g, j] += p * x[j]
    for g in range(G):
        if total[g] > 0.0:
            total[g] += 1.0 / key_variance[key_feature[g]]
            key_mean[g] /= total[g]
            for i in range(D):
                pull[g, i] /= total[g]
            _add_evidence(-total[g], key_mean[g], pull[g], D, S, linear)
    inverted(S[:D, :D])
    for i in range(D):
        mean[i] = 0.0
        for j in range(D):
            mean[i] += S[i, j] * linear[j]
    for g in range(G):
        for i in range(D):
            key_mean[g] -= pull[g, i] * mean[i]


@inner
def _take_direction(cells: TypedCells, i: int, V: Floats, at: int, x: Floats) -> None:
    """Fill x with the coefficients of a cell's mean: z, levels, and its feature's tempos from `at` on."""
    x[:] = 0.0
    cell = cells.cell[i]
    # A slice would also compile the error message for unequal lengths.
    for j in range(V.shape[1]):
        x[j] = V[cell, j]
    for k in range(cells.parts[i], cells.parts[i + 1]):
        x[at + cells.sample[k]] = cells.scale[i] * cells.share[k]


@inner
def _add_evidence(p: float, value: float, x: Floats, D: int, S: Floats, linear: Floats) -> None:
    """Add p x xᵀ to the lower triangle of S, and p x value to the linear term."""
    for i in range(D):
        if x[i] != 0.0:
            linear[i] += p * x[i] * value
            for j in range(i + 1):
                S[i, j] += p * x[i] * x[j]


@inner
def _form(x: Floats, S: Floats, R: int, at: int, end: int) -> float:
    """xᵀ S x, where x is 0 from R to `at` and from `end` on, at the tempos of other features."""
    total = 0.0
    for i in range(end):
        if x[i] != 0.0:
            # S is symmetric.
            row = 0.5 * S[i, i] * x[i]
            for j in range(min(i, R)):
                row += S[i, j] * x[j]
            for j in range(at, i):
                row += S[i, j] * x[j]
            total += 2.0 * x[i] * row
    return total
