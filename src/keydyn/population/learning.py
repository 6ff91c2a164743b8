"""How a population is learnt: two rounds of people, loadings and strengths, then slopes and states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types
from keydyn.population import strengths as estimates
from keydyn.population import wide_effects
from keydyn.population.cells import LEAST_SEEN_SMALL, Cells
from keydyn.population.features import Observations, feature_order, observations, parents
from keydyn.population.loadings import fit_loadings, n_factors
from keydyn.population.parameters import Parameters, Strengths
from keydyn.population.person import Person, fit_person
from keydyn.population.scales import locations_and_scales
from keydyn.population.scoring import RESIDUALS, score
from keydyn.population.states import Chain, classes_of, fit_chain
from keydyn.population.wide_effects import WideEffects

ROUNDS = 2
# With fewer, half of the people say nothing of how people differ, and strengths stay as they begin.
LEAST_FOR_HALVES = 6


@dataclass(eq=False)
class _People:
    """Everybody's samples, those of one person together, and what each person's fit needs."""

    y: Floats
    cell: Integers
    offsets: Integers
    begins: Integers
    cells: Cells

    def fitted(self, who: Sequence[int], loadings: Floats, strengths: Strengths) -> list[Person]:
        """The persons of these numbers, each from all samples."""
        return [self.person(np.arange(*self.begins[u : u + 2]), loadings, strengths) for u in who]

    def person(self, samples: Integers, loadings: Floats, strengths: Strengths) -> Person:
        """A person from these samples."""
        rows, offsets = self.rows(samples)
        return fit_person(
            self.y[rows],
            self.cell[rows],
            offsets,
            self.cells,
            loadings,
            strengths,
            parents(self.cells.n_features),
        )

    def rows(self, samples: Integers) -> tuple[Integers, Integers]:
        """The rows of these samples, and where each begins among them."""
        lengths = np.diff(self.offsets)[samples]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[samples] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return rows, offsets


def learn(samples: Samples, hidden_states: bool) -> Parameters:
    """What these people share and how they differ."""
    if len(samples) == 0:
        raise ValueError("there are no samples")
    codes, users = pd.factorize(samples.users)
    if len(users) < 2:
        raise ValueError(f"a population is learnt from 2 people or more; there is {len(users)}")
    together = samples[np.argsort(codes, kind="stable")]
    begins = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    features = feature_order(together)
    vocabulary: Types = together.sequences.event_types[np.unique(_known(together))]
    seen = observations(together, features, vocabulary)
    cells = Cells.learnt(seen, vocabulary, len(users))
    cell = cells.of(seen)
    location, scale = locations_and_scales(seen.values, cell, cells)
    y = (seen.values - location[cell]) / scale[cell]
    people = _People(y, cell, seen.offsets, begins, cells)
    wide, loadings, strengths = _differences(people, seen, len(users))
    chain = Chain.single(len(features))
    if hidden_states:
        chain = fit_chain(*_held_out_residuals(people, loadings, strengths, seen, len(users)))
    return Parameters(
        features, cells, location, scale, wide, loadings, strengths, chain, len(users), len(samples)
    )


def _known(samples: Samples) -> Integers:
    codes = samples.sequences.codes
    return codes[codes >= 0]


def _differences(people: _People, seen: Observations, n_people: int) -> tuple[WideEffects, Floats, Strengths]:
    """Wide effects, V and all strengths; `people.y` loses the wide effects."""
    cells = people.cells
    R = n_factors(n_people)
    everyone = range(n_people)
    halves = [list(everyone[0::2]), list(everyone[1::2])]
    loadings = np.zeros((cells.n_cells, R))
    strengths = estimates.initial_strengths(cells.n_features)
    wide = WideEffects.none(cells.n_features)
    for n in range(ROUNDS):
        persons = people.fitted(everyone, loadings, strengths)
        if n == 0:
            left = _within(people, persons)
            wide = wide_effects.learnt(left, seen, cells.vocabulary, LEAST_SEEN_SMALL)
            people.y = people.y - wide.of(seen, cells.vocabulary)
            persons = people.fitted(everyone, loadings, strengths)
        strengths = replace(strengths, noise=np.mean([person.own_noise for person in persons], axis=0))
        if n_people >= LEAST_FOR_HALVES:
            strengths = _strengths_from_halves(people, persons, halves, strengths)
        loadings = _loadings_of(persons, cells, strengths, R)
    strengths = replace(strengths, cell=estimates.CELL_FACTOR * strengths.cell)
    persons = people.fitted(everyone, loadings, strengths)
    return wide, loadings, estimates.with_slopes(strengths, persons)


def _loadings_of(persons: Sequence[Person], cells: Cells, strengths: Strengths, R: int) -> Floats:
    weight = np.array([person.weight for person in persons])
    noise = np.array([person.noise for person in persons])
    typed = weight > 0
    precision = typed / (noise / np.where(typed, weight, 1.0) + strengths.cell[cells.feature])
    return fit_loadings(precision, np.array([person.cell_mean for person in persons]), cells, R)


def _strengths_from_halves(
    people: _People, persons: Sequence[Person], halves: list[list[int]], strengths: Strengths
) -> Strengths:
    """λ, κ and η of each half of the people, with V from the other half; the mean of both."""
    cells = people.cells
    found, residuals = [], []
    for learnt_from, other in (halves, halves[::-1]):
        R = n_factors(len(learnt_from))
        half = _loadings_of([persons[u] for u in learnt_from], cells, strengths, R)
        others = people.fitted(other, half, strengths)
        found.append(estimates.cell_and_key_variances(others, cells, half, strengths))
        residuals += _held_out_samples(people, other, half, strengths)
    cell, key = np.mean([f[0] for f in found], axis=0), np.mean([f[1] for f in found], axis=0)
    return replace(strengths, cell=cell, key=key, tempo=estimates.tempo_variance(residuals, strengths.tempo))


def _folds(people: _People, u: int) -> list[tuple[Integers, Integers]]:
    """A person's samples in two halves, each to be held out in turn; none of a single sample."""
    own = np.arange(*people.begins[u : u + 2])
    if len(own) < 2:
        return []
    return [(own[1::2], own[0::2]), (own[0::2], own[1::2])]


def _held_out_samples(
    people: _People, who: Sequence[int], loadings: Floats, strengths: Strengths
) -> list[Floats]:
    """Residuals r of each sample, given the person from the other half of the samples."""
    residuals = []
    for u in who:
        for train, held_out in _folds(people, u):
            person = people.person(train, loadings, strengths)
            for sample in held_out:
                rows = slice(*people.offsets[sample : sample + 2])
                c = people.cell[rows]
                residuals.append((people.y[rows] - person.mean[c]) / person.scale[c])
    return residuals


def _held_out_residuals(
    people: _People, loadings: Floats, strengths: Strengths, seen: Observations, n_people: int
) -> tuple[Floats, Integers, Integers]:
    """e without the tempo, key classes and offsets of everybody's samples, each held out of its person's fit.

    Loadings come from people of the other half where there are enough.
    """
    classes, single = classes_of(people.cells.vocabulary)[seen.codes], Chain.single(people.y.shape[1])
    e = np.full(people.y.shape, np.nan)
    everyone = range(n_people)
    for parity in (0, 1):
        learnt_from = everyone[1 - parity :: 2]
        half = loadings
        if n_people >= LEAST_FOR_HALVES:
            persons = people.fitted(learnt_from, loadings, strengths)
            half = _loadings_of(persons, people.cells, strengths, n_factors(len(learnt_from)))
        for u in everyone[parity::2]:
            for train, held_out in _folds(people, u):
                person = people.person(train, half, strengths)
                rows, offsets = people.rows(held_out)
                out = np.empty((len(rows), people.y.shape[1]))
                score(
                    RESIDUALS, people.y[rows], people.cell[rows], offsets, classes[rows], person.mean[None],
                    1.0 / person.scale[None], person.slopes[None], person.gain[None] ** -0.5, strengths.tempo,
                    parents(people.y.shape[1]), single.start, single.transitions, single.location,
                    single.scale, single.degrees, single.constant, out,
                )  # fmt: skip
                e[rows] = out
    return e, classes, people.offsets


def _within(people: _People, persons: Sequence[Person]) -> Floats:
    """(N, F) y without the person's effects and the sample's tempo."""
    left = np.empty_like(people.y)
    for u, person in enumerate(persons):
        for k, sample in enumerate(range(*people.begins[u : u + 2])):
            rows = slice(*people.offsets[sample : sample + 2])
            c = people.cell[rows]
            left[rows] = people.y[rows] - person.mean[c] - person.tempo[k] * np.sqrt(person.noise[c])
    return left
