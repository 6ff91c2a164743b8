"""Cleaning: each rule has its documented effect and no other, and counts it; rules apply in their order."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from keydyn.keystrokes.cleaning import CleaningRules, clean
from keydyn.keystrokes.quality import quality_of
from keydyn.keystrokes.schema import COLUMNS, check_keystrokes
from tests.examples import examples

ROWS = [
    ("u", 0, "a", 0, 50),
    ("u", 0, "b", 100, 100),
    ("u", 0, "c", 100, 900),
    ("u", 0, "d", 3000, 3080),
    ("u", 0, "e", 3100, 3190),
    ("u", 3, "a", 0, 60),
    ("v", 0, "a", 7, 67),
    ("v", 0, "b", 2100, None),
]


def frame(rows=ROWS):
    return check_keystrokes(pd.DataFrame(rows, columns=COLUMNS))


def rows_of(keystrokes):
    table = keystrokes.astype(object).where(keystrokes.notna(), None)
    return list(table.itertuples(index=False, name=None))


def test_all_rules_are_off_by_default():
    cleaned, report = clean(frame(), CleaningRules())
    assert_frame_equal(cleaned, frame())
    assert report.counts == {}
    assert "nothing was changed" in str(report)


def with_rows(changes):
    """The rows, some of which are changed, or dropped (None)."""
    changed = [changes.get(n, row) for n, row in enumerate(ROWS)]
    return [row for row in changed if row is not None]


@pytest.mark.parametrize(
    ("rule", "found", "changes"),
    [
        ({"equal_presses": True}, 1, {2: None}),
        ({"zero_durations": True}, 1, {1: ("u", 0, "b", 100, None)}),
        ({"long_holds": 799}, 1, {2: ("u", 0, "c", 100, None)}),
        ({"long_holds": 800}, 0, {}),
        ({"longest": 2}, 3, {2: None, 3: None, 4: None}),
        ({"shortest": 2}, 1, {5: None}),
        ({"shortest": 3}, 2, {5: None, 6: None, 7: None}),
        (
            {"pauses": 2000},
            2,
            {
                3: ("u", 4, "d", 3000, 3080),
                4: ("u", 4, "e", 3100, 3190),
                7: ("v", 1, "b", 2100, None),
            },
        ),
        ({"pauses": 2900}, 0, {}),
        ({"duplicate_samples": True}, 0, {}),
    ],
)
def test_one_rule(rule, found, changes):
    cleaned, report = clean(frame(), CleaningRules(**rule))
    assert rows_of(cleaned) == rows_of(frame(with_rows(changes)))
    assert report.counts == {next(iter(rule)): found}
    assert report.steps[["keystrokes", "samples"]].to_numpy().tolist() == [
        [len(cleaned), len(cleaned[["user", "session"]].drop_duplicates())]
    ]


def test_the_copy_goes_and_the_first_stays():
    one = frame([("u", n // 5, "abcde"[n % 5], 100 * (n % 5), 100 * (n % 5) + 80) for n in range(15)])
    cleaned, report = clean(one, CleaningRules(duplicate_samples=True))
    assert_frame_equal(cleaned, one[:5])
    assert report.counts == {"duplicate_samples": 2}


def test_the_order_is_that_of_the_fields():
    """Equal presses go before holds are examined; samples are divided before they are cut or dropped."""
    rules = CleaningRules(
        equal_presses=True, zero_durations=True, long_holds=500, pauses=1000, longest=2, shortest=2
    )
    cleaned, report = clean(frame(), rules)
    assert rows_of(cleaned) == [
        ("u", 0, "a", 0, 50),
        ("u", 0, "b", 100, None),
        ("u", 4, "d", 3000, 3080),
        ("u", 4, "e", 3100, 3190),
    ]
    assert report.counts == {
        "equal_presses": 1,
        "zero_durations": 1,
        "long_holds": 0,
        "pauses": 2,
        "longest": 0,
        "shortest": 3,
    }
    assert list(report.counts) == [
        name for name in CleaningRules.__dataclass_fields__ if name in report.counts
    ]


@st.composite
def any_keystrokes(draw):
    rows = []
    for sample in range(draw(st.integers(1, 4))):
        press = 0
        for _ in range(draw(st.integers(1, 12))):
            press += draw(st.sampled_from([0, 1, 80, 200, 2500]))
            release = press + draw(st.sampled_from([np.nan, 0, 60, 1500]))
            rows.append((sample % 2, sample, draw(st.sampled_from("ab")), press, release))
    return frame(sorted(rows, key=lambda row: row[:2]))


@settings(deadline=None, max_examples=examples(50))
@given(any_keystrokes())
def test_what_was_cleaned_is_clean(keystrokes):
    rules = CleaningRules(equal_presses=True, zero_durations=True, long_holds=1000, pauses=2000, longest=6)
    cleaned, report = clean(keystrokes, rules)
    check_keystrokes(cleaned)
    before = quality_of(keystrokes, pause=2000).counts
    after = quality_of(cleaned, pause=2000).counts
    for kind in ("equal_presses", "zero_durations", "long_holds", "pauses"):
        assert after[kind] == 0
    assert report.counts["equal_presses"] == before["equal_presses"]
    assert report.counts["pauses"] == before["pauses"] == report.steps["samples"].iloc[-1] - before["samples"]
    assert len(keystrokes) - len(cleaned) == report.counts["equal_presses"] + report.counts["longest"]
    assert quality_of(cleaned).samples["keystrokes"].max() <= 6
    # Whatever is left keeps its key and its press.
    columns = ["user", "keyname", "timepress"]
    assert len(cleaned[columns].merge(keystrokes[columns].drop_duplicates())) == len(cleaned)
    # Cleaning twice changes nothing more.
    again, second = clean(cleaned, rules)
    assert_frame_equal(again, cleaned)
    assert not any(second.counts.values())


def test_the_real_duplicate(recordings):
    essay = pd.read_csv(recordings / "essay.csv", dtype={"keyname": "str"})
    cleaned, _ = clean(essay, CleaningRules(duplicate_samples=True))
    dropped = set(essay.groupby(["user", "session"]).groups) - set(
        cleaned.groupby(["user", "session"]).groups
    )
    assert dropped == {(27, 4)}
    assert len(cleaned) == len(essay) - 500


def test_report_as_text_and_as_data():
    _, report = clean(frame(), CleaningRules(long_holds=500, shortest=2))
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [step["rule"] for step in data["steps"]] == ["long_holds", "shortest"]
    assert data["before"] == {"keystrokes": 8, "samples": 3}
    assert data["rules"]["long_holds"] == 500
    assert (
        "1  keystrokes held for longer than 500 ms: release marked as missing; 8 keystrokes in 3 samples left"
        in str(report)
    )
    assert "7 keystrokes in 2 samples left" in str(report)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"equal_presses": 1}, "equal_presses must be True or False"),
        ({"long_holds": 0}, "long_holds must be a number of milliseconds above 0"),
        ({"pauses": np.nan}, "pauses must be a number"),
        ({"pauses": True}, "pauses must be a number"),
        ({"longest": 2.5}, "longest must be a whole number"),
        ({"shortest": 0}, "shortest must be a whole number"),
        ({"longest": 5, "shortest": 6}, "no sample could satisfy both"),
    ],
)
def test_bad_rules(rules, message):
    with pytest.raises(ValueError, match=message):
        CleaningRules(**rules)


def test_nothing_left():
    with pytest.raises(ValueError, match="the rule shortest=6 leaves no keystrokes"):
        clean(frame(), CleaningRules(shortest=6))
    with pytest.raises(ValueError, match="rules must be CleaningRules"):
        clean(frame(), {"shortest": 2})


def test_numbers_of_numpy_are_settings_too():
    rules = CleaningRules(long_holds=np.float32(500), longest=np.int64(5))
    assert json.loads(json.dumps(clean(frame(), rules)[1].to_dict()))["rules"]["longest"] == 5
    with pytest.raises(ValueError, match="pauses must be a number"):
        CleaningRules(pauses="long")
