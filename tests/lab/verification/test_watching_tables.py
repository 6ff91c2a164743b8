"""The table, the panels and the words of the ways to watch, on figures made up by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.lab.drawing.panels import intervals_figure
from keydyn.lab.verification.watching_measurements import FIGURES
from keydyn.lab.verification.watching_tables import DRAWN, watching_panels, watching_table, watching_words


def row(way, rate, delay, dataset="essay", target=1.0, **more):
    """All figures are 0.1, with intervals of 0.05 to 0.2, apart from those that are named."""
    values = dict.fromkeys(FIGURES, 0.1) | {"lockouts_per_hour": rate, "change_mean": delay, **more}
    ends = {f"{name}_{end}": by * value for name, value in values.items() for end, by in ENDS.items()}
    labels = {"dataset": dataset, "target_per_hour": target, "way": way}
    return labels | values | ends | {"keys_after_change": 250, "genuine_hours": 12.96}


ENDS = {"low": 0.5, "high": 2.0}


@pytest.fixture
def frame():
    return pd.DataFrame(
        [
            row("slow", 0.5, 100.0, change_median=np.inf),
            row("quick", 1.6, 40.0),
            row("close", 1.0, 60.0),
            row("quick", 2.0, 30.0, "fable", 4.0) | {"genuine_hours": 2.0, "keys_after_change": 50},
        ]
    )


def test_the_table_marks_the_soonest_of_each_rate(frame):
    table = watching_table(frame)
    assert "Open set" in table.note
    assert "Essay: 250; Fable: 50" in table.note
    mean = "After a change: mean keys"
    assert table.shown[mean].tolist() == ["100 (50–200)", "40 (20–80)", "60 (30–120)", "30 (15–60)"]
    assert table.shown["After a change: median keys"].tolist()[0] == "∞ (∞–∞)"
    assert table.shown["After a change: never noticed, %"].tolist()[0] == "10.0 (5.0–20.0)"
    assert table.bold is not None
    assert table.bold[mean].tolist() == [False, True, False, True]
    assert table.bold.to_numpy().sum() == 2


def test_the_figures_show_what_the_frame_has(frame):
    for name, (_, label, _) in DRAWN.items():
        intervals_figure(watching_panels(frame, name), label)
    panels = watching_panels(frame, "watching_unnoticed")
    assert list(panels) == ["Essay, 1 lock-out per hour", "Fable, 4 lock-outs per hour"]
    drawn = panels["Essay, 1 lock-out per hour"]["after a change"]["quick"]
    assert (drawn.value, drawn.low, drawn.high) == pytest.approx((10.0, 5.0, 20.0))
    delay = watching_panels(frame, "watching_delay")["Fable, 4 lock-outs per hour"]
    assert delay["after a change"]["quick"].value == 30.0


def test_the_words_name_the_soonest_and_what_was_measured(frame):
    assert watching_words(frame) == [
        "Essay, 1 lock-out per hour: quick notices a change of person soonest, after 40 (20–80) keys on "
        "average and a median of 0 (0–0); in 10.0 (5.0–20.0) % of sessions, 250 keys are not enough. The "
        "other ways need on average: close 60 (30–120), slow 100 (50–200). The interval of its mean overlaps "
        "that of close and slow.",
        "Fable, 4 lock-outs per hour: quick notices a change of person soonest, after 30 (15–60) keys on "
        "average and a median of 0 (0–0); in 10.0 (5.0–20.0) % of sessions, 50 keys are not enough.",
        "These rates are targets, which are not met exactly: measured false lock-outs are 0.5 to 1.6 times "
        "the target, and above it in 1 of 4 cases. The limits rest on few lock-outs, in 13.0 (Essay) and 2.0 "
        "(Fable) hours of genuine typing. The range of settings of each way was found by trial on these "
        "recordings; only the choice within the range is made on other people.",
    ]
