"""How typing changes, on recordings whose change is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.protocols.protocol import LeaveOneOut, MonacoTappert
from keydyn.evaluation.scores import Scores
from keydyn.keystrokes import Samples
from keydyn.lab.population.changed_typing import (
    typing_changes,
    worst_of,
    worst_table,
    worst_users,
    worst_words,
)
from tests.population.simulated import people

PROTOCOL = MonacoTappert((0, 20), (20, 60))


@pytest.fixture(scope="module")
def keystrokes():
    return people(n_people=4, n_samples=60, text="abcdefgh", tempo=1e-9)


def changed(keystrokes, user, sessions, holds=1.0, intervals=1.0):
    typed = keystrokes.copy()
    hold = typed["timerelease"] - typed["timepress"]
    which = ((typed["user"] == user) & typed["session"].isin(sessions)).to_numpy()
    typed.loc[which, "timepress"] *= intervals
    typed["timerelease"] = typed["timepress"] + hold * np.where(which, holds, 1.0)
    return typed


def test_what_was_changed_is_found_where_it_was_changed(keystrokes):
    before, after = (
        typing_changes(Samples.of(typed), PROTOCOL).set_index(["user", "part"])
        for typed in (keystrokes, changed(keystrokes, 2, range(40, 50), holds=1.5, intervals=0.8))
    )
    found = after.loc[("2", 3)] / before.loc[("2", 3)]
    # Times are multiplied and so are their medians.
    assert found["hold"] == pytest.approx(1.5)
    assert found["interval"] == pytest.approx(0.8)
    assert after.loc[("2", 3), "change"] > 2 * before.loc[("2", 3), "change"]
    others = before.index.drop([("2", 3)])
    pd.testing.assert_frame_equal(before.loc[others], after.loc[others])


def test_a_change_in_units_of_the_usual_spread_by_hand(keystrokes):
    samples = Samples.of(keystrokes)
    found = typing_changes(samples, PROTOCOL)
    times = np.log(samples.sequences.X.reshape(4, 60, 8, 2))
    times[:, :, 0, list(samples.sequences.feature_names).index("tau")] = np.nan
    flat = times.reshape(4, 60, 16)
    flat = flat[:, :, ~np.isnan(flat).any(axis=(0, 1))]
    centre = np.median(flat[:, :20], axis=1)
    spread = 1.4826 * np.median(np.abs(flat[:, :20] - centre[:, None]), axis=1)
    usual = np.median(spread, axis=0)
    for part in range(4):
        later = np.median(flat[:, 20 + 10 * part : 30 + 10 * part], axis=1)
        change = np.sqrt(np.mean(((later - centre) / usual) ** 2, axis=1))
        np.testing.assert_allclose(found.loc[found["part"] == part + 1, "change"], change)
    apart = np.sqrt(np.mean(((centre[:, None] - centre[None]) / usual) ** 2, axis=2))
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_allclose(found.groupby("user", sort=False)["nearest"].first(), apart.min(axis=1))


def test_without_later_samples_there_is_nothing_to_say(keystrokes):
    assert len(typing_changes(Samples.of(keystrokes), LeaveOneOut())) == 0


def test_the_worst_are_named_with_whom_they_were_taken_for(keystrokes):
    changes = typing_changes(Samples.of(keystrokes), PROTOCOL).assign(dataset="own")
    names = ["0", "1", "2", "3"]
    figures = {"acc": [1.0, 0.9, 0.2, 0.8], "eer": [0.0, 0.1, 0.3, 0.1]}
    users = {
        "own": {
            metric: {"population": pd.Series(values, names), "pohmm": 0.5 * pd.Series(values, names)}
            for metric, values in figures.items()
        }
    }
    owners = np.repeat(np.array(names), 4)
    raw = np.where(owners[:, None] == np.array(names), 1.0, 0.0)
    raw[8:11, 1] = 2.0
    scores = Scores(owners, np.tile(np.arange(4), 4), np.zeros(16, int), np.array(names), raw, raw > -1)
    table = worst_users(users, {"own": scores}, changes, "own")
    assert table.index.tolist() == ["2", "3", "1", "0"]
    assert worst_of(table).index.tolist() == ["2"]
    assert table.loc["2", "taken_for"] == "1"
    assert table.loc["2", "taken_share"] == 0.75
    assert table.loc["0", "taken_for"] == ""
    largest = changes.groupby("user")["change"].max()
    np.testing.assert_array_equal(table["change"], largest.loc[table.index])
    shown = worst_table(table, "own", ["pohmm", "population"]).shown
    assert shown["Mostly taken for"].tolist() == ["1 (75%)"]
    assert "the worst tenth of all users are 2." in worst_words(table, "own")
    assert "a lower equal error rate than the POHMM for 0 of the worst 1." in worst_words(table, "own")
