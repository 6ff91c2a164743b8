"""Samples: parts that do not belong together are refused."""

import dataclasses

import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes import Samples

SAMPLES = Samples.of(make_typists(2, 3))
WRONG = {
    "fewer names": ({"names": SAMPLES.names[:2]}, "2 samples in index, 6 in sequences and 6 in table"),
    "other sequences": ({"sequences": SAMPLES.sequences[:5]}, "6 samples in index, 5 in sequences"),
    "longer table": ({"feature_table": SAMPLES.table.iloc[:1]}, "1 in table"),
    "one family": ({"emission": ("normal",)}, "emission names 1 families for 2 features"),
    "another index": ({"names": SAMPLES.index.set_names(["a", "b"])}, "index must be of user and session"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_parts_that_do_not_belong_together(kind):
    change, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SAMPLES, **change)


def test_some_of_the_samples_still_belong_together():
    assert len(SAMPLES[[4, 1]]) == len(SAMPLES[1:3]) == 2


FRAME = make_typists(1, 1)
HOSTILE = {
    "a column twice": (pd.concat([FRAME, FRAME[["user"]]], axis=1), "more than one column is called 'user'"),
    "a list as user": (FRAME.assign(user=[[1]] * len(FRAME)), r"line 0: user cannot be \[1\]"),
    "complex": (FRAME.assign(timepress=FRAME["timepress"] * 1j), "timepress must be a number; .* complex128"),
    "a date": (FRAME.assign(timepress=pd.Timestamp(0)), "timepress must be a number; .* datetime64"),
    "too large": (FRAME.assign(timerelease=1e300), "line 0: timerelease is beyond ±2⁶² ms"),
    "too many digits": (FRAME.assign(timerelease=10**400), "line 0: timerelease is not a number"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_keystrokes(kind):
    frame, message = HOSTILE[kind]
    with pytest.raises(ValueError, match=message):
        Samples.of(frame)
