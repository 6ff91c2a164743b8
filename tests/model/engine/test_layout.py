"""Arrays whose shapes do not fit each other are refused before compiled code sees them."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM, Sequences
from keydyn.model import OnlineBatch
from keydyn.model.engine.densities import END
from keydyn.model.engine.layout import Walk
from keydyn.model.engine.online_step import check_models
from keydyn.model.engine.scores_and_states import GivenSequences, Lattice, Scored, ScoreRoom, check_scoring
from keydyn.model.families.family import families_of
from keydyn.model.fit.batch import Batch
from keydyn.model.fit.fits import Fits

PARTS = {
    "events": ("x", "codes", "steps", "offsets", "weights", "start_rows"),
    "chain": ("pairs", "of_pairs", "of_types"),
    "tables": ("start", "transitions", "emission", "cells", "least", "floored"),
    "sums": ("start", "first_seen", "transitions", "moments", "latest"),
    "work": ("density", "largest", "states", "inverse", "scores", "worst"),
}


def sequences():
    rng = np.random.default_rng(0)
    return Sequences.from_arrays(rng.lognormal(5.0, 0.4, (12, 2)), list("abcabcabcabc"), [7, 5])


@pytest.fixture(scope="module")
def job():
    batch = Batch.of([sequences()], [np.ones(2)], families_of("lognormal", 2))
    fits = Fits(batch, POHMM()._settings(2))
    return fits._job(fits._work())


def test_what_a_fit_works_on_fits(job):
    job.check(int(job.rules.features[-1, END]))


# Of some there may be any number, but for the sums of them.
SHAPES = [
    (part, name, axis)
    for part in PARTS
    for name in PARTS[part]
    for axis in (0, -1)
    if axis == -1 or name not in ("transitions", "density")
]


@pytest.mark.parametrize(("part", "name", "axis"), SHAPES)
def test_a_fit_refuses_a_shape_that_does_not_fit(job, part, name, axis):
    """One row more, or one more along the last axis, in any of the arrays."""
    own = getattr(job, part)
    array = getattr(own, name)
    larger = np.concatenate([array, array.take([0], axis=axis)], axis=axis)
    with pytest.raises(ValueError, match=r"has shape|there is room"):
        job._replace(**{part: own._replace(**{name: larger})}).check(int(job.rules.features[-1, END]))


def test_a_fit_refuses_a_sequence_for_which_there_is_no_room(job):
    """The sequences have seven and five events."""
    n_parameters = int(job.rules.features[-1, END])
    room = job.work._replace(density=job.work.density[:7], largest=job.work.largest[:7])
    job._replace(work=room).check(n_parameters)
    room = job.work._replace(density=job.work.density[:6], largest=job.work.largest[:6])
    with pytest.raises(ValueError, match="there is room for 6 events of a sequence of 7"):
        job._replace(work=room).check(n_parameters)


def test_a_lattice_refuses_a_shape_that_does_not_fit():
    zeros = np.zeros(4, dtype=np.int64)
    right = {
        "offsets": np.array([0, 4]),
        "start_rows": zeros[:1],
        "start": np.full((1, 2), 0.5),
        "steps": zeros,
        "transitions": np.full((1, 2, 2), 0.5),
    }
    lattice = Lattice.of(np.zeros((4, 2)), Walk.along(**right))
    for name, wrong in (
        ("offsets", np.array([0, 2, 4])),
        ("start_rows", zeros[:2]),
        ("start", np.full((1, 3), 0.3)),
        ("steps", zeros[:3]),
        ("transitions", np.full((1, 2, 3), 0.3)),
    ):
        with pytest.raises(ValueError, match="has shape"):
            Walk.along(**(right | {name: wrong}))
    for wrong in (np.zeros((5, 2)), np.zeros((4, 3))):
        with pytest.raises(ValueError, match="log_density has shape"):
            Lattice.of(wrong, lattice.walk)
    with pytest.raises(ValueError, match="weights has shape"):
        lattice.weighted(np.ones(3))


def test_scoring_refuses_a_shape_that_does_not_fit():
    n, room = 4, ScoreRoom(np.empty(1), np.empty(0), np.empty((4, 2, 1)), np.empty(8))
    source = GivenSequences(
        np.ones(n * 2), np.zeros(n, dtype=np.int64), np.array([0, n]), np.empty((0, 2, 1))
    )
    features, cells = np.zeros((2, 4), dtype=np.int64), np.ones((3, 2, 4, 2, 1))
    places, none = np.zeros(3, dtype=np.int64), np.empty(0, dtype=np.int64)
    model = Scored(places, none, features, 0.0, cells, np.ones((3, 2, 1)), np.ones((9, 2, 2, 1)))
    check_scoring(source, model, room)
    for wrong in (
        (source._replace(values=np.ones(7)), model, room),
        (source._replace(given=np.ones((4, 3, 1))), model, room),
        (source, model._replace(transitions=np.ones((9, 2, 3, 1))), room),
        (source, model._replace(transitions=np.ones((8, 2, 2, 1))), room),
        (source, model._replace(cells=np.ones((2, 2, 4, 2, 1))), room),
        (source, model, room._replace(scores=np.empty(2))),
        (source, model, room._replace(x=np.empty((4, 1, 1)))),
    ):
        with pytest.raises(ValueError, match=r"shape|steps"):
            check_scoring(*wrong)


def test_online_filters_refuse_a_shape_that_does_not_fit():
    bank = OnlineBatch([POHMM(tol=1e9).fit(sequences())], 3)._bank
    check_models(bank.models, bank.members.features, bank.filters)
    for models, filters in (
        (bank.models._replace(transitions=np.ones((4, 2, 3, 1))), bank.filters),
        (bank.models._replace(cells=bank.models.cells[1:]), bank.filters),
        (bank.models, bank.filters[:, 1:]),
    ):
        with pytest.raises(ValueError, match="has shape"):
            check_models(models, bank.members.features, filters)
