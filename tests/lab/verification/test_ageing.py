"""Ageing and poisoning of people who really change."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.keystrokes.samples import Samples
from keydyn.lab.verification.security import (
    FREE,
    RETRAINED,
    STATIC,
    UNBOUND,
    UPDATED,
    Course,
    ageing,
    poisoning,
)
from keydyn.population import PopulationModel
from tests.population.simulated import people, samples_of_people

TEXT = "abcdefghabcd"


@pytest.fixture(scope="module")
def course():
    """Everybody becomes faster from sitting to sitting, by a fifth in all."""
    keystrokes = people(n_people=18, n_samples=32, text=TEXT, seed=3)
    sitting = keystrokes["session"] // 8
    for column in ("timepress", "timerelease"):
        keystrokes[column] *= np.exp(-0.15 * sitting)
    samples = Samples.of(keystrokes, kind="long text")
    learnt = samples.users < 10
    population = PopulationModel(hidden_states=False).fit(samples_of_people(n_people=40, text=TEXT, seed=3))
    others = [population.enrol(samples[samples.users == user]) for user in range(10)]
    asked = samples[~learnt]
    base = population.log_likelihoods(others, asked).max(axis=1)

    def score(templates, which):
        return population.log_likelihoods(templates, asked[which]) - base[which][:, None]

    return Course(population, asked, asked.numbers // 8, score, accept=0.0, confident=2.0)


def test_updates_keep_what_static_templates_lose(course):
    table = ageing(course, enrolled=1)
    assert set(table["kind"]) == {STATIC, RETRAINED, UPDATED, FREE}
    assert len(table) == 4 * 8 * 3
    last = table[table["sitting"] == 3].groupby("kind")["genuine"].mean()
    assert last[STATIC] < last[UPDATED]
    assert last[UPDATED] <= last[FREE] + 0.1
    assert table["impostor"].mean() < table["genuine"].mean()


def test_the_bound_holds_impostors_back(course):
    table = poisoning(course, [0.2, UNBOUND], rounds=80)
    mean = table.groupby("bound").mean(numeric_only=True)
    assert (table["updates"] > 0).all()
    gained = mean["impostor_after"] - mean["impostor_before"]
    assert gained[0.2] < gained[UNBOUND]
    assert mean.loc[0.2, "owner_after"] > mean.loc[UNBOUND, "owner_after"]
