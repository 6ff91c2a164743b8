"""The population that comes with keydyn."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes.samples import Samples
from keydyn.lab.shipped import published_people
from keydyn.population import PopulationModel
from keydyn.population.model import SHIPPED


@pytest.fixture(scope="module")
def shipped():
    return PopulationModel.shipped()


def test_it_is_small_and_says_what_it_was_learnt_from(shipped):
    assert SHIPPED.stat().st_size < 2_000_000
    known = shipped.parameters
    assert (known.n_people, known.n_samples) == (115, 570)
    assert known.features == ("tau", "duration")
    assert known.chain.n_states == 2


def test_one_person_can_enrol_alone(shipped):
    """Later samples are more probable from the person than from anyone, and more so than those of others."""
    typists = Samples.of(make_typists(12, 8, "free", 80), first="missing")
    first, later = typists[typists.numbers < 5], typists[typists.numbers >= 5]
    right = 0
    for user in range(12):
        templates = [shipped.enrol(first[first.users == user]), shipped.anyone()]
        scores = shipped.log_likelihoods(templates, later)
        gain = scores[:, 0] - scores[:, 1]
        own = later.users == user
        assert (gain[own] > 0).all()
        right += gain[own].mean() > np.quantile(gain[~own], 0.95)
    assert right >= 10


@pytest.mark.slow
def test_it_is_what_the_command_makes(recordings):
    """As `make population` does; nothing else is in the file."""
    made = PopulationModel().fit(published_people(recordings)).parameters
    there = PopulationModel.shipped().parameters
    np.testing.assert_array_equal(made.cells.vocabulary, there.cells.vocabulary)
    np.testing.assert_array_equal(made.cells.before, there.cells.before)
    np.testing.assert_allclose(made.location, there.location, rtol=1e-6)
    np.testing.assert_allclose(made.loadings @ made.loadings.T, there.loadings @ there.loadings.T, atol=1e-6)
    np.testing.assert_allclose(made.variances.tempo, there.variances.tempo, rtol=1e-4)
    np.testing.assert_allclose(made.chain.transitions, there.chain.transitions, atol=1e-4)
