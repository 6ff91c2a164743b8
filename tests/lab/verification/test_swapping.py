"""Sessions in which one person takes another's place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.lab.verification.swapping import swapped


def typed():
    rows = [
        ("ann", 0, "abcd", [0, 100, 250, 400]),
        ("bob", 5, "wxyz", [7, 60, 90, 200]),
        ("bob", 6, "qq", [0, 1]),
    ]
    return pd.DataFrame(
        [
            (user, session, key, press, press + 30.5)
            for user, session, keys, presses in rows
            for key, press in zip(keys, presses, strict=True)
        ],
        columns=["user", "session", "keyname", "timepress", "timerelease"],
    )


def test_the_second_person_goes_on_with_their_own_intervals():
    pairs = [(("ann", 0), ("bob", 5)), (("bob", 5), ("ann", 0))]
    found = swapped(typed(), pairs, 2)
    assert found["keyname"].tolist() == list("abyz") + list("wxcd")
    assert found["user"].tolist() == ["ann"] * 4 + ["bob"] * 4
    assert found["session"].tolist() == [0] * 4 + [1] * 4
    assert found["timepress"].tolist() == [0, 100, 130, 240, 7, 60, 210, 360]
    np.testing.assert_array_equal(found["timerelease"] - found["timepress"], 30.5)


@pytest.mark.parametrize(
    ("pair", "keys"),
    [
        ((("ann", 0), ("bob", 6)), 2),
        ((("ann", 0), ("bob", 5)), 0),
        ((("ann", 0), ("bob", 5)), 4),
        ((("ann", 1), ("bob", 5)), 2),
    ],
)
def test_samples_that_are_too_short_or_not_there(pair, keys):
    with pytest.raises(ValueError, match=f"more than {keys} keystrokes"):
        swapped(typed(), [pair], keys)
    with pytest.raises(ValueError, match="no pairs"):
        swapped(typed(), [], 2)
