"""Values are printed on one short line, and nothing that matters is lost without a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from keydyn.short_repr import short, short_repr


class Pair(NamedTuple):
    user: str
    rate: float


@dataclass
class Value:
    name: str
    hidden: int = field(default=3, repr=False)

    __repr__ = short_repr


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.123456, "0.1235"),
        (np.float64(2.0), "2"),
        ("why it was refused, in a sentence that says so and is longer than sixty", None),
        ("ab" * 40, "'abababababab'…"),
        (np.zeros((30, 2)), "<30 × 2 ndarray>"),
        (np.array([1.23456, 2.0]), "array([1.235, 2])"),
        (pd.DataFrame({"a": [1, 2]}), "<2 × 1 DataFrame>"),
        ((1,), "(1,)"),
        ((), "()"),
        ({"loc": [0.11111]}, "{'loc': [0.1111]}"),
        (Pair("ada", 0.01234), "Pair(user='ada', rate=0.01234)"),
        (Value("ada"), "Value(name='ada')"),
    ],
)
def test_written(value: Any, written: str | None) -> None:
    assert short(value) == (repr(value) if written is None else written)


def test_what_does_not_fit_is_counted() -> None:
    text = short(list(range(1000)))
    shown = text.count(",")
    assert len(text) < 100
    assert text.endswith(f"… {1000 - shown} more]")
    assert short(tuple("x" * 59 for _ in range(3))) == f"({'x' * 59!r}, … 2 more)"
