"""Pairing: nothing is lost or made up, in any order of events."""

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from keydyn.keystrokes.pairing import events_of, pair_events
from keydyn.keystrokes.schema import COLUMNS, check_keystrokes
from tests.examples import examples

DISORDER = 1000


def frame(rows, **columns):
    """Events from (time, type, key) rows."""
    return pd.DataFrame(rows, columns=["time", "type", "key"]).assign(**columns)


def paired(rows, unit="ms", **settings):
    """(keyname, timepress, timerelease or None) of each keystroke, and the counts."""
    keystrokes, report = pair_events(frame(rows), unit, **settings)
    return as_rows(keystrokes), report.counts


def as_rows(keystrokes):
    columns = keystrokes[["keyname", "timepress", "timerelease"]].itertuples(index=False, name=None)
    return [(key, press, None if np.isnan(release) else release) for key, press, release in columns]


def pair_plainly(events):
    """The rules again, with lists and dictionaries: keystrokes of each part of one sample, and counts."""
    parts, latest = [], None
    counts = dict.fromkeys(
        ["repeats", "unmatched_releases", "lost_to_focus", "pressed_again", "backward_times", "clock_jumps"],
        0,
    )
    for event in events:
        if latest is None or latest - event["time"] > DISORDER:
            counts["clock_jumps"] += latest is not None
            parts.append([])
            latest = event["time"]
        counts["backward_times"] += event["time"] < latest
        latest = max(latest, event["time"])
        parts[-1].append(event)
    results = []
    for part in parts:
        keystrokes, held = [], {}
        for event in sorted(part, key=lambda event: event["time"]):
            key = event["key"]
            if event["type"] == "blur":
                counts["lost_to_focus"] += len(held)
                held = {}
            elif event["type"] == "release":
                if key in held:
                    keystrokes[held.pop(key)][2] = event["time"]
                else:
                    counts["unmatched_releases"] += 1
            elif event["type"] == "press":
                flag = event.get("repeat")
                if flag or (flag is None and key in held):
                    counts["repeats"] += 1
                else:
                    counts["pressed_again"] += key in held
                    held[key] = len(keystrokes)
                    keystrokes.append([key, event["time"], None])
        results.append([tuple(keystroke) for keystroke in keystrokes])
    return results, counts


KINDS = st.sampled_from(["press"] * 5 + ["release"] * 5 + ["blur", "focus", "paste"])
STEPS = st.one_of(
    st.integers(0, 300), st.just(0), st.integers(-900, 0), st.sampled_from([-1001, -1000, 60_000])
)


@st.composite
def raw_samples(draw):
    """Events of several users' samples, each in its own order, with the samples interleaved."""
    flagged = draw(st.booleans())
    events = []
    for user in range(draw(st.integers(1, 3))):
        time = draw(st.integers(-(10**6), 10**6))
        for _ in range(draw(st.integers(1, 30))):
            time += draw(STEPS)
            event = {"user": user, "session": 0, "time": time, "type": draw(KINDS)}
            event["key"] = draw(st.sampled_from("abc"))
            if flagged:
                event["repeat"] = draw(st.sampled_from([True, False, False]))
            events.append(event)
    mixed = sorted(range(len(events)), key=lambda n: (draw(st.integers(0, 3)), n))
    # Mixing must not change the order within a sample.
    queues = {user: iter(list(group)) for user, group in groupby(events, key=lambda event: event["user"])}
    return [next(queues[events[n]["user"]]) for n in mixed]


# No deadline: the first example waits for the compiler.
@settings(deadline=None, max_examples=examples(200))
@given(raw_samples())
def test_as_a_dictionary_would_and_nothing_lost(events):
    wanted, counts = {}, {}
    for user in sorted({event["user"] for event in events}):
        parts, found = pair_plainly([event for event in events if event["user"] == user])
        # Further parts of sample 0 are samples 1, 2, ...
        wanted |= {(user, session): part for session, part in enumerate(parts)}
        counts = {kind: counts.get(kind, 0) + number for kind, number in found.items()}
    if not any(wanted.values()):
        with pytest.raises(ValueError, match="there is no keystroke"):
            pair_events(pd.DataFrame(events))
        return
    keystrokes, report = pair_events(pd.DataFrame(events), relative=False, disorder=DISORDER)
    check_keystrokes(keystrokes)
    have = {sample: as_rows(rows) for sample, rows in keystrokes.groupby(["user", "session"])}
    assert have == {sample: part for sample, part in wanted.items() if part}
    assert {kind: report.counts[kind] for kind in counts} == counts

    total = report.counts
    kinds = [event["type"] for event in events]
    assert total["events"] == len(events)
    assert total["presses"] == kinds.count("press") == len(keystrokes) + total["repeats"]
    matched = len(keystrokes) - total["missing_releases"]
    assert total["releases"] == kinds.count("release") == matched + total["unmatched_releases"]
    assert total["missing_releases"] == keystrokes["timerelease"].isna().sum()
    assert total["missing_releases"] >= total["lost_to_focus"] + total["pressed_again"]
    assert (total["pastes"], total["focus_losses"]) == (kinds.count("paste"), kinds.count("blur"))
    assert (report.samples["session"] - report.samples["recorded_session"] > 0).sum() == total["clock_jumps"]


@st.composite
def keystroke_frames(draw):
    """Keystrokes in which no key is pressed again before its own release; some releases are missing."""
    rows = []
    for user in range(draw(st.integers(1, 3))):
        press, free = 0, {}
        for _ in range(draw(st.integers(1, 20))):
            press += draw(st.integers(0, 150))
            key = draw(st.sampled_from("abcd"))
            press = max(press, free.get(key, 0))
            hold = draw(st.one_of(st.none(), st.integers(0, 400)))
            free[key] = press + (hold or 0)
            rows.append((user, 7, key, press, None if hold is None else press + hold, draw(st.floats(0, 1))))
        start = next(row[3] for row in rows if row[0] == user)
        rows = [(*r[:3], r[3] - start, r[4] and r[4] - start, r[5]) if r[0] == user else r for r in rows]
    return pd.DataFrame(rows, columns=[*COLUMNS, "pressure"])


@settings(deadline=None)
@given(keystroke_frames())
def test_round_trip(keystrokes):
    keystrokes = check_keystrokes(keystrokes)
    again, report = pair_events(events_of(keystrokes))
    assert_frame_equal(again, keystrokes)
    assert report.counts["overlaps"] == sum(
        release > after and same
        for release, after, same in zip(
            keystrokes["timerelease"],
            keystrokes["timepress"].shift(-1),
            keystrokes["user"] == keystrokes["user"].shift(-1),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ["keypad", "mobile", "fable"])
def test_round_trip_of_real_recordings(recordings, name):
    keystrokes = check_keystrokes(pd.read_csv(recordings / f"{name}.csv", dtype={"keyname": "str"}))
    again, _ = pair_events(events_of(keystrokes), shortcuts=True)
    assert_frame_equal(again, keystrokes)


def test_rollover_is_kept():
    rows = [(0, "keydown", "KeyT"), (90, "keydown", "KeyH"), (110, "keyup", "KeyT"), (170, "keyup", "KeyH")]
    keystrokes, counts = paired(rows)
    assert keystrokes == [("KeyT", 0, 110), ("KeyH", 90, 170)]
    assert (counts["overlaps"], counts["missing_releases"], counts["repeats"]) == (1, 0, 0)


def test_auto_repeat_is_one_keystroke():
    rows = [(0, "down", "x"), (500, "down", "x"), (530, "down", "x"), (545, "up", "x"), (700, "down", "x")]
    keystrokes, counts = paired(rows)
    assert keystrokes == [("x", 0, 545), ("x", 700, None)]
    assert (counts["repeats"], counts["missing_releases"]) == (2, 1)


def test_the_flag_tells_a_repeat_from_a_release_that_was_missed():
    rows = [(0, "press", "x"), (500, "press", "x"), (530, "press", "x"), (560, "release", "x")]
    keystrokes, report = pair_events(frame(rows, repeat=[False, True, False, None]))
    assert as_rows(keystrokes) == [("x", 0, None), ("x", 530, 560)]
    assert (report.counts["repeats"], report.counts["pressed_again"]) == (1, 1)


def test_focus_loss_ends_what_is_held():
    rows = [(0, "press", "a"), (20, "press", "b"), (50, "release", "b"), (60, "blur", None)]
    rows += [(900, "focus", None), (950, "release", "a"), (1000, "press", "a"), (1080, "release", "a")]
    keystrokes, counts = paired(rows)
    assert keystrokes == [("a", 0, None), ("b", 20, 50), ("a", 1000, 1080)]
    assert (counts["lost_to_focus"], counts["unmatched_releases"], counts["focus_losses"]) == (1, 1, 1)


def test_late_events_are_put_in_order_and_equal_times_keep_theirs():
    rows = [(0, "press", "a"), (200, "press", "b"), (100, "release", "a"), (300, "release", "b")]
    rows += [(300, "press", "c"), (300, "release", "c")]
    keystrokes, counts = paired(rows)
    assert keystrokes == [("a", 0, 100), ("b", 200, 300), ("c", 300, 300)]
    assert (counts["backward_times"], counts["equal_times"], counts["zero_durations"]) == (1, 2, 1)


def test_a_clock_set_back_begins_a_new_sample():
    rows = [(10_000, "press", "a"), (10_100, "press", "b"), (10_150, "release", "a")]
    rows += [(2_000, "release", "b"), (2_300, "press", "c"), (2_380, "release", "c")]
    events = frame(rows, user="u", session=4)
    other = frame([(0, "press", "a"), (70, "release", "a")], user="u", session=9)
    keystrokes, report = pair_events(pd.concat([events, other]))
    assert list(keystrokes["session"]) == [4, 4, 10, 9]
    assert as_rows(keystrokes) == [("a", 0, 150), ("b", 100, None), ("c", 0, 80), ("a", 0, 70)]
    assert report.samples[["session", "recorded_session"]].to_numpy().tolist() == [[4, 4], [10, 4], [9, 9]]
    assert (report.counts["clock_jumps"], report.counts["unmatched_releases"]) == (1, 1)
    # Sessions that are not numbers get a name.
    named, _ = pair_events(events.assign(session="monday"))
    assert list(named["session"]) == ["monday", "monday", "monday part 2"]


def test_a_pause_is_no_error():
    keystrokes, counts = paired([(0, "press", "a"), (50, "release", "a"), (3_600_000, "press", "b")])
    assert keystrokes == [("a", 0, 50), ("b", 3_600_000, None)]
    assert (counts["pauses"], counts["clock_jumps"]) == (1, 0)


@pytest.mark.parametrize(("unit", "scale"), [("s", 1e-3), ("ms", 1), ("us", 10**3), ("ns", 10**6)])
def test_units(unit, scale):
    keystrokes, _ = paired([(t * scale, k, "a") for t, k in [(250, "press"), (330, "release")]], unit)
    ((_, press, release),) = keystrokes
    assert press == 0
    assert release == pytest.approx(80, rel=1e-12)  # seconds are fractions, and rounded


def test_nanoseconds_since_1970_lose_nothing():
    # As floats such times are exact to 256 ns only.
    start = 1_700_000_000_000_000_001
    keystrokes, _ = paired([(start, "press", "a"), (start + 80_000_001, "release", "a")], "ns")
    assert keystrokes == [("a", 0, 80.000001)]


def test_names_and_features_come_from_the_press():
    rows = [(5, "press", "KeyA"), (60, "release", "KeyA"), (90, "press", "KeyB"), (99, "release", "KeyB")]
    events = frame(rows, keyname=["a", None, None, "b"], pressure=[0.5, 9, 0.25, 9], note="x")
    keystrokes, _ = pair_events(events, relative=False)
    assert list(keystrokes.columns) == [*COLUMNS, "pressure"]
    assert as_rows(keystrokes) == [("a", 5, 60), ("KeyB", 90, 99)]
    assert list(keystrokes["pressure"]) == [0.5, 0.25]
    assert (keystrokes[["user", "session"]] == 0).all(axis=None)


def test_keys_without_a_name_are_dropped_and_counted():
    rows = [(0, "press", ""), (10, "press", "a"), (20, "press", "Unidentified"), (30, "release", "")]
    keystrokes, counts = paired([*rows, (40, "release", None), (50, "release", "a")])
    assert keystrokes == [("a", 10 - 10, 40)]
    assert (counts["unidentified_presses"], counts["unidentified_releases"]) == (2, 2)


GOOD = [(0, "press", "a"), (80, "release", "a")]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (frame(GOOD).drop(columns="key"), "no column 'key'"),
        (frame([]), "no events"),
        (frame([(0, "press", "a"), (None, "release", "a")]), "row 1: time is missing"),
        (frame([(0, "press", "a"), ("soon", "release", "a")]), "row 1: time is not a number"),
        (frame([(0, "press", "a"), (np.inf, "release", "a")]), "row 1: time is infinite"),
        (frame([(0, "press", "a"), (9, "click", "a")]), "row 1: type is 'click'"),
        (frame([(0, "press", "a"), (9, None, "a")]), "row 1: type is"),
        (frame(GOOD, user=[1, None]), "row 1: user is missing"),
        (frame(GOOD, repeat=["perhaps", None]), "row 0: repeat is neither"),
        (frame(GOOD, timepress=0), "these are keystrokes"),
        (frame(GOOD, time=pd.to_datetime([0, 1])), "time must be a number"),
        (frame([(0, "release", "a")]), "there is no keystroke"),
    ],
)
def test_bad_input(events, message):
    with pytest.raises(ValueError, match=message):
        pair_events(events)


def test_bad_settings():
    with pytest.raises(ValueError, match="the unit must be s, ms, us or ns"):
        pair_events(frame(GOOD), "minutes")
    with pytest.raises(ValueError, match="disorder must be"):
        pair_events(frame(GOOD), disorder=float("nan"))


def test_a_million_events():
    """Half a million keystrokes of 100 samples, each overlapping the next, come back complete."""
    count = 500_000
    row = np.arange(count)
    keystrokes = pd.DataFrame({"user": row // 50_000, "session": row // 5_000 % 10, "keyname": row % 7})
    keystrokes["timepress"] = row % 5_000 * 100.0
    keystrokes["timerelease"] = keystrokes["timepress"] + 130
    events = events_of(keystrokes)
    assert len(events) == 2 * count
    again, report = pair_events(events)
    assert_frame_equal(again, check_keystrokes(keystrokes))
    assert report.counts["overlaps"] == count - 100


def test_numbers_of_keys_are_not_fractions():
    """A gap in a column of scan codes makes them floats."""
    events = frame([(0, "press", 30), (50, "release", 30), (60, "blur", None)], keyname=[65, None, None])
    assert pair_events(events.drop(columns="keyname"))[0]["keyname"].tolist() == ["30"]
    assert pair_events(events)[0]["keyname"].tolist() == ["65"]


def test_a_small_type_of_sessions_does_not_run_over():
    rows = [(5000, "press", "a"), (0, "press", "b")]
    keystrokes, report = pair_events(frame(rows, user="u", session=np.uint8(255)))
    assert keystrokes["session"].tolist() == [255, 256]
    assert report.samples["session"].tolist() == [255, 256]


LOG = {"time": [0, 50, 100, 180], "type": ["press", "release"] * 2, "key": ["a", "a", "b", "b"]}
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
HOSTILE = {
    "the ends of 64 bits": ({"time": [LEAST, LEAST + 50, MOST - 50, MOST]}, "row 0: time is beyond ±2⁶²"),
    "one end": ({"time": [0, 50, 100, MOST]}, "row 3: time is beyond"),
    "unsigned": ({"time": np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64)}, "row 3: time is beyond"),
    "large floats": ({"time": [-1.7e308, 0.0, 1.0, 1.7e308]}, "row 0: time is beyond"),
    "too many digits": ({"time": [0, 1, 2, 10**400]}, "row 3: time is not a number"),
    "complex": ({"time": np.array([0, 1, 2, 3j])}, "time must be a number; the column is of type complex128"),
    "one complex": ({"time": [0, 1, 2, 3j]}, "time must be a number|row 3: time is not a number"),
    "complex among objects": (
        {"time": np.array([0, 1, "2", 3j], dtype=object)},
        "row 3: time is not a number",
    ),
    "list as time": ({"time": [0, 1, [2], 3]}, "row 2: time is not a number"),
    "list as type": ({"type": ["press", [], "press", "release"]}, r"row 1: type cannot be \[\]"),
    "dict as key": ({"key": ["a", "a", {}, "b"]}, r"row 2: key cannot be \{\}"),
    "set as name": ({"keyname": ["a", "a", {1}, "b"]}, r"row 2: keyname cannot be \{1\}"),
    "list as user": ({"user": [1, 1, [1], 1]}, r"row 2: user cannot be \[1\]"),
    "complex session": ({"session": np.full(4, 1j)}, "column 'session' holds complex numbers"),
    "list as flag": ({"repeat": [0, 0, [], 0]}, r"row 2: repeat cannot be \[\]"),
    "complex feature": ({"pressure": np.full(4, 1j)}, "column 'pressure' holds complex numbers"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_logs(kind):
    change, message = HOSTILE[kind]
    for relative in (True, False):
        with pytest.raises(ValueError, match=message):
            pair_events(pd.DataFrame(LOG | change), relative=relative)


@pytest.mark.parametrize("column", LOG)
def test_a_column_that_is_there_twice(column):
    events = pd.DataFrame(LOG)
    with pytest.raises(ValueError, match=f"more than one column is called '{column}'"):
        pair_events(pd.concat([events, events[[column]]], axis=1))


@pytest.mark.parametrize("events", [None, 5, {}, [1], "log", np.zeros((2, 3))])
def test_what_is_no_data_frame(events):
    with pytest.raises(ValueError, match="a data frame is needed, not a"):
        pair_events(events)
    with pytest.raises(ValueError, match="a data frame is needed, not a"):
        check_keystrokes(events)


def test_times_up_to_the_bound_are_exact():
    times = np.array([2**62 - 180, 2**62 - 130, 2**62 - 80, 2**62])
    keystrokes, report = pair_events(pd.DataFrame(LOG | {"time": times}), "ns")
    assert (keystrokes[["timepress", "timerelease"]] * 1e6).round(6).to_numpy().tolist() == [
        [0, 50],
        [100, 180],
    ]
    assert report.counts["clock_jumps"] == 0
