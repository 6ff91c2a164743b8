"""Enrolment during other changes."""

from __future__ import annotations

import pytest

from keydyn.service.people import registry
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.recognition import enrolment
from keydyn.service.people.recognition.deciding import subject_of
from keydyn.service.problems import Problem
from keydyn.service.wire.both_ways import Text
from tests.service.people.conftest import typed_by


def test_a_sample_that_comes_during_a_reset_is_the_first_of_the_new_enrolment(context, write, monkeypatch):
    enrolment.add_sample(context, write, "ada", typed_by(0, 0))
    checked, resets = enrolment._checked, [lambda: registry.unblock(context, write, "ada", reset=True)]

    def meanwhile(*arguments):
        if resets:
            resets.pop()()
        return checked(*arguments)

    monkeypatch.setattr(enrolment, "_checked", meanwhile)
    added = enrolment.add_sample(context, write, "ada", typed_by(0, 1))
    assert (added.profile.samples, resets) == (1, [])


def test_a_person_with_too_few_samples_is_not_enrolled_and_is_told_how_many_there_are(context, write):
    for there in range(2):
        with pytest.raises(Problem) as caught:
            subject_of(context, TenantPlace(write.tenant, Text(), "keyboard"), "ada")
        found = caught.value
        assert (found.status, found.kind, found.more["samples"]) == (409, "not-enrolled", there)
        enrolment.add_sample(context, write, "ada", typed_by(0, there))
