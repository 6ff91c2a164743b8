"""One pass gives samples, events and terms; what does not fit is refused before it runs."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.population import PopulationModel
from keydyn.population.score.fitted import all_beside, filled, one_by_one, scored, side_by_side, together
from keydyn.population.score.kernel import TEMPLATES, Asked, Sessions
from tests.population.simulated import samples_of_people
from tests.population.test_model import of


@pytest.fixture(scope="module")
def known():
    samples = samples_of_people(n_people=6, n_samples=3)
    model = PopulationModel().fit(samples)
    return model, [model.enrol(of(samples, user)) for user in range(6)], samples


def test_one_pass_gives_what_single_questions_give(known):
    """Of more templates than are worked on together, with terms of some in the second block."""
    model, templates, samples = known
    many, K = templates * 30, TEMPLATES + 3
    scores, terms = model.score_terms(many[:K], samples, model.side_by_side(many[K:]))
    np.testing.assert_array_equal(scores, model.log_likelihoods(many, samples))
    events = model.event_log_likelihoods(many[:K], samples)
    np.testing.assert_allclose(terms.sum(axis=1), events, rtol=1e-10, atol=1e-10)
    missing = np.isnan(model.ready_for(samples).typing.y)
    assert (terms[missing] == 0).all()


def test_pieces_give_what_the_whole_gives(known):
    """Neither scores nor terms depend on how the work is divided."""
    model, templates, samples = known
    typing, shared = model.ready_for(samples).typing, model.fitted_.shared
    N, n = len(typing.y), len(samples)
    laid_out = together(one_by_one(templates), side_by_side(templates * 2))
    both = [
        Asked(np.empty((n, 18)), np.empty((N, 18)), np.empty((N, 2, 4)), np.empty((N, 2, 5))) for _ in "12"
    ]
    scored(typing, laid_out, shared, both[0])
    scored(typing, laid_out, shared, both[1], n_jobs=2, at_a_time=100)
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_evidence_of_one_pass_is_the_explanation(known):
    model, templates, samples = known
    sample = samples[[4]]
    _, terms = model.score_terms([templates[0], model.anyone()], sample, model.side_by_side(templates))
    told, expected = model.evidence(sample, terms), model.explained(templates[0], sample)
    assert list(told) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(told[name], values)
    named = zip(told["key"].tolist(), told["feature"].tolist(), told["evidence"].tolist(), strict=True)
    rows = [row for row in named if row[2] != 0.0]
    for found, sign in zip(model.strongest(sample, terms, 3), (1.0, -1.0), strict=True):
        wanted = [row for row in rows if sign * row[2] > 0.0][:3]
        assert [row[:2] for row in found] == [row[:2] for row in wanted]
        np.testing.assert_allclose([row[2] for row in found], [row[2] for row in wanted], rtol=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"row": np.array([0, 6])},
        {"row": np.array([0, -1])},
        {"position": np.zeros(1, dtype=np.int64)},
        {"before": np.zeros(3, dtype=np.int64)},
        {"left": np.zeros((6, 12, 2))},
    ],
)
def test_sessions_that_do_not_fit_are_refused(known, wrong):
    """Two samples go on in sessions that have a row each among six templates."""
    model, templates, samples = known
    typing, shared = model.ready_for(samples[:2]).typing, model.fitted_.shared
    two: np.ndarray = np.zeros(2, dtype=np.int64)
    right = Sessions(two, two, two, np.zeros((6, 5 * 2 + len(shared.start), 1)))
    laid_out = together(one_by_one(templates))
    asked, alone = (Asked(samples=np.empty((2, 1))) for _ in "12")
    filled(typing, laid_out, shared, asked, right)
    filled(typing, together(one_by_one(templates[:1])), shared, alone)
    np.testing.assert_array_equal(asked.samples, alone.samples)
    with pytest.raises(ValueError, match=r"differ in size: sessions$"):
        filled(typing, laid_out, shared, asked, right._replace(**wrong))


@pytest.mark.parametrize(
    "what", ["offsets", "classes", "slopes", "gains", "samples", "events", "terms", "residuals"]
)
def test_shapes_that_do_not_fit_are_refused(known, what):
    model, templates, samples = known
    ready = model.ready_for(samples)
    typing, columns, shared = ready.typing, side_by_side(templates), model.fitted_.shared
    laid_out = all_beside(columns)
    asked = Asked(samples=np.empty((len(samples), 6)))
    wide = np.zeros((3, 3, 6))
    if what in ("offsets", "classes"):
        changed = {
            "offsets": {"offsets": typing.offsets[:-1]},
            "classes": {"classes": typing.classes[1:]},
        }
        typing = typing._replace(**changed[what])
        asked = Asked()
    elif what in ("slopes", "gains"):
        columns = columns._replace(**({"slopes": wide} if what == "slopes" else {"per_gain": wide[0]}))
    else:
        asked = Asked(**{what: wide[0] if what in ("samples", "events") else wide})
    with pytest.raises(ValueError, match=f"differ in size: {what}$"):
        filled(typing, laid_out._replace(beside=columns), shared, asked)


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("tempo", {"tempo": np.zeros(3)}),
        ("tempo", {"parents": np.zeros((2, 2, 2), dtype=np.int64)}),
        ("states", {"location": np.zeros((1, 3)), "width": np.ones((1, 3))}),
    ],
)
def test_a_population_that_does_not_fit_is_refused(known, what, wrong):
    model, templates, samples = known
    shared, columns = model.fitted_.shared._replace(**wrong), side_by_side(templates)
    with pytest.raises(ValueError, match=f"differ in size: {what}$"):
        filled(model.ready_for(samples).typing, all_beside(columns), shared, Asked())


@pytest.mark.parametrize("beyond", [0, 10**6, -1])
def test_a_single_cell_that_is_not_there_is_refused(known, beyond):
    """Compiled code would read beside its arrays."""
    model, templates, samples = known
    typing, columns = model.ready_for(samples).typing, side_by_side(templates)
    cell = typing.cell.copy()
    cell[len(cell) // 2, 0] = len(columns.mean) + beyond if beyond >= 0 else beyond
    with pytest.raises(ValueError, match=r"differ in size: cells$"):
        filled(typing._replace(cell=cell), all_beside(columns), model.fitted_.shared, Asked())
