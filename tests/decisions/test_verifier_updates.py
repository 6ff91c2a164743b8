"""Updates through the verifier: confident accepts only, within bounds, undone, and kept in the folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier
from keydyn.decisions.enrolled import BOUND
from keydyn.detectors import make_detector
from keydyn.keystrokes.one_sample import recorded_samples

TYPISTS = recorded_samples(make_typists(14, 8, text="free", n_keys=90, random_state=3))


def of(user: int, *sessions: int):
    return TYPISTS[(TYPISTS.users == user) & np.isin(TYPISTS.numbers, sessions)]


@pytest.fixture
def verifier() -> Verifier:
    verifier = Verifier.shipped()
    verifier.enrol("ada", of(0, 0, 1, 2, 3))
    verifier.enrol("ben", of(1, 0, 1, 2, 3))
    return verifier


def test_only_a_confident_accept_moves_the_template(verifier):
    before = verifier.person("ada")
    assert not verifier.update("ada", of(5, 4)).accepted
    assert verifier.person("ada") is before
    decision = verifier.update("ada", of(0, 4), confident=1e-9)
    assert decision.accepted
    assert verifier.person("ada") is before
    verifier.update("ada", of(0, 4), confident=0.5)
    after = verifier.person("ada")
    assert after.enrolment is before.template
    assert after.previous is before.template
    assert (after.template.template_.mean != before.template.template_.mean).any()


@pytest.mark.parametrize(("rate", "follows"), [(0.001, True), (0.00101, False)])
def test_confident_is_a_false_match_in_a_thousand_unless_said(verifier, monkeypatch, rate, follows):
    before, decision = verifier.person("ada"), verifier.verify("ada", of(0, 4))
    stated = replace(decision, false_match_rate=rate)
    assert (verifier.updated("ada", of(0, 4), stated) is not None) == follows
    monkeypatch.setattr(verifier, "verify", lambda user, typed: stated)
    assert verifier.update("ada", of(0, 4)) is stated
    assert (verifier.person("ada") is not before) == follows


def test_however_many_follow_it_stays_near_its_enrolment_and_can_be_undone(verifier):
    enrolled = verifier.person("ada").template.template_
    for session in (4, 5, 6, 7):
        verifier.update("ada", of(0, session), confident=0.5)
    now = verifier.person("ada")
    away = np.abs(now.template.template_.mean - enrolled.mean) / enrolled.scale
    assert 0 < away.max() <= BOUND * (1 + 1e-12)
    assert now.enrolment is not None
    assert now.enrolment.template_ is enrolled
    # It rises from nothing, and is less than what no update passes.
    assert 0 < now.drift < 1
    assert now.drift > replace(now, template=now.previous).drift
    assert verifier.person("ben").drift == 0
    assert replace(now, template=now.enrolment).drift == 0
    verifier.undo("ada")
    assert verifier.person("ada").template is now.previous
    with pytest.raises(ValueError, match="no update to undo"):
        verifier.undo("ada")


def test_a_copy_of_the_sample_that_updated_is_recognised(verifier):
    verifier.update("ada", of(0, 4), confident=0.5)
    again = verifier.verify("ada", of(0, 4))
    assert again.answer == "reject"
    assert "a copy" in again.reasons[0]


def test_copies_that_come_at_once_update_once(verifier):
    barrier = Barrier(6)

    def update(_: int) -> str:
        barrier.wait()
        return verifier.update("ada", of(0, 4), confident=0.5).answer

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(update, range(6)))
    assert sorted(answers) == ["accept"] + ["reject"] * 5
    person = verifier.person("ada")
    assert person.previous is person.enrolment
    assert len(person.fingerprints) == 5


def test_updates_are_kept_in_the_folder(verifier, tmp_path):
    verifier.update("ada", of(0, 4), confident=0.5)
    verifier.save(tmp_path)
    loaded = Verifier.load(tmp_path)
    for name in ("template", "enrolment", "previous"):
        here, there = (getattr(one.person("ada"), name).template_ for one in (verifier, loaded))
        np.testing.assert_array_equal(here.mean, there.mean)
    assert loaded.person("ben").enrolment is None
    loaded.undo("ada")
    assert loaded.verify("ada", of(0, 5)).llr == pytest.approx(
        _before(verifier).verify("ada", of(0, 5)).llr, rel=1e-12
    )


def _before(verifier: Verifier) -> Verifier:
    verifier.undo("ada")
    return verifier


def test_whoever_leaves_leaves_the_cohort_too():
    verifier = Verifier.learn(TYPISTS, make_detector("pohmm-recommended"), at=Targets(0.05))
    verifier.enrol("0", of(0, 0, 1, 2, 3))
    verifier.enrol("1", of(1, 0, 1, 2, 3))
    assert verifier.background.place("0") >= 0
    verifier.remove("0")
    assert verifier.background.place("0") == -1
    assert len(verifier.background.cohort) == 13
    with pytest.raises(ValueError, match="cannot be updated"):
        verifier.person("1").updated(of(1, 4))
