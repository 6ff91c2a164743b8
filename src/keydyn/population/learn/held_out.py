"""What learning asks of a group of people, each fitted to all their samples or to those not held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.population.chain import Chain
from keydyn.population.features import Typing
from keydyn.population.learn.stored_arrays import Stored
from keydyn.population.learn.variances import tempos
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.score.kernel import Asked, Columns, Shared, filled

# A group's typing, and which of its people count.
Some = tuple[Stored, Truths]


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
    """Variances and means of people's cells, and tempos of their samples with variances.

    A tempo is that of a sample that is held out of the person's fit.
    """
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
