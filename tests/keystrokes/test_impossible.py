"""Times that no hand makes: they are found, only they become missing, and people are still accepted."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.datasets import make_typists
from keydyn.keystrokes import Samples, one_sample, quality_of, without_impossible
from keydyn.keystrokes.one_sample import (
    LONGEST_HOLD,
    LONGEST_INTERVAL,
    SHORTEST,
    impossible,
    recorded_samples,
)


def times_of(samples):
    names = samples.sequences.feature_names
    return samples.sequences.X[:, names.index("tau")], samples.sequences.X[:, names.index("duration")]


def typed(rows):
    return one_sample(*(list(column) for column in zip(*rows, strict=True)))


def test_only_the_impossible_time_is_lost():
    sample = typed(
        [
            ("a", 0.0, 80.0),
            ("caps_lock", 100.0, 100.5),
            ("b", 105.0, 180.0),
            ("shift", 300.0, 12_300.0),
            ("c", 420.0, 500.0),
            ("d", 70_420.0, 70_500.0),
            ("e", 70_420.0, None),
        ]
    )
    intervals, holds = times_of(without_impossible(sample))
    np.testing.assert_array_equal(intervals[1:], [100.0, np.nan, 195.0, 120.0, np.nan, np.nan])
    np.testing.assert_array_equal(holds, [80.0, np.nan, 75.0, np.nan, 80.0, 80.0, np.nan])


def test_limits_are_possible():
    press = np.cumsum([0.0, SHORTEST, LONGEST_INTERVAL])
    sample = one_sample(["a", "b", "c"], press, press + np.array([SHORTEST, LONGEST_HOLD, 80.0]))
    assert without_impossible(sample) is sample


@pytest.mark.parametrize("release", [None, 700.0])
def test_auto_repeat(release):
    """A key that is pressed again while it is down, with a release at the end or with none."""
    rows = [("x", 0.0, 80.0), ("a", 100.0, release), ("a", 600.0, release), ("a", 633.0, 700.0)]
    rows += [("b", 900.0, 980.0), ("c", 1000.0, 1090.0)]
    intervals, holds = times_of(without_impossible(typed(rows)))
    np.testing.assert_array_equal(intervals[1:], [100.0, np.nan, np.nan, np.nan, 100.0])
    np.testing.assert_array_equal(holds, [80.0, np.nan, np.nan, np.nan, 80.0, 90.0])


def test_a_letter_typed_twice_and_rollover_are_typing():
    rows = [("o", 0.0, 90.0), ("o", 140.0, 230.0), ("k", 180.0, 260.0), ("o", 220.0, 300.0)]
    sample = typed(rows)
    assert without_impossible(sample) is sample


def test_keys_without_types_do_not_repeat():
    """Where keys are not known, overlap is rollover."""
    rows = pd.DataFrame({"user": 0, "session": 0, "keyname": list("abab")})
    rows["timepress"], rows["timerelease"] = [0.0, 100.0, 200.0, 300.0], [150.0, 250.0, 350.0, 450.0]
    samples = Samples.without_vectors(rows, events="none")
    assert without_impossible(samples) is samples


times = st.floats(0.0, 1e7) | st.sampled_from([0.0, 5.0, 10.0, 2000.0, 60_000.0])


@given(
    st.lists(st.tuples(st.sampled_from("ab"), times, st.none() | times), min_size=1, max_size=12), st.data()
)
def test_against_the_rule_in_words(rows, data):
    """Every time by itself, as the documentation says it."""
    keys = np.array([ord(key) for key, _, _ in rows])
    intervals = np.array([interval for _, interval, _ in rows])
    holds = np.array([np.nan if hold is None else hold for _, _, hold in rows])
    starts = np.array(sorted({0, *data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3))}))
    found = impossible(intervals, holds, keys, starts)
    down = [
        n not in starts and keys[n] == keys[n - 1] and not holds[n - 1] <= intervals[n]
        for n in range(len(rows))
    ]
    for n in range(len(rows)):
        later = n + 1 < len(rows) and down[n + 1]
        hold = rows[n][2]
        assert found[1][n] == (down[n] or later or (hold is not None and not 10 <= hold <= 2000))
        repeats = down[n] or (n > 0 and down[n - 1])
        assert found[0][n] == (n not in starts and (repeats or not 10 <= intervals[n] <= 60_000))


steps = st.sampled_from([5.0, 30.0, 140.0, 61_000.0])
lasting = st.sampled_from([None, 5.0, 80.0, 200.0, 3000.0])


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("ab"), steps, lasting), min_size=1), min_size=2, max_size=4)
)
def test_each_time_is_judged_once(typed_samples):
    """A hold that was left out is not one that was not seen, however the samples are taken afterwards."""
    alone = []
    for rows in typed_samples:
        keys, between, holds = zip(*rows, strict=True)
        press = np.cumsum(between)
        release = [None if hold is None else at + hold for at, hold in zip(press, holds, strict=True)]
        alone.append(one_sample(keys, press, release, session=len(alone)))
    once = Samples.joined([without_impossible(sample) for sample in alone])
    assert without_impossible(once) is once
    together = without_impossible(Samples.joined(alone))
    for form in (together, without_impossible(together), Samples.joined(list(map(without_impossible, once)))):
        np.testing.assert_array_equal(form.sequences.X, once.sequences.X)
    for n, sample in enumerate(without_impossible(together)):
        np.testing.assert_array_equal(without_impossible(together[[n]]).sequences.X, sample.sequences.X)
    first = together.first_keys(3)
    np.testing.assert_array_equal(without_impossible(first).sequences.X, first.sequences.X)


def test_samples_for_decisions_lose_them():
    """From a frame, from one sample, and from samples that were made before."""
    typing = make_typists(2, 3, "free", 60)
    typing.loc[5, "timerelease"] = typing.loc[5, "timepress"] + 0.5
    typing.loc[70, "timepress"] = typing.loc[69, "timepress"]
    forms = [typing, Samples.of(typing), Samples.without_vectors(typing)]
    for form in forms:
        intervals, holds = times_of(recorded_samples(form))
        assert np.flatnonzero(np.isnan(holds)).tolist() == [5]
        assert np.flatnonzero(np.isnan(intervals)).tolist() == [70]
    single = recorded_samples(typing[typing["session"] == 0][:60])
    assert np.flatnonzero(np.isnan(times_of(single)[1])).tolist() == [5]
    # What the paper's studies use is as recorded.
    assert np.isfinite(times_of(Samples.of(typing))[1]).all()


def test_the_quality_report_counts_them():
    typing = make_typists(2, 3, "free", 60)
    typing.loc[[5, 65], "timerelease"] = typing.loc[[5, 65], "timepress"] + [0.5, 3000.0]
    typing.loc[70, "timepress"] = typing.loc[69, "timepress"]
    report = quality_of(typing)
    assert (report.counts["impossible_holds"], report.counts["impossible_intervals"]) == (2, 1)
    assert report.samples["impossible_holds"].tolist() == [1, 1, 0, 0, 0, 0]
    assert "no hand makes" in str(report)
