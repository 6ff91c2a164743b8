"""People and backgrounds as bytes: what comes back decides as before, and other bytes are refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn import files
from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.folder.enrolled_bytes import (
    BACKGROUND,
    PERSON,
    background_bytes,
    background_of,
    enrolled_of,
    template_bytes,
)
from keydyn.decisions.liveness.copies import Fingerprints, fingerprints_bytes, fingerprints_of
from keydyn.detectors import PopulationDetector, make_detector
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.population import PopulationModel
from tests.decisions import typed_samples
from tests.examples import examples

SECRET = bytes(range(32))
TYPISTS = recorded_samples(make_typists(4, 7, text="free", n_keys=60, random_state=5))


def of(user, *sessions):
    return TYPISTS[(TYPISTS.users == user) & np.isin(TYPISTS.numbers, sessions)]


@cache
def verifier():
    """One who has been updated twice, and one who has not."""
    verifier = Verifier.of(shipped_background(), secret=SECRET)
    verifier.enrol("ada", of(0, 0, 1, 2))
    verifier.enrol("ben", of(1, 0, 1, 2))
    for session in (3, 4):
        assert verifier.update("ada", of(0, session), confident=0.9).accepted
    return verifier


@cache
def stored():
    """The bytes of somebody who has been updated."""
    return template_bytes(verifier().person("ada"))


@cache
def other_population():
    return PopulationModel().fit(TYPISTS)


@pytest.mark.parametrize("user", ["ada", "ben"])
def test_who_comes_back_is_the_same_person(user):
    one = verifier().person(user)
    again = enrolled_of(
        template_bytes(one),
        shipped_background().pattern,
        fingerprints_of(fingerprints_bytes(one.fingerprints)),
    )
    assert (again.samples, again.keys) == (one.samples, one.keys)
    for name in ("template", "enrolment", "previous"):
        here, there = getattr(one, name), getattr(again, name)
        assert (here is None) == (there is None)
        for values in ("mean", "scale", "slopes", "gain") if here is not None else ():
            np.testing.assert_array_equal(getattr(here.template_, values), getattr(there.template_, values))
    elsewhere = Verifier.of(shipped_background(), secret=SECRET, people={user: again})
    for sample in (of(0, 5), of(1, 6), of(0, 4), of(2, 0)):
        assert elsewhere.verify(user, sample) == verifier().verify(user, sample)


def test_an_enrolment_is_kept_as_what_has_moved_and_earlier_files_are_read():
    one = replace(verifier().person("ada"), previous=None)
    header, tensors = _parts(template_bytes(one))
    assert tensors.keys() == {"template", "moved_from"}
    whole = np.frombuffer(one.enrolment.packed_template(), dtype=np.uint8)
    earlier = files.packed(header, {"template": tensors["template"], "enrolment": whole})
    assert len(template_bytes(one)) < 0.8 * len(earlier)
    here, before = (
        enrolled_of(each, shipped_background().pattern, Fingerprints.none())
        for each in (template_bytes(one), earlier)
    )
    for name, values in vars(before.enrolment.template_).items():
        np.testing.assert_array_equal(vars(here.enrolment.template_)[name], values)
    assert here.drift == before.drift == one.drift > 0.0
    changed = one.enrolment.carrying(replace(one.enrolment.template_, n_events=7))
    assert "enrolment" in _parts(template_bytes(replace(one, enrolment=changed)))[1]


@pytest.mark.parametrize("means", [b"12345678", b"1234567", b""])
def test_means_of_another_enrolment_are_refused(means):
    header, tensors = _parts(stored())
    tensors["moved_from"] = np.frombuffer(means, dtype=np.uint8)
    with pytest.raises(ValueError, match=r"means of the enrolment|multiple of element size"):
        enrolled_of(files.packed(header, tensors), shipped_background().pattern, Fingerprints.none())


def test_any_detector_that_stores_templates_will_do():
    background = typed_samples.background()
    verifier = Verifier.of(background)
    verifier.enrol("ann", typed_samples.typed(users=("ann",)))
    one = verifier.person("ann")
    again = enrolled_of(template_bytes(one), background.pattern, one.fingerprints)
    sample = recorded_samples(typed_samples.typed(7, users=("ann",), n_samples=1))
    assert Verifier.of(background, secret=verifier.secret, people={"ann": again}).verify(
        "ann", sample
    ) == verifier.verify("ann", sample)
    with pytest.raises(ValueError, match="of the detector 'pohmm', not of population"):
        enrolled_of(template_bytes(one), shipped_background().pattern, one.fingerprints)
    with pytest.raises(ValueError, match="pohmm has no population"):
        background_bytes(background)


def test_somebody_of_another_population_is_refused():
    with pytest.raises(ValueError, match="belongs to another population"):
        enrolled_of(stored(), PopulationDetector(population=other_population()), Fingerprints.none())


def test_a_background_comes_back_without_its_cohort():
    known = replace(shipped_background(), cohort=(), members=())
    members = {name: verifier().person(name).template for name in ("ada", "ben")}
    beside = known.with_cohort(members)
    assert (beside.cohort, beside.members) == (tuple(members.values()), ("ada", "ben"))
    assert known.cohort == ()
    assert known.with_cohort({"ada": members["ada"]}).cohort == ()
    again = background_of(background_bytes(beside))
    assert again.cohort == ()
    assert again.sha256 == beside.sha256 == known.sha256
    scores = known.scores(members, TYPISTS)
    assert not np.array_equal(beside.scores(members, TYPISTS), scores)
    people = {
        name: enrolled_of(template_bytes(verifier().person(name)), again.pattern, Fingerprints.none())
        for name in members
    }
    np.testing.assert_array_equal(
        again.scores({name: one.template for name, one in people.items()}, TYPISTS), scores
    )


def test_what_a_background_is_recognised_by():
    known = shipped_background()
    other = replace(known, pattern=PopulationDetector(population=other_population()))
    stricter = replace(known, calibrations=known.calibrations.moved(1.0, 0.0))
    beside = known.with_cohort({name: verifier().person(name).template for name in ("ada", "ben")})
    # Templates depend on the population alone, sessions that are watched together on everything.
    assert known.sha256 == stricter.sha256 == beside.sha256 == known.population.sha256 != other.sha256
    assert len({one.identity for one in (known, other, stricter, beside)}) == 4
    unnamed = replace(known, calibrations=replace(known.calibrations, population=""))
    assert (unnamed.sha256, unnamed.identity) == (known.sha256, known.identity)
    assert background_of(background_bytes(unnamed)).sha256 == known.sha256


def test_the_calibration_of_another_population_is_refused():
    header, tensors = _parts(background_bytes(shipped_background()))
    tensors["population"] = np.frombuffer(other_population().packed(), dtype=np.uint8)
    with pytest.raises(ValueError, match="that of another population"):
        background_of(files.packed(header, tensors))


def test_a_sample_of_sixty_keys_takes_less_than_a_kilobyte():
    known = Fingerprints.of(of(0, 0), SECRET)
    assert of(0, 0).sequences.n_events == 60
    assert len(fingerprints_bytes(known)) < 1000


def test_fingerprints_of_single_samples_are_joined_in_order():
    each = [Fingerprints.of(TYPISTS[[n]], SECRET) for n in range(len(TYPISTS))]
    rows = [fingerprints_of(fingerprints_bytes(one)) for one in each]
    joined, whole = Fingerprints.joined(rows), Fingerprints.of(TYPISTS, SECRET)
    np.testing.assert_array_equal(joined.hashes, whole.hashes)
    np.testing.assert_array_equal(joined.offsets, whole.offsets)
    nobody = Fingerprints.joined([])
    assert len(nobody) == len(fingerprints_of(fingerprints_bytes(nobody))) == 0


def test_nobody_is_enrolled_by_asking_what_would_be_kept():
    here = Verifier.of(shipped_background(), secret=SECRET)
    one = here.enrolled(of(0, 0, 1, 2))
    assert here.users == []
    here.enrol("ada", of(0, 0, 1, 2))
    np.testing.assert_array_equal(one.template.template_.mean, here.person("ada").template.template_.mean)
    np.testing.assert_array_equal(one.fingerprints.hashes, here.person("ada").fingerprints.hashes)
    assert (one.samples, one.keys) == (3, 180)


def test_what_an_update_would_keep_is_what_it_keeps():
    here = Verifier.of(shipped_background(), secret=SECRET, people={"ada": verifier().person("ben")})
    before, sample = here.person("ada"), of(1, 3)
    decision = here.verify("ada", sample)
    assert decision.accepted
    assert here.updated("ada", sample, decision, confident=decision.false_match_rate / 2) is None
    assert here.updated("ada", sample, replace(decision, answer="unsure"), confident=0.9) is None
    after = here.updated("ada", sample, decision, confident=0.9)
    assert here.person("ada") is before
    here.update("ada", sample, confident=0.9)
    kept = here.person("ada")
    np.testing.assert_array_equal(after.template.template_.mean, kept.template.template_.mean)
    np.testing.assert_array_equal(after.fingerprints.hashes, kept.fingerprints.hashes)
    assert len(kept.fingerprints) == len(before.fingerprints) + 1


def _parts(contents):
    from tests.fuzz.fuzzed_models import unpacked

    return unpacked(contents)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("samples", wrong) for wrong in (0, -1, True)),
        *(("keys", wrong) for wrong in (0, 2**60, 1.5)),
        ("detector", None),
    ],
)
def test_counts_that_cannot_be_are_refused(field, value):
    header, tensors = _parts(stored())
    with pytest.raises(ValueError, match=field):
        enrolled_of(
            files.packed(header | {field: value}, tensors),
            shipped_background().pattern,
            Fingerprints.none(),
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda header, tensors: tensors.pop("template"),
        lambda header, tensors: tensors.update(more=tensors["template"]),
        lambda header, tensors: tensors.update(previous=tensors["template"].astype(np.float64)),
        lambda header, tensors: tensors.update(previous=tensors["template"][:-1]),
        lambda header, tensors: tensors.update(enrolment=np.frombuffer(stored(), dtype=np.uint8)),
        lambda header, tensors: header.update(more=1),
        lambda header, tensors: header.update({"class": BACKGROUND.name}),
        lambda header, tensors: header.update({"class": "Calibration"}),
    ],
)
def test_parts_that_do_not_belong_are_refused(change):
    header, tensors = _parts(stored())
    assert header["class"] == PERSON.name
    change(header, tensors)
    with pytest.raises(ValueError, match=r"what is stored|the previous|the enrolment"):
        enrolled_of(files.packed(header, tensors), shipped_background().pattern, Fingerprints.none())


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_bytes_that_were_changed_are_refused(data):
    """The checksums find every change; whatever it is, it is a `ValueError`."""
    contents, read = data.draw(
        st.sampled_from(
            [
                (
                    stored(),
                    lambda found: enrolled_of(found, shipped_background().pattern, Fingerprints.none()),
                ),
                (background_bytes(shipped_background()), background_of),
                (fingerprints_bytes(Fingerprints.of(of(0, 0, 1), SECRET)), fingerprints_of),
            ]
        )
    )
    place = data.draw(st.integers(0, len(contents) - 1))
    changed = data.draw(
        st.one_of(
            st.just(contents[:place]),
            st.just(contents[place:]),
            st.integers(1, 255).map(
                lambda bits: contents[:place] + bytes([contents[place] ^ bits]) + contents[place + 1 :]
            ),
            st.binary(max_size=100),
        )
    )
    if changed != contents:
        with pytest.raises(ValueError, match=r"what is stored|fingerprints"):
            read(changed)


def test_a_detector_whose_templates_cannot_be_stored_says_so():
    with pytest.raises(ValueError, match="cannot be stored"):
        make_detector("manhattan").packed_template()
