"""Manifests from anywhere: what is not right is refused, in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.decisions.folder.manifest import Manifest, Member, PersonEntry, read_key
from tests.examples import examples

SHA = [f"{n:064x}" for n in range(8)]
PEOPLE = tuple(PersonEntry(user, 5, 60, SHA[n], SHA[3]) for n, user in enumerate(("ann", "bob", "é")))
COHORT = (Member("ann", SHA[0]), Member("zoe", SHA[4]))
MANIFEST = Manifest("pohmm", ("pressure",), "", COHORT, "", SHA[5], SHA[6], PEOPLE)


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


def test_files():
    """Somebody in the cohort may be enrolled too; the file is the same."""
    names = {f"{SHA[n]}.keydyn" for n in range(6)}
    assert MANIFEST.files == names | {f"{SHA[6]}.key"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_earlier_versions_are_refused_with_the_command_that_enrols_again(version):
    """Their thresholds accept strangers, and samples to find others from were not kept."""
    earlier = {"format": "keydyn-models", "version": version, "users": [{"user": "ann", "threshold": 0.5}]}
    for key in (None, b"k" * 16):
        with pytest.raises(ValueError, match=f"its version is {version}.* keydyn fit .* --replace"):
            read(earlier, key)


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
        (plain() | {"version": 5}, "its version is 5; this program reads 4"),
        (plain() | {"version": 4.0}, "its version is 4.0"),
        (plain() | {"version": True}, "its version is True"),
        (plain() | {"version": "4"}, "its version is '4'"),
        (plain() | {"version": [3]}, r"its version is \[3\]"),
        (plain() | {"more": 1}, "fields that are not known: .'more'"),
        (plain() | {"users": {}}, "users is {}, not a list"),
        (plain() | {"users": [1]}, r"users\[0\] is 1, not an object"),
        (plain() | {"cohort": None}, "cohort is None, not a list"),
        (plain() | {"cohort": [SHA[0]]}, r"cohort\[0\] is .*, not an object"),
        (plain() | {"cohort": [{"user": "ann"}]}, r"cohort\[0\] has no sha256"),
        (plain() | {"cohort": [vars(COHORT[0])] * 2}, "two of cohort have the name 'ann'"),
        (plain() | {"cohort": [vars(Member("ann", "../x"))]}, r"cohort\[0\].sha256 is '../x', not 64"),
        (plain() | {"population": SHA[0][1:]}, "population is '0.*not 64 hexadecimal digits"),
        (plain() | {"calibration": ""}, "calibration is '', not text"),
        (plain() | {"calibration": 5}, "calibration is 5, not text"),
        (plain() | {"secret": ""}, "secret is '', not text"),
        (plain() | {"sensors": "x"}, "sensors is 'x', not a list"),
        (plain() | {"sensors": [1]}, r"sensors\[0\] is 1, not text"),
        (plain() | {"detector": None}, "detector is None, not text"),
        (changed(keys=0), r"users\[0\].keys is 0, not a whole number of 1 or more"),
        (changed(keys=True), "keys is True"),
        (json.dumps(changed(keys=5)).replace('"keys": 5', '"keys": 1e999'), "keys is inf"),
        (json.dumps(changed(keys=5)).replace('"keys": 5', '"keys": Infinity'), "Infinity is not a number"),
        (changed(samples=0), "samples is 0, not a whole number of 1 or more"),
        (changed(samples=-3), "samples is -3"),
        (changed(samples=2.0), "samples is 2.0"),
        (changed(samples=HUGE), "samples is 9"),
        (changed(sha256="../elsewhere"), "not 64 hexadecimal digits"),
        (changed(sha256="a" * 64 + "\n"), "not 64 hexadecimal digits"),
        (changed(sha256=SHA[1]), "two of users have the template"),
        (changed(fingerprints="x"), "fingerprints is 'x', not 64 hexadecimal digits"),
        (changed(user="bob"), "two of users have the name 'bob'"),
        (changed(user=""), "user is '', not text"),
        (changed(user=None), "user is None, not text"),
        (changed(user="\ud800"), "not text"),
        (changed(threshold=0.5), "not known"),
        (without("sha256"), r"users\[0\] has no sha256"),
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


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data):
    """Never another error; and what is read is right: it can be written and read again."""
    manifest = plain()
    place = data.draw(st.sampled_from([manifest, *manifest["users"], *manifest["cohort"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    try:
        found = Manifest.from_text(json.dumps(manifest).encode())
    except ValueError:
        return
    assert all(person.samples > 0 and person.keys > 0 for person in found.people)
    assert Manifest.from_text(found.to_text().encode()) == found


def test_people_by_name():
    assert MANIFEST.person("bob") == PEOPLE[1]
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
        with pytest.raises(ValueError, match="holds no key: a key has 16 to 4,096 bytes"):
            read_key(key)
