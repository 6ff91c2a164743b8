"""Forgeries are judged by detectors that have not met their kind, and counted person by person."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions.decision import Typed
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import ENROLLED, NOTHING, TEMPLATE, joined
from keydyn.lab.verification.forged.attacked import PICKED, judged, people_of
from tests.lab.verification.forged.unlearnt import TRIED, unlearnt


@pytest.fixture(scope="module")
def samples():
    return Samples.without_vectors(make_typists(3, 9, "free", 55, random_state=2))


@pytest.fixture(scope="module")
def found(samples):
    defence = unlearnt()
    frames = judged(samples, defence, 0, names=TRIED)
    return *frames, defence.complete, defence.without


def test_people_enrol_and_have_other_sentences_and_others_texts(samples):
    people = list(people_of(samples))
    assert [person.user for person in people] == [0, 1, 2]
    for n, person in enumerate(people):
        own = samples[samples.users == n]
        assert person.enrolled.names == own.names[:5]
        assert person.others.names == own.names[5:]
        assert set(person.texts.users.tolist()) == {(n + 1) % 3}
        # Two texts of 100 keys need four sentences of 55.
        assert len(joined(person.texts, 100)) == 2
        assert len(person.texts) == 4
    assert list(people_of(samples[samples.numbers < 5])) == []


def test_of_many_people_some_are_attacked_and_all_are_judged(samples):
    assert [len(person.texts) > 0 for person in people_of(samples, 2)] == [True, False, True]
    forged, hands = judged(samples, unlearnt(), 0, 2, ["normal by pair"])
    assert set(forged["user"]) == {0, 2}
    assert set(hands["user"]) == {0, 1, 2}


def test_every_attack_is_judged_by_the_detector_without_its_family(found):
    forged, _, complete, detectors = found
    noticed = forged.groupby("attack")["noticed"].mean()
    assert noticed["averages by pair"] == 1.0
    assert noticed["histograms by context"] < 1.0
    assert (forged.loc[forged["attack"] == "averages by pair", "passed"] == 0).all()
    # Two texts, at two lengths, of three people, by what the attacker has: two of them with four others.
    assert detectors["averages"].seen == detectors["histograms"].seen == 2 * 2 * 3 * 2
    assert detectors["the model"].seen == 2 * 2 * 3
    assert complete.seen == 2 * 3 * 2


def test_shares_are_by_person_knowledge_and_length(found):
    forged, hands, _, _ = found
    assert set(forged["keys"]) == set(hands["keys"]) == {100, 40}
    assert (forged["tries"] == 2).all()
    assert (hands["tries"] == 2).all()
    assert set(forged.loc[forged["attack"] == PICKED, "knowledge"]) == {TEMPLATE}
    assert set(forged.loc[forged["attack"] == "averages by pair", "knowledge"]) == {"3 samples", ENROLLED}
    assert set(forged.loc[forged["attack"] == "robot, random delays", "knowledge"]) == {NOTHING, ENROLLED}
    assert not forged.duplicated(["user", "attack", "knowledge", "keys"]).any()
    assert (forged["passed"] <= np.minimum(forged["accepted"], 1 - forged["noticed"]) + 1e-12).all()
    stopped = hands["alarms"] + hands["bursts"]
    assert (hands["lost"] <= np.minimum(hands["accepted"], stopped) + 1e-12).all()
    # What a template draws is accepted more often than a robot.
    accepted = forged.groupby("attack")["accepted"].mean()
    assert accepted[PICKED] > accepted["robot, random delays"]


def test_what_comes_in_bursts_gets_through_no_more_than_it_is_called_forged(samples):
    defence = unlearnt()

    def unsure(samples, template):
        return [Typed("unsure", -1.0, 0.001, "bursts")] * len(samples)

    for detector in (defence.complete, *defence.without.values()):
        detector.judged = unsure
    forged, hands = judged(samples[samples.users < 2], defence, 0, names=["normal by pair"])
    assert (forged["noticed"] == 1).all()
    assert (forged["passed"] == 0).all()
    assert (hands["bursts"] == 1).all()
    assert (hands["alarms"] == 0).all()
    assert (hands["lost"] == hands["accepted"]).all()


def test_the_same_seed_forges_the_same(samples):
    few, names = samples[samples.users < 2], ["normal by pair"]
    one, same = (judged(few, unlearnt(), 7, names=names)[0] for _ in range(2))
    assert one.equals(same)
