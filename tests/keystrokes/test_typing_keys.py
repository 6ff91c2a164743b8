"""The rule for which keystrokes are typing, applied to keystrokes and to raw events."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.keystrokes import CleaningRules, clean, events_of, pair_events, quality_of
from keydyn.keystrokes.typing_keys import not_typing

NAN = np.nan
# Key, press, release, and what it is: t(yping), s(hortcut) or n(avigation).
TYPED = [
    ("shift", 0, 220, "t"),
    ("h", 100, 180, "t"),
    ("ctrl", 300, 600, "s"),
    ("c", 400, 470, "s"),  # copied
    ("v", 610, 700, "t"),
    ("left", 800, 860, "n"),
    ("backspace", 900, 950, "t"),
    ("delete", 1000, 1050, "t"),
    ("enter", 1100, 1150, "t"),
    ("space", 1200, 1260, "t"),
    ("caps_lock", 1300, 1360, "t"),
    ("altgr", 1400, 1600, "t"),  # writes a character
    ("q", 1500, 1580, "t"),
    ("ctrl", 1700, 1900, "s"),  # Windows' other half of AltGr, which nobody pressed
    ("altgr", 1701, 1900, "t"),
    ("e", 1800, 1860, "t"),
    ("windows", 2000, NAN, "s"),  # the window was left: how long it was held is not known
    ("a", 2100, 2160, "t"),
    ("alt", 2200, 2500, "s"),
    ("tab", 2300, 2350, "s"),
    ("f5", 2600, 2650, "n"),
    ("tab", 2700, 2750, "n"),
    ("b", 2800, 2860, "t"),
]


def typed(names=lambda name: name):
    keys, press, release, _ = zip(*TYPED, strict=True)
    frame = pd.DataFrame({"user": "ann", "session": 0, "keyname": [names(key) for key in keys]})
    return frame.assign(timepress=np.array(press, dtype=float), timerelease=np.array(release, dtype=float))


def kinds(keystrokes):
    shortcuts, navigation = not_typing(keystrokes)
    return ["s" if s else "n" if n else "t" for s, n in zip(shortcuts, navigation, strict=True)]


KINDS = [kind for *_, kind in TYPED]
X11 = {"ctrl": "Control_L", "altgr": "ISO_Level3_Shift", "alt": "Alt_L", "windows": "Super_L", "left": "Left"}


@pytest.mark.parametrize("names", [lambda name: name, lambda name: X11.get(name, name)])
def test_what_is_typing(names):
    assert kinds(typed(names)) == KINDS


def test_a_key_held_in_one_sample_is_not_held_in_the_next():
    frame = typed().head(4).assign(session=[0, 0, 0, 1])
    assert kinds(frame) == ["t", "t", "s", "t"]


def test_pairing_leaves_out_what_is_no_typing_and_counts_it():
    events = events_of(typed())
    keystrokes, report = pair_events(events)
    expected = typed()[[kind == "t" for kind in KINDS]]
    assert keystrokes["keyname"].tolist() == expected["keyname"].tolist()
    assert keystrokes["timepress"].tolist() == expected["timepress"].tolist()
    assert (report.counts["shortcut_presses"], report.counts["navigation_presses"]) == (6, 3)
    assert (report.counts["shortcuts"], report.counts["navigation"]) == (0, 0)
    assert "6" in str(report)
    everything, report = pair_events(events, shortcuts=True)
    assert everything["keyname"].tolist() == typed()["keyname"].tolist()
    assert (report.counts["shortcut_presses"], report.counts["shortcuts"]) == (0, 6)


def test_times_are_counted_from_the_first_key_that_types():
    events = events_of(typed().iloc[2:].reset_index(drop=True))
    keystrokes, _ = pair_events(events)
    assert keystrokes.iloc[0][["keyname", "timepress", "timerelease"]].tolist() == ["v", 0.0, 90.0]


def test_events_without_any_typing():
    with pytest.raises(ValueError, match="no press of an identified key that types"):
        pair_events(events_of(typed().iloc[2:4]))


def test_cleaning_and_the_quality_report_go_by_the_same_rule():
    counts = quality_of(typed()).counts
    assert (counts["shortcuts"], counts["navigation"]) == (KINDS.count("s"), KINDS.count("n"))
    cleaned, report = clean(typed(), CleaningRules(shortcuts=True))
    assert report.counts == {"shortcuts": 9}
    assert kinds(cleaned) == ["t"] * KINDS.count("t")
