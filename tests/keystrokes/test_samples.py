"""Samples whose parts do not belong together are refused when they are made."""

import dataclasses

import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes import Samples

SAMPLES = Samples.of(make_typists(2, 3))
WRONG = {
    "fewer names": ({"index": SAMPLES.index[:2]}, "2 samples in index, 6 in sequences and 6 in table"),
    "other sequences": ({"sequences": SAMPLES.sequences[:5]}, "6 samples in index, 5 in sequences"),
    "longer table": ({"table": SAMPLES.table.iloc[:1]}, "1 in table"),
    "one family": ({"emission": ("normal",)}, "emission names 1 families for 2 features"),
    "another index": ({"index": SAMPLES.index.set_names(["a", "b"])}, "index must be of user and session"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_parts_that_do_not_belong_together(kind):
    change, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SAMPLES, **change)


def test_some_of_the_samples_still_belong_together():
    assert len(SAMPLES[[4, 1]]) == len(SAMPLES[1:3]) == 2
