"""The data and models of the studies of fit."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import HMM, POHMM
from keydyn.lab.frame.chosen import chosen_rows, chosen_texts
from keydyn.lab.frame.study_data import intervals_by_user, pattern, stream


@pytest.mark.parametrize("here", [chosen_rows, chosen_texts])
def test_a_folder_without_recordings(here, tmp_path, monkeypatch):
    """One that was named is an error; where none was named, simulated typists are used."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        here(data=tmp_path / "nowhere")
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path))
    found, messages = here()
    assert [one.name for one in found] == ["simulated"]
    assert "simulated typists are used" in messages[-1]


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


def test_patterns():
    assert pattern("hmm", "published").density_floor == 1e-5
    assert type(pattern("hmm", "recommended")) is HMM
    assert type(pattern("pohmm", "recommended", n_states=3)) is POHMM
    assert pattern("pohmm", "recommended", n_states=3).n_states == 3
    with pytest.raises(ValueError, match="models are hmm, pohmm"):
        pattern("svm", "published")
