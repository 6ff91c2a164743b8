"""The quality report on made-up recordings with each finding, and on real recordings.

The expected findings in real recordings were counted independently when these were collected.
"""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.keystrokes.cleaning import CleaningRules, clean
from keydyn.keystrokes.clock import NEAR, SYSTEM_TICK, on_grid
from keydyn.keystrokes.pairing import pair_events
from keydyn.keystrokes.quality import quality_of
from keydyn.keystrokes.schema import COLUMNS
from tests.examples import examples

NAMES = ["password", "keypad", "mobile", "fable", "essay"]


def keystrokes(*rows):
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.fixture(scope="module")
def real(recordings):
    """The five datasets in the schema."""
    frames = {n: pd.read_csv(recordings / f"{n}.csv", dtype={"keyname": "str"}) for n in NAMES[1:]}
    rows = pd.read_csv(recordings / "password.csv.gz")
    holds = [column for column in rows if column.startswith("H.")]
    press = 1000 * rows[[column for column in rows if column.startswith("DD.")]].cumsum(axis=1).to_numpy()
    press = np.hstack([np.zeros((len(rows), 1)), press])
    frames["password"] = pd.DataFrame(
        {
            "user": rows["subject"].repeat(11).to_numpy(),
            "session": np.repeat(50 * rows["sessionIndex"].to_numpy() + rows["rep"].to_numpy() - 51, 11),
            "keyname": [hold[2:] for hold in holds] * len(rows),
            "timepress": press.ravel(),
            "timerelease": (press + 1000 * rows[holds].to_numpy()).ravel(),
        }
    )
    return frames


@pytest.fixture(scope="module")
def reports(real):
    return {name: quality_of(frame) for name, frame in real.items()}


# Shares are given to the digits printed, so they agree to half of the last one.
def test_overlaps(reports):
    for name, percent, half in [
        ("password", 10.8, 0.05),
        ("keypad", 0.15, 0.005),
        ("mobile", 0, 0),
        ("fable", 19.0, 0.05),
        ("essay", 17.2, 0.05),
    ]:
        counts = reports[name].counts
        assert 100 * counts["overlaps"] / counts["intervals"] == pytest.approx(percent, abs=half)


def test_pauses(reports):
    for name, percent in [
        ("password", 1.1),
        ("keypad", 2.8),
        ("mobile", 3.7),
        ("fable", 2.5),
        ("essay", 3.0),
    ]:
        counts = reports[name].counts
        # For the two short ones, the share counted is of keystrokes, including the first of a sample.
        whole = counts["keystrokes" if name in ("keypad", "mobile") else "intervals"]
        assert 100 * counts["pauses"] / whole == pytest.approx(percent, abs=0.05)


def test_the_longest_pauses(real):
    for name, count in [("password", 2), ("keypad", 0), ("mobile", 1), ("fable", 10), ("essay", 134)]:
        assert quality_of(real[name], pause=10_000).counts["pauses"] == count


def test_long_holds(real):
    for name, limit, count in [
        ("fable", 1000, 28),
        ("essay", 1000, 288),
        ("essay", 5000, 37),
        ("password", 500, 4),
        ("keypad", 350, 0),
        ("mobile", 350, 0),
    ]:
        assert quality_of(real[name], long_hold=limit).counts["long_holds"] == count


def test_no_zero_and_no_missing_times(reports):
    for report in reports.values():
        for kind in ("zero_durations", "equal_presses", "missing_releases"):
            assert report.counts[kind] == 0


def test_own_overlaps(real, reports):
    plain, held = 0, {}
    columns = real["essay"][list(COLUMNS)].itertuples(index=False, name=None)
    for user, session, key, press, release in columns:
        plain += held.get((user, session, key), -1) > press
        held[user, session, key] = release
    assert reports["essay"].counts["own_overlaps"] == plain
    # The 8 known ones follow directly upon each other; all others are keys said to be held for 10 s or more.
    cleaned, _ = clean(real["essay"], CleaningRules(long_holds=10_000))
    assert quality_of(cleaned).counts["own_overlaps"] == 8


def test_the_one_recording_that_occurs_twice(reports):
    for name, report in reports.items():
        found = report.duplicates.to_numpy().tolist()
        assert found == ([[27, 4, 27, 1]] if name == "essay" else [])


def test_users_on_the_system_tick(reports):
    on_it = {name: (report.clocks["on_system_tick"] >= 0.9).sum() for name, report in reports.items()}
    assert on_it == {"password": 0, "keypad": 15, "mobile": 0, "fable": 10, "essay": 11}
    assert reports["keypad"].clocks["on_system_tick"].median() == pytest.approx(0.91, abs=0.005)


def test_ticks_found_in_real_recordings(reports):
    """Where nearly all intervals are on the grid of 15.6 ms, that tick is found, and for no other user."""
    for name, report in reports.items():
        clocks = report.clocks
        assert np.allclose(clocks["step"], 0.1 if name == "password" else 1, rtol=1e-9)
        found = clocks["tick"].between(15.5, 15.75)
        assert found[clocks["on_system_tick"] >= 0.9].all()
        # By chance an eighth of the intervals are within 1 ms of the grid.
        assert not found[clocks["on_system_tick"] < 0.25].any()
    assert (reports["password"].clocks["tick"] == reports["password"].clocks["step"]).all()


@pytest.mark.parametrize("tick", [1000 / 64, 1000 / 60, 1000 / 120, 8.0, 10.0])
@pytest.mark.parametrize("step", [1.0, 0.1])
def test_a_tick_is_found(tick, step):
    random = np.random.default_rng(0)
    true = np.cumsum(random.lognormal(5, 0.5, 400))
    press = np.round(np.floor(true / tick) * tick / step) * step
    frame = pd.DataFrame(
        {"user": 0, "session": 0, "keyname": "a", "timepress": press, "timerelease": press + 80}
    )
    clock = quality_of(frame).clocks.iloc[0]
    # Over the longest interval looked at, 400 ms, half the rounding is one part in 800.
    assert clock["tick"] == pytest.approx(tick, rel=2e-3)
    assert clock["on_tick"] > 0.98


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 0.1]), st.integers(50, 400))
def test_no_tick_is_found_where_there_is_none(seed, step, count):
    press = np.cumsum(np.random.default_rng(seed).lognormal(5, 0.5, count))
    press = np.round(press / step) * step if step else press
    frame = pd.DataFrame(
        {"user": 0, "session": 0, "keyname": "a", "timepress": press, "timerelease": press + 80}
    )
    clock = quality_of(frame).clocks.iloc[0]
    assert clock["step"] == clock["tick"] == pytest.approx(step, abs=1e-12)
    assert clock["on_tick"] == (1 if step else 0)


def test_intervals_on_a_grid():
    on = on_grid(np.array([0.0, 15.625, 30.25, 40.0]), SYSTEM_TICK, NEAR)
    assert on.tolist() == [True, True, True, False]
    assert on_grid(np.array([1.0, 10.0, 11.0]), 10.0, 0.5).tolist() == [False, True, False]


ALL = keystrokes(
    (0, 0, "a", 0, 80),
    (0, 0, "b", 60, 60),  # overlap, zero duration
    (0, 0, "c", 60, 2000),  # equal press, long hold
    (0, 0, "c", 1500, None),  # overlap, own overlap, pause, missing release
    (0, 1, "a", 90, 99),  # no overlap with another sample
)


def test_every_kind_by_sample():
    report = quality_of(ALL)
    first, second = report.samples.to_dict("records")
    expected = {"user": 0, "session": 0, "keystrokes": 4, "intervals": 3, "span": 1500}
    expected |= {
        "missing_releases": 1,
        "zero_durations": 1,
        "long_holds": 1,
        "overlaps": 2,
        "own_overlaps": 1,
    }
    expected |= {"equal_presses": 1, "pauses": 1}
    assert {kind: first[kind] for kind in expected} == expected
    assert {kind: second[kind] for kind in expected} == dict.fromkeys(expected, 0) | {
        "session": 1,
        "keystrokes": 1,
    }
    assert quality_of(ALL, pause=1440, long_hold=1940).counts["pauses"] == 0
    assert quality_of(ALL, pause=1440, long_hold=1940).counts["long_holds"] == 0


def test_duplicates_start_anywhere_and_keep_their_order():
    one = keystrokes(*[("u", 0, "abcde"[n], 100 * n, None if n == 2 else 100 * n + 70) for n in range(5)])
    later = one.assign(session=1, timepress=one["timepress"] + 9000, timerelease=one["timerelease"] + 9000)
    other_key = one.assign(session=2, keyname=list("abdce"))
    other_user = one.assign(user="v")
    found = quality_of(pd.concat([one, later, other_key, other_user])).duplicates
    assert found.to_numpy().tolist() == [["u", 1, "u", 0], ["v", 0, "u", 0]]
    # Four keystrokes can be alike by chance.
    assert len(quality_of(pd.concat([one[:4], other_user[:4]])).duplicates) == 0


def test_as_text_and_as_data():
    events = pd.DataFrame({"time": [0, 5, 70], "type": ["up", "down", "up"], "key": ["b", "a", "a"]})
    for report in (quality_of(ALL), pair_events(events)[1]):
        data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert data["counts"] == report.counts
        assert pd.DataFrame(data["samples"])["keystrokes"].sum() == report.counts["keystrokes"]
    text = str(report)
    assert text.startswith("1 keystroke in 1 sample of 1 user\n")
    assert "           1          releases without a press, dropped\n" in text
    # Two of three intervals, not of five keystrokes.
    assert "66.67%  keys released after the next" in str(quality_of(ALL))


@pytest.mark.parametrize(("share", "factor"), [(0.2, 10.0), (0.5, 10.0), (0.2, 0.1)])
def test_samples_in_another_unit_are_noticed(share, factor):
    """Later samples of one user with all times ten times as long or as short, and a user who is just slow."""
    random = np.random.default_rng(0)
    rows = []
    for user, tempo in (("ann", 1.0), ("slow", 8.0)):
        for session in range(20):
            changed = user == "ann" and session >= 20 * (1 - share)
            tau = random.lognormal(5.0, 0.5, 40) * tempo * (factor if changed else 1.0)
            press = np.cumsum(tau)
            rows += [(user, session, "a", float(p), float(p) + 80.0) for p in press]
    samples = quality_of(keystrokes(*rows)).samples
    found = samples.loc[samples["other_scale"] == 1, "session"].tolist()
    assert found == list(range(round(20 * (1 - share)), 20))
    assert samples.loc[samples["user"] == "slow", "other_scale"].sum() == 0
    assert f"{len(found):12,d}{len(found) / 40:8.2%}  samples with intervals 5 times" in str(
        quality_of(keystrokes(*rows))
    )


def test_a_single_keystroke_has_no_clock():
    report = quality_of(keystrokes((0, 0, "a", 0, 80)))
    assert report.clocks[["step", "tick", "on_tick", "on_system_tick"]].to_numpy().tolist() == [[0, 0, 0, 0]]
    assert "no visible step" in str(report)


@pytest.mark.parametrize("setting", [{"pause": 0}, {"long_hold": float("nan")}])
def test_bad_limits(setting):
    with pytest.raises(ValueError, match="above 0"):
        quality_of(ALL, **setting)


def test_a_copy_with_fractions_is_found_wherever_it_starts():
    press = np.array([0, 0.1, 0.3, 0.7, 1.9])
    one = pd.DataFrame({"user": "u", "session": 0, "keyname": list("abcde"), "timepress": press})
    one["timerelease"] = press + 0.05
    later = one.assign(session=1, timepress=press + 1000.7, timerelease=press + 1000.75)
    assert quality_of(pd.concat([one, later])).duplicates["session"].tolist() == [1]


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0])
def test_a_fine_clock_is_not_the_system_clock(step):
    """Intervals far shorter than the tick of 15.625 ms are near a multiple of it, zero, but not on it."""
    press = step * np.arange(60)
    frame = pd.DataFrame(
        {"user": 1, "session": 0, "keyname": "a", "timepress": press, "timerelease": press + step / 2}
    )
    report = quality_of(frame)
    assert report.clocks["on_system_tick"].tolist() == [0.0]
    assert report.counts["on_system_tick"] == 0
