"""What recordings say about themselves, on recordings whose contents are known."""

from __future__ import annotations

import pandas as pd

from keydyn.datasets import make_typists, save_recordings
from keydyn.datasets.files.recordings import FileForm, read_recording
from keydyn.keystrokes import CleaningRules
from keydyn.lab.standard_report.recorded_facts import (
    left_out_rows,
    left_out_tables,
    noticed_table,
    recorded_facts,
    recorded_table,
)

DAY = 86_400_000


def read(frame, folder, rules=None):
    save_recordings(frame, folder / "typing.csv")
    return read_recording(folder / "typing.csv", FileForm(), rules)


def test_counts_of_people_samples_and_keys(tmp_path):
    frame = make_typists(3, 4, random_state=0)
    frame = frame[(frame["user"] > 0) | (frame["session"] < 2)].assign(layout="qwerty")
    facts = recorded_facts(read(frame, tmp_path))
    assert (facts["users"], facts["samples"], facts["keystrokes"]) == (3, 10, len(frame))
    assert facts["samples per user"] == {"least": 2.0, "median": 4.0, "most": 4.0}
    assert facts["further columns"] == ["layout"]
    assert facts["dates"] == {}
    shown = dict(recorded_table(facts).shown.to_numpy().tolist())
    assert shown["Samples of a person"] == "2 to 4, median 4"
    assert shown["Recorded (UTC)"] == "the times in the file do not say"


def test_dates_come_from_times_since_1970(tmp_path):
    """User 0 typed on 1 and 4 March 2026, user 1 on 2 March alone."""
    first = pd.Timestamp("2026-03-01", tz="UTC").timestamp() * 1000
    frame = make_typists(2, 2, random_state=0)
    shift = frame["user"] * DAY + frame["session"] * (frame["user"] == 0) * 3 * DAY
    frame[["timepress", "timerelease"]] = frame[["timepress", "timerelease"]].add(first + shift, axis=0)
    dates = recorded_facts(read(frame, tmp_path))["dates"]
    assert (dates["first"], dates["last"]) == ("2026-03-01", "2026-03-04")
    assert round(dates["days"]["most"]) == 3
    assert round(dates["days"]["least"]) == 0


def test_what_is_left_out_is_counted_by_user_and_reason(tmp_path):
    frame = make_typists(2, 2, random_state=0)
    again = frame[(frame["user"] == 1) & (frame["session"] == 0)].assign(session=2)
    recording = read(pd.concat([frame, again]), tmp_path, CleaningRules(duplicate_samples=True))
    failures = {
        "to acquire": [{"user": "0", "session": "1", "reason": "too short"}] * 2,
        "to enrol": [{"user": "1", "samples": "1", "reason": "1 usable sample"}],
    }
    rows = left_out_rows(recorded_facts(recording), failures)
    assert [(row["user"], row["what"], row["number"]) for row in rows] == [
        ("1", "keystrokes", len(again)),
        ("0", "samples", 2),
        ("1", "people", 1),
    ]
    by_reason, by_user = left_out_tables(rows)
    assert by_reason.frame["people"].tolist() == [1, 1, 1]
    assert by_user.frame.to_dict("records") == rows


def test_findings_have_a_share(tmp_path):
    frame = make_typists(2, 3, random_state=0)
    frame.loc[frame.index[:3], "timerelease"] = float("nan")
    table = noticed_table(recorded_facts(read(frame, tmp_path))).frame.set_index("finding")
    assert table.loc["keystrokes without a release", "number"] == 3
    assert table.loc["keystrokes without a release", "share"] == 3 / len(frame)
