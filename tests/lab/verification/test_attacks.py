"""Attacks are sent to every victim, and what is accepted and what is noticed is counted."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.lab.forgeries.from_population import dictionary, typed_as
from keydyn.lab.verification.attacks import (
    BEST,
    COPY,
    COPY_JITTERS,
    FRESH,
    ROBOT,
    STOPPED_BY,
    TRIES,
    Victim,
    attack_acceptance,
    copy_rates,
    most_accepted,
)
from keydyn.population import PopulationModel
from tests.population.simulated import samples_of_people


@pytest.fixture(scope="module")
def samples():
    return samples_of_people(n_people=12, n_samples=8, n_keys=30)


@pytest.fixture(scope="module")
def population(samples):
    return PopulationModel(hidden_states=False).fit(samples[samples.users < 8])


def of(samples, user, begin=0, end=None):
    return samples[samples.users == user][begin:end]


def test_forgeries_beat_strangers(population, samples):
    """A stolen template forges its owner; the average typist and the dictionary do not come near."""
    victim = of(samples, 9)
    template = population.enrol(victim[:4])
    others = [population.enrol(of(samples, user)) for user in range(8)]
    queries = victim[4:]

    def margin(sent):
        scores = population.log_likelihoods([template, *others], sent)
        return (scores[:, 0] - scores[:, 1:].max(axis=1)).mean()

    genuine = margin(queries)
    forged = margin(typed_as(population, template, queries, np.random.default_rng(1)))
    average = margin(typed_as(population, population.anyone(), queries))
    strangers = margin(of(samples, 11))
    assert genuine > 0
    assert forged > 0.5 * genuine
    assert average < 0.2 * genuine
    assert strangers < 0.2 * genuine


def test_dictionary_has_one_entry_per_person(population, samples):
    people = population.draw(50, random_state=0)
    sample = of(samples, 9, 0, 1)
    entries = dictionary(population, people, sample, None)
    assert len(entries) == 50
    for n in (0, 49):
        alone = typed_as(population, people[n], sample)
        np.testing.assert_allclose(times_of(entries[[n]]), times_of(alone))
    # Everybody finds an own entry the most probable.
    scores = population.log_likelihoods(people, entries)
    assert (scores.argmax(axis=1) == np.arange(50)).mean() > 0.9
    accepted = np.zeros((3, 4), dtype=bool)
    accepted[1, :2] = accepted[2, 0] = True
    assert most_accepted(accepted) == 1
    with pytest.raises(ValueError, match="of one sample"):
        dictionary(population, people, of(samples, 9), None)


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


def test_copies_and_robots_are_noticed_and_fresh_samples_are_not():
    samples = samples_of_people(n_people=5, n_samples=20, n_keys=30)
    table = copy_rates(samples, 12)
    assert len(table) == 5 * (1 + 2 * len(COPY_JITTERS))
    total = table.groupby(["kind", "jitter"])[["tries", "copies", "regular"]].sum()
    assert total.loc[(FRESH, 0.0), "tries"] == 5 * 8
    assert total.loc[(FRESH, 0.0), "copies"] == 0
    assert total.loc[(FRESH, 0.0), "regular"] == 0
    for jitter in (0.0, 1.0, 5.0):
        assert total.loc[(COPY, jitter), "copies"] == total.loc[(COPY, jitter), "tries"] == 5 * 10
        assert total.loc[(ROBOT, jitter), "regular"] == total.loc[(ROBOT, jitter), "tries"]
    assert copy_rates(samples[samples.numbers < 12], 12).empty


def test_a_repeated_sample_is_a_copy():
    samples = samples_of_people(n_people=1, n_samples=4, n_keys=30)
    twice = samples[[0, 1, 2, 1]]
    fresh = copy_rates(twice, 3).query(f"kind == '{FRESH}'").iloc[0]
    assert fresh["copies"] == fresh["tries"] == pytest.approx(1)
