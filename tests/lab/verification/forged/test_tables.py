"""Tables of forged typing from a few rows, whose means are plain."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.lab.verification.forged.tables import (
    false_alarms_table,
    forgeries_panels,
    forgeries_table,
    forgeries_words,
)

FORGED = pd.DataFrame(
    [
        (user, attack, knowledge, keys, 2, accepted, noticed, accepted * (1 - noticed), "aalto")
        for attack, knowledge, rates in (
            ("averages by pair", "3 samples", ((0.5, 1.0), (1.0, 1.0))),
            ("drawn from the model", "the template", ((1.0, 0.0), (1.0, 0.5))),
        )
        for keys in (100, 40)
        for user, (accepted, noticed) in zip("ab", rates, strict=True)
    ],
    columns=[
        *("user", "attack", "knowledge", "keys", "tries", "accepted", "noticed", "passed", "dataset"),
    ],
)
HANDS = pd.DataFrame(
    {"user": list("abab"), "keys": [100, 100, 40, 40], "tries": 4, "alarms": [0.0, 0.25, 0.0, 0.0]}
).assign(accepted=1.0, bursts=0.0, lost=lambda frame: frame["alarms"], dataset="aalto")


def test_means_are_over_people_with_their_intervals():
    table = forgeries_table(FORGED, 0)
    rows = table.frame.set_index(["attack", "keys"])
    assert rows.loc[("averages by pair", 100), "accepted"] == 0.75
    assert rows.loc[("averages by pair", 100), "passed"] == 0.0
    drawn = rows.loc[("drawn from the model", 40)]
    assert (drawn["passed"], drawn["passed_low"], drawn["passed_high"]) == (0.75, 0.5, 1.0)
    assert (drawn["people"], drawn["tries"]) == (2, 4)
    # Both lengths of an attack stand in one line.
    assert len(table.shown) == 2
    assert table.shown.iloc[0, 3] == "75.0 % (50.0–100.0)"

    hands = false_alarms_table(HANDS, 0)
    assert hands.frame["alarms"].tolist() == [0.125, 0.0]
    assert hands.shown["Keys"].tolist() == ["100 or more", "40"]


def test_the_figure_shows_what_was_sent_whole():
    panels = forgeries_panels(forgeries_table(FORGED, 0).frame)
    assert set(panels["aalto"]) == {"3 samples", "enrolled samples or template"}
    drawn = panels["aalto"]["enrolled samples or template"]["drawn from the model"]
    assert drawn.numbers == pytest.approx((75.0, 50.0, 100.0))


def test_the_answer_names_the_worst_attack():
    words = forgeries_words(forgeries_table(FORGED, 0).frame, false_alarms_table(HANDS, 0).frame)
    assert "“drawn from the model” by an attacker who has the template" in words
    assert "75.0" in words
    assert "12.5" in words
