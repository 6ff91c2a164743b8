"""Learn a population: two rounds of fitting people, loadings and variances, then slopes and hidden states.

Each step is a pass over groups of people whose results are added up, so any number of people can be learnt
from, in any number of parts. Variances and hidden states are estimated from people that the loadings were not
learnt from, because on the others the loadings fit too well: each half of the people in turn or, of very many
people, some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.samples import Samples
from keydyn.population.cells import N_CONTEXTS, Cells, Contexts, WideEffects
from keydyn.population.chain import Chain, classes_of, fit_chain
from keydyn.population.learn import variances as estimates
from keydyn.population.learn.cells_and_effects import ITERATIONS as SCALES_ITERATIONS
from keydyn.population.learn.cells_and_effects import learn_cells, learn_wide_effects, locations_and_scales
from keydyn.population.learn.components import Components, estimated, joined
from keydyn.population.learn.groups import Events, Groups, Passes, Progress, Store, Stored, gathered, store
from keydyn.population.learn.loadings import FURTHER_ITERATIONS, Before, fit_loadings, n_factors
from keydyn.population.learn.loadings import ITERATIONS as LOADINGS_ITERATIONS
from keydyn.population.learn.variances import (
    cell_means,
    held_out_residuals,
    held_out_steps,
    slopes_and_gains,
    unexplained,
)
from keydyn.population.person.fitting import Prior
from keydyn.population.shared_parameters import SharedParameters, Variances

ROUNDS = 2
# With fewer people, half of them cannot show how people differ, and variances keep their start values.
LEAST_FOR_HALVES = 6
# With more than twice this number of people, this number is held out of the loadings; that is enough to
# estimate variances and states, which are some dozens of numbers.
MOST_HELD_OUT = 500
# Intermediate results of more people are kept in files.
MOST_IN_MEMORY = 2000
# Parts of the model that can be left out, to measure their worth.
PARTS = ("low rank", "scales", "slopes", "contexts", "tempo", "tails")
# Stand-ins for parts left out: no variance, certain noise, and degrees of freedom of almost normal tails.
NOTHING, CERTAIN, NORMAL = 1e-9, 1e6, 100


def check_parts(without: Iterable[str]) -> tuple[str, ...]:
    """The parts to leave out; a `ValueError` names one that does not exist."""
    chosen = (without,) if isinstance(without, str) else tuple(without)
    for part in chosen:
        if part not in PARTS:
            raise ValueError(f"without names {part!r}; the parts are {', '.join(PARTS)}")
    return chosen


@dataclass(eq=False)
class _Course:
    """The state of learning: people in groups, and each group's typing without what people share."""

    groups: Groups
    store: Store
    passes: Passes
    without: tuple[str, ...]
    cells: Cells
    typing: list[Stored]

    @property
    def degrees(self) -> int:
        return NORMAL if "tails" in self.without else int(estimates.DEGREES)

    def restricted(self, variances: Variances) -> Variances:
        """The variances, changed so that the parts left out have no effect."""
        if "scales" in self.without:
            variances = replace(variances, noise_leans=np.full(3, CERTAIN))
        if "slopes" in self.without:
            no_slope = np.zeros_like(variances.slope)
            variances = replace(variances, slope=no_slope, slope_variance=no_slope + NOTHING)
        if "tempo" in self.without:
            variances = replace(variances, tempo=np.full_like(variances.tempo, NOTHING))
        return replace(variances, degrees=np.array([float(self.degrees)]))

    def everyone(self) -> list[Truths]:
        return [np.ones(size, dtype=bool) for size in self.groups.sizes]


def learn(
    samples: Samples | Iterable[Samples],
    n_states: int,
    without: tuple[str, ...] = (),
    n_jobs: int | None = None,
    scratch: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SharedParameters:
    """Learn what these people share and how they differ."""
    passes = Passes(n_jobs, progress)
    with store(_in_memory(samples), scratch) as kept:
        groups = gathered(samples, kept)
        if groups.n_people < 2:
            raise ValueError(f"a population is learnt from 2 people or more; there is {groups.n_people}")
        passes.total = _n_passes(groups, n_states, without)
        cells = learn_cells(groups, passes)
        course = _Course(groups, kept, passes, without, cells, [])
        values = [kept.keep(*arrays) for arrays in passes.each(partial(_in_cells, cells), groups.events)]
        location, scale = locations_and_scales(values, cells, float(course.degrees), passes)
        tasks = list(zip(values, groups.events, strict=True))
        typing = passes.each(partial(_standardised, cells, location, scale), tasks)
        course.typing = [kept.keep(*arrays) for arrays in typing]
        wide = _remove_wide_effects(course)
        loadings, support, variances, chain = _differences(course, n_states)
        return SharedParameters(
            groups.features, cells, location, scale, wide, loadings, support, variances, chain,
            groups.n_people, groups.n_samples,
        )  # fmt: skip


def learn_more(
    known: SharedParameters,
    samples: Samples | Iterable[Samples],
    n_jobs: int | None = None,
    scratch: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SharedParameters:
    """Learn the loadings further from more people; everything else stays as it was learnt."""
    passes = Passes(n_jobs, progress)
    with store(_in_memory(samples), scratch) as kept:
        groups = gathered(samples, kept, known.features)
        passes.total = 2 + FURTHER_ITERATIONS
        place = known.cells.places(groups.vocabulary)
        events = [replace(one, place=place[one.place]) for one in groups.events]
        typing = [kept.keep(*arrays) for arrays in passes.each(partial(_typing_of, known), events)]
        means = partial(cell_means, Prior.of(known.cells, known.loadings, known.variances))
        cases = [kept.keep(variance, mean) for variance, mean, _ in passes.each(means, typing)]
        whole = [(case, np.ones(size, dtype=bool)) for case, size in zip(cases, groups.sizes, strict=True)]
        cell_variance = known.variances.cell[known.cells.feature]
        R, before = known.loadings.shape[1], Before(known.loadings, known.support)
        loadings, support = fit_loadings(whole, cell_variance, known.cells, R, passes, before=before)
        n_people, n_samples = known.n_people + groups.n_people, known.n_samples + groups.n_samples
        return replace(known, loadings=loadings, support=support, n_people=n_people, n_samples=n_samples)


def _n_passes(groups: Groups, n_states: int, without: tuple[str, ...]) -> int:
    """The number of passes over all people that learning takes."""
    n_splits = len(_splits(groups))
    # Pairs, cells, standardised values and slopes; then scales and states.
    others = 4 + SCALES_ITERATIONS + (n_splits or 1) * (n_states > 1)
    if "contexts" not in without:
        others += 2 + N_CONTEXTS
    loadings = 0
    if "low rank" not in without:
        from_nothing, further = 1 + LOADINGS_ITERATIONS, FURTHER_ITERATIONS
        everyone_first = further if n_splits == 1 else from_nothing
        loadings = n_splits * from_nothing + everyone_first + (ROUNDS - 1) * (n_splits + 1) * further
    return others + ROUNDS * (1 + n_splits) + loadings


def _in_memory(samples: Samples | Iterable[Samples]) -> bool:
    return isinstance(samples, Samples) and len(set(samples.users.tolist())) <= MOST_IN_MEMORY


def _in_cells(cells: Cells, events: Events) -> tuple[Floats, Integers]:
    """The values of a group and their cells."""
    seen, _ = events.load()
    return seen.values, cells.of(seen.around(cells.spaces))


def _standardised(
    cells: Cells, location: Floats, scale: Floats, task: tuple[Stored, Events]
) -> tuple[Floats | Integers, ...]:
    """y, cells, offsets, classes of keys, and the sample with which each person begins."""
    x, cell = task[0].load()
    seen, begins = task[1].load()
    y = (x - location[cell]) / scale[cell]
    return y, cell, seen.offsets, classes_of(cells.vocabulary)[seen.codes], begins


def _typing_of(known: SharedParameters, events: Events) -> tuple[Floats | Integers, ...]:
    seen, begins = events.load()
    y, cell, _ = known.contexts.standardised(seen.values, seen.around(known.cells.spaces))
    return y, cell, seen.offsets, known.classes[seen.codes], begins


def _remove_wide_effects(course: _Course) -> WideEffects:
    """Learn effects of wide contexts from residuals of people fitted without loadings; remove them from y."""
    groups, cells, kept = course.groups, course.cells, course.store
    if "contexts" in course.without:
        return WideEffects.none(cells.n_features)
    variances = course.restricted(estimates.initial_variances(cells.n_features))
    left = partial(unexplained, Prior.of(cells, np.zeros((cells.n_cells, 1)), variances))
    residuals = [kept.keep(one) for one in course.passes.each(left, course.typing)]
    wide = learn_wide_effects(residuals, groups, course.passes)
    tasks = list(zip(course.typing, groups.events, strict=True))
    removed = course.passes.each(partial(_without_wide, wide, cells), tasks)
    course.typing = [kept.keep(*arrays) for arrays in removed]
    return wide


def _without_wide(
    wide: WideEffects, cells: Cells, task: tuple[Stored, Events]
) -> tuple[Floats | Integers, ...]:
    y, *others = task[0].load()
    seen, _ = task[1].load()
    return Contexts.of(cells, wide=wide).standardised(y, seen.around(cells.spaces))[0], *others


def _splits(groups: Groups) -> list[tuple[list[Truths], list[Truths]]]:
    """Splits of the people of each group into those for loadings and those for variances."""
    n, people = groups.n_people, groups.people
    if n < LEAST_FOR_HALVES:
        return []
    if n > 2 * MOST_HELD_OUT:
        held_out = np.zeros(n, dtype=bool)
        held_out[np.linspace(0, n - 1, MOST_HELD_OUT).astype(np.int64)] = True
        return [([~held_out[some] for some in people], [held_out[some] for some in people])]
    even, odd = [some % 2 == 0 for some in people], [some % 2 == 1 for some in people]
    return [(even, odd), (odd, even)]


def _differences(course: _Course, n_states: int) -> tuple[Floats, Floats, Variances, Chain]:
    """Learn V and its support, all variances, and the chain."""
    cells, passes = course.cells, course.passes
    everyone = course.everyone()
    variances = course.restricted(estimates.initial_variances(cells.n_features))
    level = np.full(cells.n_features, estimates.LEVEL)
    V, support = np.zeros((cells.n_cells, n_factors(course.groups.n_people))), np.zeros(cells.n_cells)
    splits = _splits(course.groups)
    # V, and the people held out of it
    cross: list[tuple[Floats, list[Truths]]] = []
    before: list[Floats | None] = [None] * len(splits)
    for _ in range(ROUNDS):
        cases, noise = [], np.zeros(cells.n_features)
        prior = Prior.of(cells, V, variances)
        for variance, mean, own in passes.each(partial(cell_means, prior), course.typing):
            cases.append(course.store.keep(variance, mean))
            noise += own
        variances = replace(variances, noise=noise / course.groups.n_people)
        cross = [
            (_loadings(course, cases, who, variances, begun)[0], others)
            for (who, others), begun in zip(splits, before, strict=True)
        ]
        if cross:
            variances, level = _cross_estimated(course, cross, variances, level)
            variances = course.restricted(variances)
        # Of very many people, so few are held out that V hardly changes when they are added.
        begun = V if V.any() else cross[0][0] if len(cross) == 1 and cross[0][0].shape == V.shape else None
        V, support = _loadings(course, cases, everyone, variances, begun)
        before = [loadings for loadings, _ in cross]
    if cross and "low rank" not in course.without:
        # A person's level is one more factor of each feature.
        levels = np.sqrt(level) * (cells.feature[:, None] == np.arange(cells.n_features))
        V = np.hstack([V, levels])
        cross = [(np.hstack([loadings, levels]), others) for loadings, others in cross]
    whom = everyone if len(splits) != 1 else splits[0][1]
    last = partial(slopes_and_gains, Prior.of(cells, V, variances))
    of_people = list(passes.each(last, list(zip(course.typing, whom, strict=True))))
    parts = (np.concatenate(part) for part in zip(*of_people, strict=True))
    variances = course.restricted(estimates.with_slopes(variances, *parts))
    degrees = course.degrees
    chain = Chain.single(cells.n_features, degrees)
    if n_states > 1:
        residuals_of_all = []
        for loadings, others in cross or [(V, everyone)]:
            residuals = partial(held_out_residuals, Prior.of(cells, loadings, variances), chain)
            residuals_of_all += list(passes.each(residuals, list(zip(course.typing, others, strict=True))))
        initial = Chain.initial(cells.n_features, None if degrees == estimates.DEGREES else degrees, n_states)
        chain = fit_chain(residuals_of_all, initial)
    return V, support, variances, chain


def _loadings(
    course: _Course,
    cases: Sequence[Stored],
    who: Sequence[Truths],
    variances: Variances,
    begun: Floats | None,
) -> tuple[Floats, Floats]:
    """Learn V and its support from these people, in fewer iterations if a V has `begun`."""
    n = sum(int(some.sum()) for some in who)
    R = n_factors(n)
    if "low rank" in course.without:
        return np.zeros((course.cells.n_cells, 1)), np.zeros(course.cells.n_cells)
    cell_variance = variances.cell[course.cells.feature]
    tasks = list(zip(cases, who, strict=True))
    return fit_loadings(tasks, cell_variance, course.cells, R, course.passes, begun)


def _cross_estimated(
    course: _Course, cross: Sequence[tuple[Floats, list[Truths]]], variances: Variances, level: Floats
) -> tuple[Variances, Floats]:
    """Estimate λ, κ, η and ω from people that V was not learnt from; means over the splits."""
    found, start = [], Components(variances.cell, variances.key, variances.tempo, level)
    for V, others in cross:
        prior = Prior.of(course.cells, V, variances)
        tasks = list(zip(course.typing, others, strict=True))
        typed = joined(list(course.passes.each(partial(held_out_steps, prior), tasks)), prior.degrees)
        found.append(estimated(typed, prior.differences, start))
    cell, key, tempo, level = np.mean(found, axis=0)
    return replace(variances, cell=cell, key=key, tempo=tempo), level
