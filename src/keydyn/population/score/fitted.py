"""What was learnt, and what is asked of it: a template, and scores in pieces that threads share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.samples import Samples
from keydyn.population.chain import classes_of
from keydyn.population.features import Observations, observations
from keydyn.population.parameters import Parameters
from keydyn.population.person.fitting import fit_people
from keydyn.population.score.kernel import NOTHING, PER_EVENT, PER_FEATURE, PER_SAMPLE, RESIDUALS, score
from keydyn.population.template import Template, side_by_side

# Events times templates of one compiled call, well under a second of work: between calls signals are heard.
AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt, and its SHA-256."""

    parameters: Parameters
    sha256: str

    @cached_property
    def anyone(self) -> Template:
        """Somebody of whom no sample is known."""
        nothing, no_codes = np.zeros((0, len(self.parameters.features))), np.zeros(0, dtype=np.int64)
        return enrolled(self, Observations(nothing, no_codes, np.zeros(1, dtype=np.int64), nothing))

    def check(self, templates: Sequence[Template]) -> None:
        """A `ValueError` if a template belongs to another population."""
        if any(template.population != self.sha256 for template in templates):
            raise ValueError("the template belongs to another population: enrol the person with this one")


def seen_of(known: Parameters, samples: Samples) -> Observations:
    """The samples as the population sees them."""
    return observations(samples, known.features, known.cells.vocabulary)


def enrolled(learnt: Learnt, seen: Observations) -> Template:
    """The person who typed this."""
    known = learnt.parameters
    y, cell = known.standardised(seen.values, seen.around(known.cells.vocabulary))
    n = len(seen.offsets) - 1
    person = fit_people(
        y, cell, seen.offsets, np.arange(n), np.array([0, n]), known.cells, known.loadings,
        known.variances, known.parents,
    )  # fmt: skip
    parts = person.mean[0], person.scale[0], person.slopes[0], np.sqrt(person.gain[0])
    return Template(learnt.sha256, *parts, n_samples=n, n_events=len(y))


@dataclass(frozen=True, eq=False)
class Ready:
    """Samples, ready to be scored.

    Attributes
    ----------
    seen : the samples as the population sees them
    y : (N, F) values without what everybody shares
    used, cell : the cells that there are, and (N, F) the place of each value's among them
    classes : (N,) the class of each key
    shift : (N, F) what makes densities of y those of what was measured
    """

    seen: Observations
    y: Floats
    used: Integers
    cell: Integers
    classes: Integers
    shift: Floats


def ready_for(learnt: Learnt, samples: Samples) -> Ready:
    """These samples; a single one keeps what is made of it, because several questions are asked of it."""
    ready: Ready | None = samples.kept.get(learnt.sha256)
    if ready is None:
        ready = _made_ready(learnt.parameters, samples)
        if len(samples) == 1:
            samples.kept[learnt.sha256] = ready
    return ready


def _made_ready(known: Parameters, samples: Samples) -> Ready:
    seen = seen_of(known, samples)
    y, cell = known.standardised(seen.values, seen.around(known.cells.vocabulary))
    used, place = np.unique(cell, return_inverse=True)
    classes = classes_of(known.cells.vocabulary)[seen.codes]
    return Ready(seen, y, used, place.reshape(y.shape), classes, known.shift(seen.jacobian, y, cell))


def fill_scores(
    learnt: Learnt,
    what: int,
    templates: Sequence[Template],
    ready: Ready,
    out: Floats,
    n_jobs: int | None,
) -> None:
    """Fill out, in pieces of some samples and some templates, handed out to threads."""
    learnt.check(templates)
    if len(templates) == 0:
        return
    known, seen, y, cell, classes = learnt.parameters, ready.seen, ready.y, ready.cell, ready.classes
    chain = known.chain
    # Only what the samples need of templates, of which there may be many.
    mean, per_scale, slopes, per_gain = side_by_side(templates, ready.used)

    def one(first: int, end: int, users: slice) -> None:
        begin, stop = seen.offsets[first], seen.offsets[end]
        place = {PER_SAMPLE: (slice(first, end), users), PER_EVENT: (slice(begin, stop), users)}
        some = np.empty_like(out[place.get(what, (slice(begin, stop), slice(None)))])
        score(
            what, y[begin:stop], cell[begin:stop], seen.offsets[first : end + 1] - begin,
            classes[begin:stop], np.ascontiguousarray(mean[:, users]),
            np.ascontiguousarray(per_scale[:, users]), np.ascontiguousarray(slopes[..., users]),
            np.ascontiguousarray(per_gain[:, users]),
            known.variances.tempo, known.parents, chain.start, chain.transitions, chain.location,
            chain.scale, chain.degrees, chain.constant, some, 0, NOTHING,
        )  # fmt: skip
        out[place.get(what, (slice(begin, stop), slice(None)))] = some

    pieces = _pieces(seen.offsets, len(templates))
    if len(pieces) == 1:
        one(*pieces[0])
    else:
        Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(*piece) for piece in pieces)
    if what == RESIDUALS:
        return
    if what == PER_FEATURE:
        out += ready.shift
        return
    per_event = ready.shift.sum(axis=1)
    added = per_event if what == PER_EVENT else np.add.reduceat(per_event, seen.offsets[:-1])
    out += added[:, None]


def _pieces(offsets: Integers, n_templates: int) -> list[tuple[int, int, slice]]:
    """Runs of samples and of templates, none with more than `AT_A_TIME` events times templates."""
    pieces = []
    first, n = 0, len(offsets) - 1
    while first < n:
        limit = offsets[first] + max(AT_A_TIME // n_templates, 1)
        end = max(first + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        some = max(1, AT_A_TIME // max(1, int(offsets[end] - offsets[first])))
        pieces += [(first, end, slice(u, u + some)) for u in range(0, n_templates, some)]
        first = end
    return pieces
