"""Templates follow their owner, stay near their enrolment, and can go back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.decisions.enrolled import BOUND, Updating, drift, drifted
from keydyn.population import PopulationModel
from tests.examples import examples
from tests.population.simulated import samples_of_people


@pytest.fixture(scope="module")
def samples():
    return samples_of_people(n_people=12, n_samples=40, n_keys=25)


@pytest.fixture(scope="module")
def population(samples):
    return PopulationModel(hidden_states=False).fit(samples[(samples.users < 10) & (samples.numbers < 8)])


def of(samples, user, begin=0, end=None):
    return samples[samples.users == user][begin:end]


def after(population, start, sent, **settings):
    now = Updating.of(start)
    for n in range(len(sent)):
        now = now.updated(population, sent[[n]], confident=True, **settings)
    return now


def distance(one, other):
    return np.sqrt(np.mean((one.mean - other.mean) ** 2))


def test_own_samples_lead_to_the_own_mean(population, samples):
    """Enrolled as somebody else, with no bound, a person's samples bring the template to the person."""
    stranger, own = population.enrol(of(samples, 10)), population.enrol(of(samples, 11))
    some, many = np.arange(40), np.tile(np.arange(40), 5)
    halfway = after(population, stranger, of(samples, 11)[some], bound=100.0).template
    arrived = after(population, stranger, of(samples, 11)[many], bound=100.0).template
    assert distance(halfway, own) < 0.95 * distance(stranger, own)
    assert distance(arrived, own) < 0.6 * distance(stranger, own)
    scores = population.log_likelihoods([stranger, arrived], of(samples, 11))
    assert (scores[:, 1] > scores[:, 0]).mean() > 0.9


def test_a_faithful_template_hardly_moves(population, samples):
    own = population.enrol(of(samples, 11))
    stranger = population.enrol(of(samples, 10))
    assert distance(after(population, own, of(samples, 11)).template, own) < 0.4 * distance(stranger, own)


@settings(max_examples=examples(25), deadline=None)
@given(
    bound=st.floats(0.01, 2.0),
    weight=st.floats(0.0, 1.0),
    who=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 39), st.booleans()), max_size=8),
)
def test_no_update_leads_beyond_the_bound(population, samples, bound, weight, who):
    start = population.enrol(of(samples, 3, 0, 2))
    now = Updating.of(start)
    for user, number, confident in who:
        then = now.updated(population, of(samples, user, number, number + 1), confident, weight, bound)
        assert (then is now) == (not confident or weight == 0)
        now = then
        away = np.abs(now.template.mean - start.mean) / start.scale
        assert away.max() <= bound * (1 + 1e-12)
        assert now.enrolled is start
    assert (now.template.scale == start.scale).all()


def test_unsure_changes_nothing(population, samples):
    start = Updating.of(population.enrol(of(samples, 3)))
    sample = of(samples, 4, 0, 1)
    assert (start.updated(population, sample, confident=True).template.mean != start.template.mean).any()
    assert start.updated(population, sample, confident=False) is start


def test_evidence_weighs(population, samples):
    """Half the certainty moves the template half as far."""
    start, sample = population.enrol(of(samples, 3)), of(samples, 4, 0, 1)
    whole, half = (
        Updating.of(start).updated(population, sample, True, weight, bound=10.0).template.mean - start.mean
        for weight in (1.0, 0.5)
    )
    np.testing.assert_allclose(half, whole / 2, rtol=1e-10, atol=1e-15)


def test_keys_that_were_not_typed_move_too(population, samples):
    """The population says how other keys change with those that were typed."""
    start, sample = population.enrol(of(samples, 3)), of(samples, 4, 0, 1)
    cells = population.parameters.cells
    typed = np.unique(cells.of(population.parameters.seen(sample).around(cells.spaces)))
    others = np.setdiff1d(np.arange(cells.n_keys, cells.n_cells), typed)
    moved = np.abs(drift(population, start, sample))
    assert len(others) > 20
    assert (moved[others] > 0).all()
    assert moved[typed].mean() > moved[others].mean()


def test_an_impostor_is_held_back(population, samples):
    """The bound keeps the template nearer to its owner, and farther from an impostor."""
    owner, impostor = of(samples, 10), of(samples, 11)
    start = population.enrol(owner[:20])
    sent = [impostor[[n % 20]] for n in range(60)]
    bounded, free = Updating.of(start), Updating.of(start)
    for one in sent:
        bounded = bounded.updated(population, one, confident=True, bound=BOUND)
        free = free.updated(population, one, confident=True, bound=100.0)

    def gap(template, who):
        """How much less probable than under a template of their own."""
        own = population.enrol(who[:20])
        scores = population.log_likelihoods([template, own], who[20:])
        return (scores[:, 1] - scores[:, 0]).mean()

    assert gap(bounded.template, impostor) > gap(free.template, impostor)
    assert gap(bounded.template, owner) < gap(free.template, owner)


def test_what_makes_no_update_is_refused(population, samples):
    start, sample = Updating.of(population.enrol(of(samples, 3))), of(samples, 3, 0, 1)
    with pytest.raises(ValueError, match="weight"):
        start.updated(population, sample, True, weight=1.5)
    with pytest.raises(ValueError, match="bound"):
        start.updated(population, sample, True, bound=0.0)
    other = PopulationModel(hidden_states=False).fit(samples[samples.users < 3])
    with pytest.raises(ValueError, match="another population"):
        start.updated(other, sample, True)


def test_drift_is_a_share_of_what_no_update_passes(population):
    """By its definition, where every mean has gone equally far, or where only some have."""
    enrolled = population.anyone()
    for share in (0.0, 0.3, -1.0):
        moved = replace(enrolled, mean=enrolled.mean + share * BOUND * enrolled.scale)
        assert drifted(population, enrolled, moved) == pytest.approx(abs(share))
    support = population.parameters.support
    half = np.arange(len(support)) % 2 == 0
    moved = replace(enrolled, mean=enrolled.mean + half * BOUND * enrolled.scale)
    expected = np.sqrt(support[half].sum() / support.sum())
    assert drifted(population, enrolled, moved) == pytest.approx(expected)
