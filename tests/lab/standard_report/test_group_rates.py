"""Groups of people by a column of the recordings: which there are, and which cannot be compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.evaluation import Scores
from keydyn.evaluation.rates.fairness import group_differences, group_rates
from keydyn.lab.standard_report.group_rates import groups_of, groups_section


def test_a_group_is_a_value_of_each_user():
    frame = make_typists(3, 2, random_state=0)
    frame = frame.assign(layout=np.where(frame["user"] < 1, "qwerty", "azerty"))
    frame["age"] = np.where(frame["user"] == 2, np.nan, 20.0 + frame["user"])
    assert groups_of(frame, ["layout", "age", "layout"]) == {
        "layout": {"0": "qwerty", "1": "azerty", "2": "azerty"},
        "age": {"0": 20.0, "1": 21.0},
    }
    assert groups_of(frame, []) == {}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("sex", "no column 'sex' to compare people by; there are mood, place, nothing"),
        ("keyname", "no column 'keyname'"),
        ("mood", r"by 'mood': user 0 has several values \(0, 1\)"),
        ("place", "by 'place': all have the same value"),
        ("nothing", "by 'nothing': all have the same value, or none"),
    ],
)
def test_columns_that_cannot_be_compared(column, words):
    frame = make_typists(2, 2, random_state=0)
    frame = frame.assign(mood=frame["session"], place="here", nothing=np.nan)
    with pytest.raises(ValueError, match=words):
        groups_of(frame, [column])


def test_without_further_columns_it_says_so():
    with pytest.raises(ValueError, match="it has no further columns"):
        groups_of(make_typists(2, 2, random_state=0), ["age"])


@pytest.fixture(scope="module")
def scores():
    """Twenty-two people; each query scores higher for its owner, by chance not always."""
    random = np.random.default_rng(0)
    users = np.array([str(n) for n in range(22)])
    owners = np.repeat(users, 3)
    raw = random.normal(size=(66, 22)) + 2.0 * (owners[:, None] == users)
    numbers = np.arange(66)
    return Scores(owners, numbers, np.zeros(66, int), users, raw, np.ones(raw.shape, bool), "none")


def test_small_groups_are_said_to_be_and_left_out_of_differences(scores):
    layout = dict(zip(scores.users, ["a"] * 10 + ["b"] * 10 + ["c"] * 2, strict=True))
    section = groups_section({("mine", "manhattan"): scores}, {"layout": layout})
    rates, differences = section.tables
    assert rates.shown["People"].tolist() == ["10", "10", "2: too few"]
    assert "layout c (2)" in section.paragraphs[1]
    table = group_rates(scores, layout)
    expected = group_differences(table[table["group"] != "c"])
    found = differences.frame.iloc[0]
    assert found["groups"] == 2
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_too_few_groups_have_no_differences(scores):
    layout = dict(zip(scores.users, ["a"] * 19 + ["b"] * 3, strict=True))
    differences = groups_section({("mine", "manhattan"): scores}, {"layout": layout}).tables[1]
    assert pd.isna(differences.frame["garbe"]).all()
    assert differences.shown["GARBE"].tolist() == ["–"]
