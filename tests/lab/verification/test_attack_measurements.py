"""Every attack is measured against every victim, by whoever judges."""

from __future__ import annotations

import numpy as np

from keydyn.lab.verification.attack_measurements import BEST, STOPPED_BY, TRIES, Victim, attack_acceptance
from keydyn.population import PopulationModel
from tests.population.simulated import samples_of_people


def test_every_attack_is_measured():
    samples = samples_of_people(n_people=12, n_samples=8, n_keys=30)
    population = PopulationModel(hidden_states=False).fit(samples[samples.users < 8])
    others = [population.enrol(samples[samples.users == user]) for user in range(8)]
    victims = []
    for user in (8, 9, 10):
        own = samples[samples.users == user]
        victims.append(Victim(user, population.enrol(own[:5]), own[:5], own[5:]))
    templates = {victim.user: victim.template for victim in victims}

    def judge(users, sent):
        claimed = population.log_likelihoods([templates[user] for user in users], sent)
        return claimed - population.log_likelihoods(others, sent).max(axis=1)[:, None] > 2.0

    table = attack_acceptance(population, victims, judge, entries=40)
    assert set(table["attack"]) == {*STOPPED_BY, "genuine"}
    assert (table.groupby("attack")["user"].nunique() == 3).all()
    assert (table["passed"] <= table["accepted"]).all()
    mean = table.groupby("attack")[["accepted", "noticed", "passed"]].mean()
    assert mean.loc["genuine", "passed"] > 0.6
    assert mean.loc["replay", "noticed"] == 1.0
    assert mean.loc["replay", "passed"] == 0.0
    assert mean.loc["robot", "passed"] == 0.0
    assert mean.loc["stolen template, drawn", "passed"] > mean.loc["stranger", "passed"]
    assert mean.loc[TRIES, "accepted"] >= mean.loc[BEST, "accepted"]
    assert set(table.loc[table["attack"] == TRIES, "tries"]) == {40}

    everything = attack_acceptance(
        population, victims[:2], lambda users, sent: np.ones((len(sent), len(users)), dtype=bool), entries=3
    )
    assert (everything["accepted"] == 1).all()
