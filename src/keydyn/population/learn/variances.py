"""Fits of people in groups, and the variances of people, keys and samples that come from them.

λ and κ come from people that the loadings were not learnt from; from the others they come out far too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.population.chain import Chain
from keydyn.population.features import Typing
from keydyn.population.learn.components import Steps, steps_of
from keydyn.population.learn.groups import Stored
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.score.fitted import filled, shared_by_all, together
from keydyn.population.score.kernel import Asked, TemplateColumns
from keydyn.population.shared_parameters import Variances

# Start values of λ, κ, η, ω and σ².
CELL, KEY, TEMPO, LEVEL, NOISE = 0.2, 0.05, 0.04, 0.05, 0.5
NO_VARIANCE = 1e-9
# ν of residuals, and the pseudo-observations by which a cell's noise is shrunk towards its key's, that
# towards the person's, and that towards the population's.
DEGREES = 4.0
CELL_NOISE_LEANS, KEY_NOISE_LEANS, PERSON_NOISE_LEANS = 100.0, 30.0, 10.0
LEAST_SLOPE_VARIANCE = 0.001
# λ, κ and η are estimated from at most this number of tempos per person, but at least two samples: the time
# taken grows faster than the number of tempos.
MOST_TEMPOS = 20
# A group's stored typing, and which of its people count.
Some = tuple[Stored, Truths]


def initial_variances(n_features: int) -> Variances:
    """The variances that estimation starts from; they leave slopes almost free."""
    cell, key, tempo, noise = (np.full(n_features, level) for level in (CELL, KEY, TEMPO, NOISE))
    slope, variance, gain = np.zeros((n_features, 3)), np.ones((n_features, 3)), np.ones(n_features)
    leans = np.array([CELL_NOISE_LEANS, KEY_NOISE_LEANS, PERSON_NOISE_LEANS])
    return Variances(cell, key, tempo, noise, slope, variance, gain, leans, np.array([DEGREES]))


def with_slopes(
    variances: Variances, noise: Floats, slopes: Floats, slope_spread: Floats, gain_sums: Floats
) -> Variances:
    """Estimate β0 and τ² by moments over people fitted with slopes almost free, and σ² and g² as means."""
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
    """Load a group's typing, and the sample with which each person begins, (U + 1,)."""
    *arrays, begins = stored.load()
    return Typing(*arrays), begins


def cell_means(prior: Prior, stored: Stored) -> tuple[Floats, Floats, Floats]:
    """(U, C) variances and means of people's cells, and the (F,) sum of their own noise."""
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


def held_out_steps(prior: Prior, some: Some) -> Steps:
    """The steps of the people who count, from fits with b = 0."""
    typing, begins = loaded(some[0])
    chosen = _samples(begins, some[1], max(MOST_TEMPOS // typing.y.shape[1], 2))
    people = fit_people(typing, chosen, prior, False)
    none = np.full_like(prior.tempo, NO_VARIANCE)
    without = prior._replace(differences=prior.differences._replace(cell_variance=none))
    others = fit_people(typing, chosen, without, False)
    people = people._replace(mean=others.mean, tempo=others.tempo)
    return steps_of(typing, chosen, people, prior.degrees)


def held_out_residuals(prior: Prior, chain: Chain, some: Some) -> tuple[Floats, Integers, Integers]:
    """Residuals e without the tempo, classes of keys and offsets of samples held out of the person's fit."""
    typing, begins = loaded(some[0])
    train, held_out = _folds(begins, some[1])
    people, part = fit_people(typing, train, prior), _part(typing, held_out.samples)
    e, shared = np.empty(part.y.shape), shared_by_all(prior.tempo, chain)
    for u in range(len(held_out.begins) - 1):
        offsets = part.offsets[held_out.begins[u] : held_out.begins[u + 1] + 1]
        rows = slice(offsets[0], offsets[-1])
        one = slice(u, u + 1)
        own = TemplateColumns(
            people.mean[one], 1.0 / people.scale[one], people.slopes[one], people.gain[one] ** -0.5
        )
        of_one = Typing(part.y[rows], part.cell[rows], offsets - offsets[0], part.classes[rows])
        filled(of_one, together(own), shared, Asked(residuals=e[rows][..., None]))
    return e, part.classes, part.offsets


def slopes_and_gains(prior: Prior, some: Some) -> tuple[Floats, Floats, Floats, Floats]:
    """Own noise, slopes, variances of slopes, and sums for the gain, of the people who count."""
    typing, begins = loaded(some[0])
    people = fit_people(typing, _samples(begins, some[1]), prior, False)
    return people.own_noise, people.slopes, people.slope_spread, people.gain_sums


def _samples(begins: Integers, counts: Truths | None = None, most: int | None = None) -> Chosen:
    """The samples of the people who count, at most `most` of each person's, evenly spread."""
    if counts is None:
        return Chosen(np.arange(begins[-1]), begins)
    own = [np.arange(*begins[u : u + 2]) for u in np.flatnonzero(counts)]
    if most is not None:
        own = [one[np.linspace(0, len(one) - 1, min(len(one), most)).astype(np.int64)] for one in own]
    return _joined(own)


def _folds(begins: Integers, counts: Truths) -> tuple[Chosen, Chosen]:
    """Samples to fit and samples held out, each half of a person's in turn, if there is more than one."""
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
    """The typing of these samples only."""
    lengths = np.diff(typing.offsets)[samples]
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.repeat(typing.offsets[samples] - begins[:-1], lengths) + np.arange(begins[-1])
    return Typing(typing.y[rows], typing.cell[rows], begins, typing.classes[rows])
