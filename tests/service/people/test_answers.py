"""Numbers of decisions in the forms that JSON allows."""

from __future__ import annotations

import math

import pytest

from keydyn.service.people.recognition.deciding import LARGEST_LLR, finite


@pytest.mark.parametrize(
    ("llr", "answered"), [(1.5, 1.5), (0.0, 0.0), (math.inf, LARGEST_LLR), (-math.inf, -LARGEST_LLR)]
)
def test_ratios_are_answered_as_they_are_unless_they_are_infinite(llr: float, answered: float) -> None:
    assert finite(llr) == answered
