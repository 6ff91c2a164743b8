"""Manifests from anywhere: what is not right is refused, in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.enrolment import Manifest, Person, read_key

SHA = [f"{n:064x}" for n in range(3)]
PEOPLE = tuple(
    Person(user, 5, 0.5, 12.0, n, 3, SHA[n], f"{SHA[n]}.keydyn") for n, user in enumerate(("ann", "bob", "é"))
)
MANIFEST = Manifest("pohmm", ("pressure",), PEOPLE, 3)
VERSION_1 = {
    "format": "keydyn-models",
    "version": 1,
    "keydyn": "0.1.0",
    "detector": "pohmm",
    "sensors": [],
    "users": [
        {"user": user, "file": f"user-{n:06d}.keydyn", "samples": 4, "threshold": 0.5, "penalty": None}
        for n, user in enumerate(["ann", 7])
    ],
}


def plain():
    return json.loads(MANIFEST.to_text())


def changed(**changes):
    """The manifest with another first entry."""
    manifest = plain()
    manifest["users"][0] |= changes
    return manifest


def without(name):
    manifest = plain()
    del manifest["users"][0][name]
    return manifest


def read(manifest, key=None):
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    return Manifest.from_text(text.encode(), key)


def test_a_round_trip():
    assert read(MANIFEST.to_text()) == MANIFEST
    assert read(MANIFEST.to_text(b"key"), b"key") == MANIFEST


def test_version_1():
    manifest = read(VERSION_1)
    assert [person.user for person in manifest.people] == ["ann", "7"]
    assert manifest.cohort(manifest.person("7")) == ["ann"]
    assert manifest.person("ann").threshold == 0.5


HUGE = int("9" * 400)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("", "Expecting value"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format":' * 100_000, "nested too deeply"),
        ('{"users": ' + "9" * 5000 + "}", "limit"),
        ('{"users": NaN}', "NaN is not a number"),
        ({}, "its format is None"),
        (plain() | {"format": "other"}, "its format is 'other'"),
        (plain() | {"version": 3}, "its version is 3"),
        (plain() | {"version": True}, "its version is True"),
        (plain() | {"version": "2"}, "its version is '2'"),
        (plain() | {"version": [2]}, r"its version is \[2\]"),
        (plain() | {"more": 1}, "fields that are not known: .'more'"),
        (plain() | {"users": {}}, "not a list of objects"),
        (plain() | {"users": [1]}, "not a list of objects"),
        (plain() | {"sensors": "x"}, "sensors is 'x', not a list"),
        (plain() | {"sensors": [1]}, "sensors is 1, not text"),
        (plain() | {"detector": None}, "detector is None, not text"),
        (plain() | {"next_number": 2}, "do not rise"),
        (plain() | {"next_number": HUGE}, "next_number is 9.*not a whole number"),
        (changed(threshold=-1), r"users\[0\]: threshold is -1, not a number from 0 to 1"),
        (changed(threshold=1.0001), "threshold is 1.0001"),
        (changed(threshold="0.0"), "threshold is '0.0'"),
        (changed(threshold=True), "threshold is True"),
        (changed(threshold=HUGE), "threshold is 9"),
        (changed(threshold=[]), r"threshold is \[\]"),
        (json.dumps(changed(threshold=0.25)).replace("0.25", "1e999"), "threshold is inf"),
        (json.dumps(changed(threshold=0.25)).replace("0.25", "Infinity"), "Infinity is not a number"),
        (changed(penalty=-0.5), "penalty is -0.5"),
        (changed(penalty=HUGE), "penalty is 9"),
        (changed(samples=0), "samples is 0, not a whole number of 1 or more"),
        (changed(samples=-3), "samples is -3"),
        (changed(samples=2.0), "samples is 2.0"),
        (changed(samples=HUGE), "samples is 9"),
        (changed(number=-1), "number is -1"),
        (changed(number=1), "numbers of the users do not rise"),
        (changed(number=3), "do not rise"),
        (changed(cohort=0), "do not rise"),
        (changed(cohort=4), "do not rise"),
        (changed(sha256="../elsewhere"), "not 64 hexadecimal digits"),
        (changed(sha256=SHA[0].upper() + "\n"), "not 64 hexadecimal digits"),
        (changed(sha256=SHA[1]), "two users have the model"),
        (changed(user="bob"), "two users have the name 'bob'"),
        (changed(user=""), "user is '', not text"),
        (changed(user=None), "user is None, not text"),
        (changed(user="\ud800"), "not text"),
        (changed(file="x"), "not known"),
        (without("sha256"), "it has no sha256"),
        (VERSION_1 | {"users": [VERSION_1["users"][0] | {"file": "../user-000000.keydyn"}]}, "no model file"),
        (VERSION_1 | {"users": [VERSION_1["users"][0] | {"file": "/dev/zero"}]}, "no model file"),
        (VERSION_1 | {"users": [VERSION_1["users"][0]] * 2}, "two users have the name 'ann'"),
        (
            VERSION_1 | {"users": [VERSION_1["users"][0], VERSION_1["users"][0] | {"user": "bob"}]},
            "two users have the model 'user-000000.keydyn'",
        ),
        (VERSION_1 | {"users": [VERSION_1["users"][0] | {"user": HUGE}]}, "user is 9.*not text"),
        (VERSION_1 | {"users": [VERSION_1["users"][0] | {"user": True}]}, "user is True, not text"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_refused(manifest, message):
    with pytest.raises(ValueError, match=message):
        read(manifest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data):
    """Never another error; and what is read is right: it can be written and read again."""
    manifest = data.draw(st.sampled_from([plain(), json.loads(json.dumps(VERSION_1))]))
    place = data.draw(st.sampled_from([manifest, *manifest["users"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    try:
        found = Manifest.from_text(json.dumps(manifest).encode())
    except ValueError:
        return
    assert all(person.threshold is None or 0 <= person.threshold <= 1 for person in found.people)
    if manifest["version"] == 2:
        assert Manifest.from_text(found.to_text().encode()) == found


def test_people_by_name():
    assert MANIFEST.cohort(MANIFEST.person("bob")) == ["ann", "é"]
    assert [person.user for person in MANIFEST.without({"bob"}).people] == ["ann", "é"]
    with pytest.raises(ValueError, match="user 'zoe' is not enrolled; enrolled are ann, bob, é"):
        MANIFEST.without({"bob", "zoe"})


def test_a_code_depends_on_every_byte_of_the_key(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef\n")
    assert read_key(key) == b"0123456789abcdef\n"
    with pytest.raises(ValueError, match="altered, or written with another key"):
        read(MANIFEST.to_text(read_key(key)), b"0123456789abcdef")
    (tmp_path / "link").symlink_to(key)
    assert read_key(tmp_path / "link") == read_key(key)
    for wrong in (b"short", bytes(5000)):
        key.write_bytes(wrong)
        with pytest.raises(ValueError, match="holds no key: 16 to 4,096 bytes"):
            read_key(key)
