"""The intervals of each user, and independent random streams."""

from __future__ import annotations

import numpy as np

from keydyn.lab.frame.user_intervals import intervals_by_user, stream


def test_the_intervals_are_all_but_the_first(keystrokes):
    by_user = intervals_by_user(keystrokes)
    assert list(by_user) == list(keystrokes["user"].unique())
    for user, sequences in by_user.items():
        own = keystrokes[keystrokes["user"] == user]
        expected = np.concatenate([np.diff(sample["timepress"]) for _, sample in own.groupby("session")])
        np.testing.assert_allclose(sequences.X[:, 0], expected)
        keys = np.concatenate([sample["keyname"][1:] for _, sample in own.groupby("session")])
        np.testing.assert_array_equal(sequences.labels(), keys)
        np.testing.assert_array_equal(sequences.lengths, own.groupby("session").size() - 1)


def test_streams_are_apart():
    a, b, c = stream(0, "x", 1), stream(0, "x", 2), stream(1, "x", 1)
    assert len({float(g.random()) for g in (a, b, c, stream(0, "x", 1))}) == 3
