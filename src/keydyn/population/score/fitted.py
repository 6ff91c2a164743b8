"""A fitted population, which enrols people, scores samples and explains scores.

Scores are computed in pieces of some samples and some templates, which threads share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.population.cells import N_CONTEXTS, Observations, observations
from keydyn.population.chain import Chain
from keydyn.population.features import Typing, parents
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.score.kernel import (
    WHOLE,
    Asked,
    Sessions,
    Shared,
    TemplateColumns,
    Templates,
    Work,
    score,
)
from keydyn.population.shared_parameters import SharedParameters, Template
from keydyn.short_repr import short_repr

# A key, None for an unknown one, a feature, and the evidence of its times, in nats.
Named = tuple[str | None, str, float]
# Events times templates per compiled call, which takes well under a second: signals are handled only between
# calls.
AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Templates of one population side by side, made once to score many samples; immutable."""

    population: str
    columns: TemplateColumns

    __repr__ = short_repr

    def __len__(self) -> int:
        return int(self.columns.mean.shape[1])


def side_by_side(templates: Sequence[Template], cells: Integers | None = None) -> TemplateColumns:
    """Put templates side by side, with only the cells that are given, if any."""
    mean = _last([one.mean if cells is None else one.mean.take(cells) for one in templates])
    scale = _last([one.scale if cells is None else one.scale.take(cells) for one in templates])
    slopes, gain = _last([one.slopes for one in templates]), _last([one.gain for one in templates])
    return TemplateColumns(mean, 1.0 / scale, slopes, 1.0 / gain)


def one_by_one(templates: Sequence[Template]) -> TemplateColumns:
    """Put templates one after the other: (U, C), (U, C), (U, F, 3) and (U, F)."""
    names = ("mean", "scale", "slopes", "gain")
    mean, scale, slopes, gain = (np.array([getattr(one, name) for one in templates]) for name in names)
    return TemplateColumns(mean, 1.0 / scale, slopes, 1.0 / gain)


def together(own: TemplateColumns, beside: TemplateColumns | None = None) -> Templates:
    """Combine templates one after the other with others side by side, if there are any."""
    C, F = own.mean.shape[1], own.slopes.shape[1]
    return Templates(own, beside or TemplateColumns(*map(np.empty, ((C, 0), (C, 0), (F, 3, 0), (F, 0)))))


def all_beside(beside: TemplateColumns) -> Templates:
    """Templates to score under that are all side by side."""
    C, F = len(beside.mean), len(beside.slopes)
    return Templates(TemplateColumns(*map(np.empty, ((0, C), (0, C), (0, F, 3), (0, F)))), beside)


def _last(arrays: list[Floats]) -> Floats:
    """Stack arrays along the last axis, ten times as fast as `np.stack` for thousands of small arrays."""
    rows = np.concatenate([array.ravel() for array in arrays]).reshape(len(arrays), -1)
    return np.ascontiguousarray(rows.T).reshape(*arrays[0].shape, len(arrays))


def shared_by_all(tempo: Floats, chain: Chain) -> Shared:
    """The η, parents and chain that compiled loops take."""
    return Shared(tempo, parents(len(tempo)), *chain.tables)


@dataclass(frozen=True, eq=False)
class Ready:
    """Samples, ready to be scored."""

    seen: Observations  # the samples in the population's form
    typing: Typing  # the samples without what people share
    shift: Floats  # (N, F) added to log-densities of y to give those of the measurements
    effects: Floats  # (N, 2, N_CONTEXTS) the effect of each wider context on each interval and hold

    @cached_property
    def few(self) -> tuple[Integers, Typing]:
        """The cells that occur, and the samples with cells numbered among these."""
        used, place = np.unique(self.typing.cell, return_inverse=True)
        return used, self.typing._replace(cell=place.reshape(self.typing.cell.shape))

    @cached_property
    def event_shift(self) -> Floats:
        """(N, 1) the shift of each event."""
        return np.asarray(self.shift.sum(axis=1)[:, None])

    @cached_property
    def sample_shift(self) -> Floats:
        """(n, 1) the shift of each sample."""
        shift: Floats = np.add.reduceat(self.shift, self.typing.offsets[:-1])
        return np.asarray(shift.sum(axis=1, keepdims=True))


class Fitted:
    """A fitted population: its parameters, their SHA-256, the input of compiled loops, and `anyone`.

    `anyone` is the template of a person without samples.
    """

    def __init__(self, parameters: SharedParameters, sha256: str) -> None:
        self.parameters, self.sha256 = parameters, sha256
        self.shared = shared_by_all(parameters.variances.tempo, parameters.chain)
        # The keys that codes stand for, None for the unknown key last
        self.keys = np.append(parameters.cells.vocabulary.astype(object), [None])
        nothing, none = np.zeros((0, len(parameters.features))), np.zeros(0, dtype=np.int64)
        unseen = Observations(
            nothing, none, np.zeros(1, dtype=np.int64), np.zeros(nothing.shape[1], dtype=bool)
        )
        self.anyone = self.enrolled(unseen)

    def check(self, templates: Sequence[Template] | SideBySide) -> None:
        """Raise a `ValueError` if a template belongs to another population."""
        one_by_one = [templates] if isinstance(templates, SideBySide) else templates
        if any(template.population != self.sha256 for template in one_by_one):
            raise ValueError("the template belongs to another population: enrol the person with this one")

    def side_by_side(self, templates: Sequence[Template]) -> SideBySide:
        """Put templates of this population side by side."""
        self.check(templates)
        return SideBySide(self.sha256, side_by_side(templates))

    def fits(self, template: Template) -> bool:
        """Whether the template has the size of this population's."""
        C, F = self.parameters.cells.n_cells, len(self.parameters.features)
        shapes = [one.shape for one in (template.mean, template.scale, template.slopes, template.gain)]
        return shapes == [(C,), (C,), (F, 3), (F,)]

    def enrolled(self, seen: Observations) -> Template:
        """Make the template of the person who typed this."""
        return self._enrolled(seen, Chosen.one_person(len(seen.offsets) - 1))[0]

    def enrolled_each(self, samples: Samples) -> list[Template]:
        """Make templates of the people who typed these samples, in the order in which they first appear."""
        people, users = samples.people
        order = np.argsort(people, kind="stable")
        begins = np.searchsorted(people[order], np.arange(len(users) + 1))
        return self._enrolled(self.parameters.seen(samples), Chosen(order, begins))

    def _enrolled(self, seen: Observations, chosen: Chosen) -> list[Template]:
        known, lengths = self.parameters, np.diff(seen.offsets)
        y, cell, _ = known.contexts.standardised(seen.values, seen.around(known.cells.spaces))
        prior = Prior.of(known.cells, known.loadings, known.variances)
        people = fit_people(Typing(y, cell, seen.offsets, seen.codes), chosen, prior)
        scale, gain, begins = people.scale, np.sqrt(people.gain), chosen.begins.tolist()
        found = []
        for u, (first, end) in enumerate(pairwise(begins)):
            mean, own, slopes, gains = (part[u].copy() for part in (people.mean, scale, people.slopes, gain))
            n_events = int(lengths[chosen.samples[first:end]].sum())
            found.append(Template(self.sha256, mean, own, slopes, gains, end - first, n_events))
        return found

    def ready(self, samples: Samples) -> Ready:
        """Prepare samples for scoring; a single sample caches the result, because it is used repeatedly."""
        found: Ready | None = samples.kept.get(self.sha256)
        if found is None:
            found = self._made_ready(samples)
            if len(samples) == 1:
                samples.kept[self.sha256] = found
        return found

    def _made_ready(self, samples: Samples) -> Ready:
        known = self.parameters
        places = known.cells.places(samples.sequences.event_types)
        seen = observations(samples, known.features, places)
        around = seen.around(known.cells.spaces)
        effects = np.empty((len(seen.codes), 2, N_CONTEXTS))
        y, cell, shift = known.contexts.standardised(seen.values, around, seen.logs, effects)
        typing = Typing(y, cell, seen.offsets, known.classes[seen.codes])
        return Ready(seen, typing, shift, effects)

    def score(
        self,
        templates: Sequence[Template] | SideBySide,
        ready: Ready,
        asked: Asked,
        beside: SideBySide | None = None,
        n_jobs: int | None = 1,
    ) -> Asked:
        """Fill in `asked`, with densities of the measurements, under `templates` and then those `beside`."""
        self.check(templates)
        if len(templates) == 0:
            return asked
        typed = ready.typing
        if isinstance(templates, SideBySide):
            laid_out = all_beside(templates.columns)
        elif beside is not None:
            self.check(beside)
            laid_out = together(one_by_one(templates), beside.columns)
        else:
            # Only the cells that the samples need, because there may be many templates.
            used, typed = ready.few
            laid_out = all_beside(side_by_side(templates, used))
        scored(typed, laid_out, self.shared, asked, n_jobs)
        if asked.terms.size:
            asked.terms[:] += ready.shift[..., None]
        if asked.events.size:
            asked.events[:] += ready.event_shift
        if asked.samples.size:
            asked.samples[:] += ready.sample_shift
        return asked

    def explained(self, seen: Observations, terms: Floats) -> dict[str, NDArray[Any]]:
        """Sum the terms (N, F, 2) of a person and of anyone by key and feature, strongest evidence first.

        The columns are `key`, None for unknown ones, `feature`, `count`, `log_likelihood` and `evidence`.
        """
        features, n_codes = self.parameters.features, len(self.keys)
        # Feature by feature; if the evidence is equal, keys typed earlier come first.
        there = np.isfinite(seen.values.T)
        group = (np.arange(len(features))[:, None] * n_codes + seen.codes)[there]
        of_person, of_anyone = terms[..., 0].T[there], terms[..., 1].T[there]
        count, evidence = np.bincount(group), np.bincount(group, of_person - of_anyone)
        first = np.empty(len(count), dtype=np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        found = count.nonzero()[0]
        found = found[np.lexsort((first[found], -np.abs(evidence[found])))]
        return {
            "key": self.keys[found % n_codes],
            "feature": np.array(features, dtype=object)[found // n_codes],
            "count": count[found],
            "log_likelihood": np.bincount(group, of_person)[found],
            "evidence": evidence[found],
        }

    def strongest(self, seen: Observations, terms: Floats, most: int) -> tuple[list[Named], list[Named]]:
        """At most this many of the rows of `explained` with evidence above 0, and of those with some below.

        Of each the key, None for an unknown one, the feature, and the evidence.
        """
        features, n_codes = self.parameters.features, len(self.keys)
        group = seen.codes[:, None] + n_codes * np.arange(len(features))
        # A missing value has terms of 0.
        evidence = np.bincount(group.ravel(), (terms[..., 0] - terms[..., 1]).ravel())
        order = evidence.argsort(kind="stable")

        def named(places: Integers, sign: float) -> list[Named]:
            numbers = zip(places.tolist(), evidence.take(places).tolist(), strict=True)
            rows = [(divmod(place, n_codes), nats) for place, nats in numbers if sign * nats > 0.0]
            return [(self.keys[code], features[f], nats) for (f, code), nats in rows]

        return named(order[: -most - 1 : -1], 1.0), named(order[:most], -1.0)


def _some(templates: Templates, users: slice) -> Templates:
    """Some of the templates, contiguous in memory."""
    K = len(templates.own.mean)
    beside = slice(max(users.start - K, 0), max(users.stop - K, 0))
    return Templates(
        TemplateColumns(*(one[users] for one in templates.own)),
        TemplateColumns(*(np.ascontiguousarray(one[..., beside]) for one in templates.beside)),
    )


def scored(
    typed: Typing,
    templates: Templates,
    shared: Shared,
    asked: Asked,
    n_jobs: int | None = 1,
    at_a_time: int = AT_A_TIME,
) -> Asked:
    """Fill in `asked` in calls of at most `at_a_time` events × templates."""
    offsets, U = typed.offsets, len(templates.own.mean) + int(templates.beside.mean.shape[1])
    if len(typed.y) * U <= at_a_time:
        return filled(typed, templates, shared, asked)

    def one(first: int, end: int, users: slice) -> None:
        rows = slice(offsets[first], offsets[end])
        own = offsets[first : end + 1] - offsets[first]
        typing = Typing(typed.y[rows], typed.cell[rows], own, typed.classes[rows])
        places = (slice(first, end), users), (rows, users), (rows, ..., users), (rows, ..., users)
        part = Asked(*(np.empty(all_[place].shape) for all_, place in zip(asked, places, strict=False)))
        filled(typing, templates if users == slice(0, U) else _some(templates, users), shared, part)
        for all_, place, some in zip(asked, places, part, strict=False):
            all_[place] = some

    from joblib import Parallel, delayed

    pieces = _pieces(offsets, U, at_a_time)
    Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*piece) for piece in pieces)
    return asked


def _pieces(offsets: Integers, n_templates: int, most: int = AT_A_TIME) -> list[tuple[int, int, slice]]:
    """Pieces of some samples and some templates, with at most `most` events × templates if possible."""
    pieces = []
    first, n = 0, len(offsets) - 1
    while first < n:
        limit = offsets[first] + max(most // n_templates, 1)
        end = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        some = max(1, most // max(1, int(offsets[end] - offsets[first])))
        ends = [(u, min(u + some, n_templates)) for u in range(0, n_templates, some)]
        pieces += [(first, end, slice(*of_templates)) for of_templates in ends]
        first = end
    return pieces


def filled(
    typing: Typing, templates: Templates, shared: Shared, asked: Asked, sessions: Sessions = WHOLE
) -> Asked:
    """Fill in `asked` in one compiled call; a `ValueError` names a shape that does not fit."""
    N, F = typing.y.shape
    own, beside = templates
    (K, C), V = own.mean.shape, beside.mean.shape[1]
    S, n, U = len(shared.start), len(typing.offsets) - 1, (K if sessions is WHOLE else 1) + V
    fits = {
        # Negative numbers are large when viewed as unsigned.
        "cells": typing.cell.shape == (N, F) and (N == 0 or bool(typing.cell.view(np.uint64).max() < C)),
        "offsets": n >= 0 and typing.offsets[0] == 0 and typing.offsets[-1] == N,
        "classes": typing.classes.shape == (N,),
        "scales": own.per_scale.shape == (K, C) and beside.per_scale.shape == (C, V) == beside.mean.shape,
        "slopes": own.slopes.shape == (K, F, 3) and beside.slopes.shape == (F, 3, V),
        "gains": own.per_gain.shape == (K, F) and beside.per_gain.shape == (F, V),
        "tempo": shared.tempo.shape == (F,) and shared.parents.shape == (F, 3, 2),
        "states": shared.location.shape == shared.width.shape == (S, F),
        "samples": asked.samples.shape in ((0, 0), (n, U)),
        "events": asked.events.shape in ((0, 0), (N, U)),
        "terms": asked.terms.shape in ((0, 0, 0), (N, F, min(asked.terms.shape[2], U))),
        "residuals": asked.residuals.shape in ((0, 0, 0), (N, F, min(asked.residuals.shape[2], U))),
        "hidden states": asked.states.shape in ((0, 0), (N, S)),
        "sessions": sessions is WHOLE
        or (
            sessions.row.shape == sessions.position.shape == sessions.before.shape == (n,)
            and bool((sessions.row.view(np.uint64) < K).all())
            and sessions.left.shape == (K, 5 * F + S, U)
        ),
    }
    wrong = [name for name, right in fits.items() if not right]
    if wrong:
        raise ValueError(f"samples and the templates to score them with differ in size: {', '.join(wrong)}")
    score(typing, templates, shared, sessions, Work.room(F, S), asked)
    return asked
