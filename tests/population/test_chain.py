"""The chain of hidden states that people share, with as many states as are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel
from keydyn.population.chain import CLASSES, Chain, fit_chain, posteriors


@pytest.mark.parametrize("n_states", [2, 3, 5])
def test_where_the_search_begins(n_states):
    chain = Chain.initial(2, n_states=n_states)
    np.testing.assert_allclose(chain.transitions.sum(axis=3), 1.0)
    assert chain.start.sum() == pytest.approx(1.0)
    assert (np.diff(chain.location[:, 0]) > 0.0).all()
    # Its share of pauses stays as it is.
    np.testing.assert_allclose(chain.start @ chain.transitions[0, 0], chain.start)
    # Active and longest pause are the same for any number.
    two = Chain.initial(2)
    np.testing.assert_allclose(chain.location[[0, -1]], two.location)
    np.testing.assert_allclose(chain.scale[[0, -1]], two.scale)


def test_three_states_are_found():
    """Residuals drawn from three states far apart: the search finds where they are, and which is which."""
    random = np.random.default_rng(1)
    locations = np.array([-0.5, 1.5, 4.0])
    n_samples, length = 40, 200
    state = np.empty((n_samples, length), dtype=int)
    state[:, 0] = 0
    for n in range(1, length):
        stays = random.random(n_samples) < 0.5
        state[:, n] = np.where(stays, state[:, n - 1], random.integers(3, size=n_samples))
    e = (locations[state.ravel()] + 0.2 * random.standard_t(6, state.size))[:, None]
    classes = np.zeros(len(e), dtype=np.int64)
    offsets = np.arange(0, len(e) + 1, length).astype(np.int64)
    chain = fit_chain([(e, classes, offsets)], Chain.initial(1, n_states=3))
    # It leans on its start with 100 of 8,000 pseudo-observations for each state.
    np.testing.assert_allclose(chain.location[:, 0], locations, atol=0.15)
    expected = np.full((3, 3), 1 / 6) + np.eye(3) / 2
    np.testing.assert_allclose(chain.transitions[0, 0], expected, atol=0.05)
    found = posteriors(chain, e, classes, offsets).argmax(axis=1)
    assert (found == state.ravel()).mean() > 0.98
    assert chain.transitions.shape == (len(CLASSES), len(CLASSES), 3, 3)


def test_a_population_with_three_states(tmp_path):
    samples = Samples.of(make_typists(6, 4))
    people = PopulationModel(hidden_states=3).fit(samples)
    template = people.enrol(samples[:3])
    posterior = people.predict_proba(template, samples[3:4])
    assert posterior.shape == (11, 3)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    people.save(tmp_path / "people.keydyn")
    again = PopulationModel.load(tmp_path / "people.keydyn")
    assert again.hidden_states == 3
    np.testing.assert_array_equal(
        again.log_likelihoods([template], samples), people.log_likelihoods([template], samples)
    )
    two = PopulationModel(hidden_states=2).fit(samples)
    assert two.sha256 == PopulationModel().fit(samples).sha256
    for wrong in (0, 9, 2.0, "two"):
        with pytest.raises(ValueError, match="hidden_states must be True, False or"):
            PopulationModel(hidden_states=wrong).fit(samples)
