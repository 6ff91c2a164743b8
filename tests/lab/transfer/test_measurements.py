"""People who are likely known twice have the numbers that claims have."""

from __future__ import annotations

import pandas as pd

from keydyn.datasets import make_typists
from keydyn.lab.transfer import measurements
from keydyn.lab.transfer.claims import split
from keydyn.lab.transfer.places import Place


def test_pairs_have_the_numbers_of_the_claims(monkeypatch):
    typing = make_typists(6, 3, "free", 30, first_user=40)
    place = Place("aalto", typing, typing, {})
    pairs = pd.DataFrame({"user": [41, 45], "other": [44, 40], "alike": 9.0, "minutes": 2.0})
    monkeypatch.setattr(measurements, "find_twice", lambda typed: pairs if typed is place.tried else None)
    found = measurements.repeats_of(place)
    assert found[["one", "other"]].values.tolist() == [[1, 4], [5, 0]]
    assert found["dataset"].tolist() == ["aalto"] * 2
    asked = split(place.samples, 1)
    assert asked.ask.users[asked.typist == 4].tolist() == [44] * 2


def test_nobody_twice_is_no_pair(monkeypatch):
    typing = make_typists(3, 2, "free", 30)
    monkeypatch.setattr(measurements, "find_twice", lambda typed: pd.DataFrame([], columns=["user", "other"]))
    assert len(measurements.repeats_of(Place("aalto", typing, typing, {}))) == 0
