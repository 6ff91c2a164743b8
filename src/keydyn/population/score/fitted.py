"""A fitted population and what is asked of it: a template, scores, and what speaks for and against a claim.

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
from keydyn.population.features import Observations, Typing
from keydyn.population.parameters import Parameters, Template
from keydyn.population.person.fitting import Chosen, Prior, fit_people
from keydyn.population.score.kernel import Asked, Columns, Shared, SideBySide, Templates, filled

# Events times templates of one compiled call, well under a second of work: between calls signals are heard.
AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False)
class Ready:
    """Samples, ready to be scored."""

    seen: Observations  # the samples as the population sees them
    typing: Typing  # those without what people share
    shift: Floats  # (N, F) what makes densities of y those of what was measured

    @cached_property
    def few(self) -> tuple[Integers, Typing]:
        """The cells that occur, and the samples with cells that are places among these."""
        used, place = np.unique(self.typing.cell, return_inverse=True)
        return used, self.typing._replace(cell=place.reshape(self.typing.cell.shape))

    @cached_property
    def event_shift(self) -> Floats:
        """(N, 1) the shift of each event."""
        return np.asarray(self.shift.sum(axis=1)[:, None])

    @cached_property
    def sample_shift(self) -> Floats:
        """(n, 1) the shift of each sample."""
        return np.add.reduceat(self.event_shift, self.typing.offsets[:-1])


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt, and its SHA-256."""

    parameters: Parameters
    sha256: str

    @cached_property
    def shared(self) -> Shared:
        """What the compiled loops need of it."""
        return Shared.of(self.parameters.variances.tempo, self.parameters.chain)

    @cached_property
    def anyone(self) -> Template:
        """A person of whom no sample is known."""
        nothing, no_codes = np.zeros((0, len(self.parameters.features))), np.zeros(0, dtype=np.int64)
        return self.enrolled(Observations(nothing, no_codes, np.zeros(1, dtype=np.int64), nothing))

    def check(self, templates: Sequence[Template] | SideBySide) -> None:
        """A `ValueError` if a template belongs to another population."""
        one_by_one = [templates] if isinstance(templates, SideBySide) else templates
        if any(template.population != self.sha256 for template in one_by_one):
            raise ValueError("the template belongs to another population: enrol the person with this one")

    def side_by_side(self, templates: Sequence[Template]) -> SideBySide:
        """These templates side by side."""
        self.check(templates)
        return SideBySide(self.sha256, Columns.of(templates))

    def fits(self, template: Template) -> bool:
        """Whether the template has the size of this population's."""
        C, F = self.parameters.cells.n_cells, len(self.parameters.features)
        shapes = [one.shape for one in (template.mean, template.scale, template.slopes, template.gain)]
        return shapes == [(C,), (C,), (F, 3), (F,)]

    def enrolled(self, seen: Observations) -> Template:
        """The person who typed this."""
        return self._enrolled(seen, Chosen.one_person(len(seen.offsets) - 1))[0]

    def enrolled_each(self, samples: Samples) -> list[Template]:
        """The people who typed these samples, in the order in which they first appear."""
        people, users = samples.people
        order = np.argsort(people, kind="stable")
        begins = np.searchsorted(people[order], np.arange(len(users) + 1))
        return self._enrolled(self.parameters.seen(samples), Chosen(order, begins))

    def _enrolled(self, seen: Observations, chosen: Chosen) -> list[Template]:
        known, lengths = self.parameters, np.diff(seen.offsets)
        y, cell = known.standardised(seen.values, seen.around(known.cells.vocabulary))
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
        """These samples; a single one keeps what is made of it, because several questions are asked of it."""
        found: Ready | None = samples.kept.get(self.sha256)
        if found is None:
            found = self._made_ready(samples)
            if len(samples) == 1:
                samples.kept[self.sha256] = found
        return found

    def _made_ready(self, samples: Samples) -> Ready:
        known = self.parameters
        seen = known.seen(samples)
        y, cell = known.standardised(seen.values, seen.around(known.cells.vocabulary))
        typing = Typing(y, cell, seen.offsets, known.classes[seen.codes])
        return Ready(seen, typing, known.shift(seen.jacobian, y, cell))

    def score(
        self,
        templates: Sequence[Template] | SideBySide,
        ready: Ready,
        asked: Asked,
        beside: SideBySide | None = None,
        n_jobs: int | None = 1,
    ) -> Asked:
        """What is asked, of what was measured, under these templates and then under those beside them."""
        self.check(templates)
        if len(templates) == 0:
            return asked
        typed = ready.typing
        if isinstance(templates, SideBySide):
            laid_out = Templates.columns(templates.columns)
        elif beside is not None:
            self.check(beside)
            laid_out = Templates.rows(Columns.rows(templates), beside.columns)
        else:
            # Only what the samples need of templates, of which there may be many.
            used, typed = ready.few
            laid_out = Templates.columns(Columns.of(templates, used))
        scored(typed, laid_out, self.shared, asked, n_jobs)
        if asked.terms.size:
            asked.terms[:] += ready.shift[..., None]
        if asked.events.size:
            asked.events[:] += ready.event_shift
        if asked.samples.size:
            asked.samples[:] += ready.sample_shift
        return asked

    def explained(self, seen: Observations, terms: Floats) -> dict[str, NDArray[Any]]:
        """Terms (N, F, 2) of a person and of anyone, summed by key and feature; strongest evidence first.

        As columns: `key`, None for unknown ones, `feature`, `count`, `log_likelihood` and `evidence`.
        """
        known = self.parameters
        vocabulary = np.append(known.cells.vocabulary.astype(object), [None])
        F, n_codes = len(known.features), known.cells.n_codes
        # Feature by feature: among equals, what was typed first comes first.
        there = np.isfinite(seen.values).T.ravel()
        group = (np.arange(F)[:, None] * n_codes + seen.codes).ravel()[there]
        of_person, of_anyone = (terms[..., k].T.ravel()[there] for k in range(2))
        count, evidence = np.bincount(group), np.bincount(group, of_person - of_anyone)
        first = np.empty(len(count), dtype=np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        found = count.nonzero()[0]
        found = found[np.lexsort((first[found], -np.abs(evidence[found])))]
        return {
            "key": vocabulary[found % n_codes],
            "feature": np.array(known.features, dtype=object)[found // n_codes],
            "count": count[found],
            "log_likelihood": np.bincount(group, of_person)[found],
            "evidence": evidence[found],
        }


def scored(
    typed: Typing,
    templates: Templates,
    shared: Shared,
    asked: Asked,
    n_jobs: int | None = 1,
    at_a_time: int = AT_A_TIME,
) -> Asked:
    """What is asked, in calls of `at_a_time` events × templates."""
    offsets, U = typed.offsets, templates.n
    if len(typed.y) * U <= at_a_time:
        return filled(typed, templates, shared, asked)

    def one(first: int, end: int, users: slice) -> None:
        rows = slice(offsets[first], offsets[end])
        own = offsets[first : end + 1] - offsets[first]
        typing = Typing(typed.y[rows], typed.cell[rows], own, typed.classes[rows])
        places = (slice(first, end), users), (rows, users), (rows, ..., users), (rows, ..., users)
        part = Asked(*(np.empty(all_[place].shape) for all_, place in zip(asked, places, strict=False)))
        filled(typing, templates if users == slice(0, U) else templates.some(users), shared, part)
        for all_, place, some in zip(asked, places, part, strict=False):
            all_[place] = some

    from joblib import Parallel, delayed

    pieces = _pieces(offsets, U, at_a_time)
    Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*piece) for piece in pieces)
    return asked


def _pieces(offsets: Integers, n_templates: int, most: int = AT_A_TIME) -> list[tuple[int, int, slice]]:
    """Runs of samples and of templates, none with more than `most` events times templates."""
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
