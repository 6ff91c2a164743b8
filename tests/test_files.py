"""Kinds of files: what is declared is what is read, and everything else is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import files
from keydyn.files import (
    Kind,
    ModelFileError,
    Tensor,
    many,
    matching,
    one_of,
    or_empty,
    record,
    whole,
)

FIELDS = {
    "name": files.text,
    "count": whole(1, 9),
    "share": files.number,
    "kind": one_of("a", "b"),
    "code": or_empty(matching("[0-9]{2}", "two digits")),
    "many": many(record({"open": files.truth})),
}
VALUES = {"name": "é", "count": 3, "share": 0.5, "kind": "a", "code": "07", "many": [{"open": True}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name is '', not text"),
        ({"name": "\ud800"}, "not text"),
        ({"count": 0}, "count is 0, not from 1 to 9"),
        ({"count": True}, "count is True"),
        ({"count": 2.0}, "count is 2.0"),
        ({"share": 1}, "share is 1, not a finite number"),
        ({"share": float("inf")}, "share is inf"),
        ({"kind": ["a"]}, r"kind is \['a'\], not one of a, b"),
        ({"code": "123"}, "code is '123', not two digits"),
        ({"code": "07\n"}, "not two digits"),
        ({"many": {}}, "many is {}, not a list"),
        ({"many": [{"open": True}, {"open": 1}]}, r"many\[1\].open is 1, not true or false"),
        ({"many": [{}]}, r"many\[0\] has no open"),
        ({"many": [{"open": True, "x": 1}]}, r"many\[0\] has fields that are not known: \['x'\]"),
        ({"more": 1}, "it has fields that are not known"),
    ],
)
def test_fields(change, message):
    assert record(FIELDS)("", VALUES) == VALUES
    with pytest.raises(ValueError, match=message):
        record(FIELDS)("", VALUES | change)


def test_fields_that_may_be_absent_or_empty():
    assert record(FIELDS, complete=False)("", {"count": 1}) == {"count": 1}
    assert record(FIELDS)("", VALUES | {"code": ""})["code"] == ""
    with pytest.raises(ValueError, match="it has no code, count, kind, many, share"):
        record(FIELDS)("", {"name": "x"})


DECLARED = {
    "start": Tensor(("M",), files.probabilities),
    "steps": Tensor(("P", "M", "M"), files.probabilities),
    "pairs": Tensor(("P", 2), files.within(0, 5), np.int64),
    "history": Tensor((None,), group="fit"),
    "floored": Tensor(("M",), files.unbounded, np.bool_, group="fit"),
}
ARRAYS = {
    "start": np.array([0.25, 0.75]),
    "steps": np.full((3, 2, 2), 0.5),
    "pairs": np.zeros((3, 2), dtype=np.int64),
    "history": np.arange(4.0),
    "floored": np.zeros(2, dtype=bool),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": np.array([0.5, 0.4])}, "start adds up to 0.9, not 1"),
        ({"start": np.array([1.5, -0.5])}, r"start\[1\] is -0.5"),
        ({"steps": np.full((3, 2, 2), np.nan)}, r"steps\[0, 0, 0\] is nan"),
        ({"steps": np.full((3, 3, 3), 1 / 3)}, r"steps must have shape \(3, 2, 2\), not \(3, 3, 3\)"),
        ({"pairs": np.zeros((2, 2), dtype=np.int64)}, r"pairs must have shape \(3, 2\)"),
        ({"pairs": np.full((3, 2), 6)}, "pairs has values that are not between 0 and 5"),
        ({"pairs": np.zeros((3, 2))}, "pairs has values of type float64, not int64"),
        ({"history": np.array([np.inf])}, "history has values that are not finite"),
        ({"history": np.zeros((2, 2))}, r"history must have shape \(any\)"),
        ({"other": np.zeros(1)}, "it has arrays that are not known: other"),
    ],
)
def test_arrays(change, message):
    files.check_tensors(ARRAYS, DECLARED)
    with pytest.raises(ValueError, match=message):
        files.check_tensors(ARRAYS | change, DECLARED)


@pytest.mark.parametrize("absent", [("start",), ("history",), ("floored",)])
def test_arrays_that_are_missing(absent):
    """Of a group all or none."""
    files.check_tensors({name: ARRAYS[name] for name in ("start", "steps", "pairs")}, DECLARED)
    with pytest.raises(ValueError, match=f"it has no {absent[0]}"):
        files.check_tensors({name: a for name, a in ARRAYS.items() if name not in absent}, DECLARED)


def test_a_kind_reads_its_own_files_only(monkeypatch):
    monkeypatch.setattr(files, "KINDS", {})
    one, other = (
        files.declared(Kind(name, FIELDS, lambda values: DECLARED, lambda values, arrays: (values, arrays)))
        for name in ("One", "Other")
    )
    contents = one.packed(VALUES, ARRAYS)
    values, arrays = one.parsed(contents, "x.keydyn")
    assert values == VALUES | {"class": "One"}
    np.testing.assert_array_equal(arrays["steps"], ARRAYS["steps"])
    assert files.parsed(contents, "x.keydyn")[0] == values
    with pytest.raises(ModelFileError, match="holds a One, not a Other"):
        other.parsed(contents, "x.keydyn")
    with pytest.raises(ModelFileError, match="is not a valid One: count is 0"):
        one.parsed(one.packed(VALUES | {"count": 0}, ARRAYS), "x.keydyn")
    for name in ("Third", None, ["One"]):
        with pytest.raises(ModelFileError, match="is not known"):
            files.parsed(one.packed(VALUES | {"class": name}, ARRAYS), "x.keydyn")
    damaged = bytearray(contents)
    damaged[-1] ^= 1
    with pytest.raises(ModelFileError, match="do not match its SHA-256"):
        one.parsed(bytes(damaged), "x.keydyn")
