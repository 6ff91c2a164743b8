"""What learning asks of a group of people, each fitted to all their samples or to those not held out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.population.cells import Cells
from keydyn.population.chain import Chain
from keydyn.population.features import Typing, parents
from keydyn.population.learn.map_reduce import Passes
from keydyn.population.learn.stored_arrays import Stored
from keydyn.population.learn.variances import tempos
from keydyn.population.parameters import Variances
from keydyn.population.person.fitting import People, fit_people
from keydyn.population.score.kernel import Asked, Columns, Shared, filled

# A group's typing, and which of its people count.
Some = tuple[Stored, Truths]


def _people(
    typing: Stored,
    chosen: Integers,
    begins: Integers,
    cells: Cells,
    V: Floats,
    variances: Variances,
    complete: bool,
) -> People:
    y, cell, offsets, _, _ = typing.load()
    links = parents(cells.n_features)
    return fit_people(y, cell, offsets, chosen, begins, cells, V, variances, links, complete)


def cell_means(
    cells: Cells, V: Floats, variances: Variances, typing: Stored
) -> tuple[Floats, Floats, Floats]:
    """(U, C) variances and means of everybody's cells, and (F,) the sum of everybody's own noise."""
    begins = typing.load()[3]
    people = _people(typing, *_samples(begins), cells, V, variances, False)
    return people.variance, people.cell_mean, people.own_noise.sum(axis=0)


def within(cells: Cells, V: Floats, variances: Variances, typing: Stored) -> Floats:
    """(N, F) y without the person's effects and the sample's tempo."""
    y, cell, offsets, begins, _ = typing.load()
    people = _people(typing, *_samples(begins), cells, V, variances, False)
    person = np.repeat(np.arange(len(begins) - 1), np.diff(offsets[begins]))[:, None]
    tempo = np.repeat(people.tempo, np.diff(offsets), axis=0)
    left: Floats = y - people.mean[person, cell] - tempo * np.sqrt(people.noise[person, cell])
    return left


def held_out_people(
    cells: Cells, V: Floats, variances: Variances, some: Some
) -> tuple[Floats, Floats, Floats, Floats]:
    """Variances and means of people's cells, and tempos of their samples with variances.

    A tempo is that of a sample that is held out of the person's fit.
    """
    typing, counts = some
    y, cell, offsets, begins, _ = typing.load()
    people = _people(typing, *_samples(begins, counts), cells, V, variances, False)
    train, held_out = _folds(begins, counts)
    others = _people(typing, *train, cells, V, variances, True)
    rows, bounds = _rows(offsets, held_out[0])
    person = np.repeat(np.arange(len(held_out[1]) - 1), np.diff(bounds[held_out[1]]))[:, None]
    r = (y[rows] - others.mean[person, cell[rows]]) / others.scale[person, cell[rows]]
    return people.variance, people.cell_mean, *tempos(r, bounds, float(variances.degrees[0]))


def held_out_residuals(
    cells: Cells, V: Floats, variances: Variances, chain: Chain, some: Some
) -> tuple[Floats, Integers, Integers]:
    """e without the tempo, classes of keys and offsets, of samples that are held out of the person's fit."""
    typing, counts = some
    y, cell, offsets, begins, classes = typing.load()
    train, (held_out, bounds) = _folds(begins, counts)
    people = _people(typing, *train, cells, V, variances, True)
    rows, new_offsets = _rows(offsets, held_out)
    y, cell, classes = y[rows], cell[rows], classes[rows]
    e, shared = np.empty(y.shape), Shared.of(variances.tempo, chain)
    for u in range(len(bounds) - 1):
        own = new_offsets[bounds[u] : bounds[u + 1] + 1]
        part = slice(own[0], own[-1])
        columns = Columns(
            people.mean[u][:, None],
            1.0 / people.scale[u][:, None],
            people.slopes[u][..., None],
            people.gain[u][:, None] ** -0.5,
        )
        typing_of_one = Typing(y[part], cell[part], own - own[0], classes[part])
        filled(typing_of_one, columns, shared, Asked(residuals=e[part][..., None]))
    return e, classes, new_offsets


def final_people(
    cells: Cells, V: Floats, variances: Variances, groups: Sequence[Some], passes: Passes
) -> tuple[Floats, Floats, Floats, Floats]:
    """Own noise, slopes, their variances, and the parts of the gain, of everybody who counts."""
    parts = list(passes.each(partial(_final, cells, V, variances), groups))
    noise, slopes, spread, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
    return noise, slopes, spread, sums


def _final(
    cells: Cells, V: Floats, variances: Variances, some: Some
) -> tuple[Floats, Floats, Floats, Floats]:
    typing, counts = some
    people = _people(typing, *_samples(typing.load()[3], counts), cells, V, variances, False)
    return people.own_noise, people.slopes, people.slope_spread, people.gain_sums


def _samples(begins: Integers, counts: Truths | None = None) -> tuple[Integers, Integers]:
    """The samples of those who count, one person after the other, and where each person begins."""
    if counts is None:
        return np.arange(begins[-1]), begins
    return _joined([np.arange(*begins[u : u + 2]) for u in np.flatnonzero(counts)])


def _folds(begins: Integers, counts: Truths) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    """Samples to fit and samples held out: each half of a person's in turn, none of a single sample."""
    train, held_out = [], []
    for u in np.flatnonzero(counts):
        own = np.arange(*begins[u : u + 2])
        if len(own) > 1:
            train += [own[1::2], own[0::2]]
            held_out += [own[0::2], own[1::2]]
    return _joined(train), _joined(held_out)


def _joined(parts: Sequence[Integers]) -> tuple[Integers, Integers]:
    begins = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return np.concatenate([*parts, begins[:0]]), begins


def _rows(offsets: Integers, samples: Integers) -> tuple[Integers, Integers]:
    """The rows of these samples, and where each begins among them."""
    lengths = np.diff(offsets)[samples]
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.repeat(offsets[samples] - begins[:-1], lengths) + np.arange(begins[-1])
    return rows, begins
