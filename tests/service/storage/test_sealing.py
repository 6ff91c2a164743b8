"""Sealing: a value can be opened only with its key, at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.service.storage.sealing import DataKey, MasterKeys, SealError, wrapped_by

KEYS = st.binary(min_size=32, max_size=32)


@given(key=KEYS, contents=st.binary(max_size=2000), place=st.text(max_size=50))
def test_what_is_sealed_opens_to_itself(key, contents, place):
    sealed = DataKey(key).seal(contents, place)
    assert DataKey(key).open(sealed, place) == contents
    assert len(contents) < 16 or contents not in sealed


@given(contents=st.binary(max_size=100), data=st.data())
def test_a_changed_or_missing_byte_is_noticed(contents, data):
    key = DataKey.new()
    sealed = key.seal(contents, "here")
    where = data.draw(st.integers(0, len(sealed) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    for other in (sealed[:where], sealed[:where] + bytes([sealed[where] ^ bit]) + sealed[where + 1 :]):
        with pytest.raises(SealError):
            key.open(other, "here")


def test_another_place_or_key_opens_nothing():
    key = DataKey.new()
    sealed = key.seal(b"template", "profiles/a/template")
    with pytest.raises(SealError, match="profiles/b/template"):
        key.open(sealed, "profiles/b/template")
    with pytest.raises(SealError):
        DataKey.new().open(sealed, "profiles/a/template")


def test_the_same_contents_never_look_the_same():
    key = DataKey.new()
    assert len({key.seal(b"x", "here") for _ in range(100)}) == 100


def test_keys_are_not_shown():
    key = DataKey(b"K" * 32)
    assert "K" * 4 not in repr(key) + str(key) + repr(MasterKeys([b"K" * 32]))
    assert b"K" * 4 not in key.derived("anything")


@given(old=KEYS, new=KEYS, data_key=KEYS)
def test_all_master_keys_unwrap_and_the_newest_wraps(old, new, data_key):
    before, after = MasterKeys([old]), MasterKeys([new, old])
    wrapped = before.wrap(DataKey(data_key), "users/a")
    assert after.unwrap(wrapped, "users/a").key == data_key
    again = after.wrap(after.unwrap(wrapped, "users/a"), "users/a")
    assert wrapped_by(again) == MasterKeys([new]).current
    assert MasterKeys([new]).unwrap(again, "users/a").key == data_key
    with pytest.raises(SealError):
        after.unwrap(wrapped, "users/b")
    if old != new:
        with pytest.raises(SealError, match="was not given"):
            MasterKeys([new]).unwrap(wrapped, "users/a")


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_has_32_bytes(length):
    with pytest.raises(ValueError, match="32 bytes"):
        DataKey(bytes(length))
