"""Templates that tell what was typed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keydyn.lab.open_questions.text_recovery import template_leakage, unexplained
from keydyn.population import PopulationModel
from tests.population.simulated import samples_of_people


def test_a_template_tells_which_pairs_were_typed():
    samples = samples_of_people(n_people=10, n_samples=6, n_keys=25)
    population = PopulationModel(hidden_states=False).fit(samples[samples.users < 8])
    table = template_leakage(population, samples[(samples.users >= 8) & (samples.numbers == 0)])
    assert table["user"].tolist() == [8, 9]
    assert (table["auc"] > 0.95).all()
    assert (table["found"] > 0.9).all()
    assert (table["chance"] < 0.5).all()


def test_nothing_is_left_of_a_template_without_typing():
    """Means that follow from z and from effects of keys are explained, whatever these are."""
    samples = samples_of_people(n_people=10)
    population = PopulationModel(hidden_states=False).fit(samples)
    known, random = population.parameters, np.random.default_rng(0)
    mean = known.loadings @ random.normal(size=known.loadings.shape[1])
    mean += random.normal(size=known.cells.n_keys)[known.cells.key]
    assert unexplained(known, replace(population.anyone(), mean=mean)).max() < 1e-4
