"""Compiled functions that are called without a look at the types of their arguments."""

import numba
import numpy as np
import pytest

from keydyn.arrays import Direct, Floats, without_counting


@without_counting
def add(rows: Floats, weight: float, total: Floats) -> bool:
    """Add the weighted rows to the total; False if there are none."""
    for n in range(len(rows)):
        for f in range(rows.shape[1]):
            total[f] += weight * rows[n, f]
    return len(rows) > 0


def test_a_direct_call_does_what_the_function_does() -> None:
    called, rows = Direct(add), np.arange(6.0).reshape(2, 3)
    for weight in (1.0, 0.5):
        total, expected = np.zeros(3), np.zeros(3)
        assert called(rows, weight, total) is add(rows, weight, expected) is True
        assert np.array_equal(total, expected)
    assert called(rows[:0], 1.0, total) is False


def test_other_types_than_the_first_are_refused_in_tests() -> None:
    called, rows, total = Direct(add), np.arange(6.0).reshape(2, 3), np.zeros(3)
    called(rows, 1.0, total)
    for other in (np.asfortranarray(rows), rows[:, ::2], rows.astype(np.int64), rows[0]):
        with pytest.raises(TypeError, match="add was called with other types"):
            called(other, 1.0, total)
    assert total.tolist() == [3.0, 5.0, 7.0]


def test_without_the_compiler_the_function_itself_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    called, total = Direct(lambda rows, total: total.__iadd__(rows)), np.zeros(2)
    called(np.ones(2), total)
    assert total.tolist() == [1.0, 1.0]
