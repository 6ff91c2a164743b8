"""The 218 statistics of a long text: against the authors' own vectors, by hand, and on texts of any kind."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.datasets import load_dataset
from keydyn.keystrokes.long_text import (
    COLUMNS,
    HOLD_TREE,
    PAIR_TREE,
    in_pair,
    in_set,
    lineages,
    long_text_vectors,
    time_bounds,
)
from tests.examples import examples


def frame(*samples: list[tuple[str, float, float]], user: str = "ada") -> pd.DataFrame:
    """Samples given as lists of key, press-to-press interval and hold time."""
    rows = []
    for session, keystrokes in enumerate(samples):
        press = 0.0
        for key, interval, hold in keystrokes:
            press += interval
            rows.append((user, session, key, press, press + hold))
    return pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])


def held(*keys: tuple[str, float]) -> list[tuple[str, float, float]]:
    return [(key, 100.0, hold) for key, hold in keys]


@pytest.mark.parametrize("name", ["fable", "essay"])
def test_every_value_is_the_published_one(recordings: Path, name: str) -> None:
    dataset = load_dataset(name, recordings)
    ours, theirs = long_text_vectors(dataset.keystrokes), dataset.vectors
    assert list(ours.columns) == list(theirs.columns)
    assert list(ours.index) == list(theirs.index)
    # Both are sums of whole milliseconds: only the last digits of roots and quotients can differ.
    np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-9, atol=1e-9)


def test_time_far_from_its_key_is_left_out_until_none_is_left() -> None:
    # Without the first outlier, the second is one too; with it, it is not.
    keys = held(*[("a", hold) for hold in (99.0, 101.0) * 50], ("a", 400.0), ("a", 1e6))
    vector = long_text_vectors(frame(keys)).iloc[0]
    assert vector["du_all_keys.mean"] == pytest.approx(100.0)
    assert vector["du_a.std"] == pytest.approx(statistics.stdev([99.0, 101.0] * 50))


def test_what_is_usual_for_one_key_is_an_outlier_for_another() -> None:
    letters = [("a", hold) for hold in (99.0, 101.0) * 50]
    shifts = [("shift", hold) for hold in (490.0, 510.0) * 50]
    vector = long_text_vectors(frame(held(*letters, *shifts, ("a", 500.0)))).iloc[0]
    assert vector["du_letters.mean"] == pytest.approx(100.0)
    assert vector["du_shift.mean"] == pytest.approx(500.0)


@pytest.mark.parametrize("rare", [[9.0], [9.0, 9.0]])
def test_key_without_any_spread_does_not_count(rare: list[float]) -> None:
    usual = [("a", hold) for hold in (99.0, 101.0) * 5]
    vector = long_text_vectors(frame(held(*usual, *[("x", hold) for hold in rare]))).iloc[0]
    assert vector["du_all_keys.mean"] == pytest.approx(100.0)


@pytest.mark.parametrize("odd", [*range(120, 160, 3), *range(41, 80, 3)])
def test_four_standard_deviations_are_an_outlier(odd: int) -> None:
    usual = [90.0, 110.0] * 50
    everything = [*usual, float(odd)]
    z = abs(odd - statistics.mean(everything)) / statistics.stdev(everything)
    vector = long_text_vectors(frame(held(*[("a", hold) for hold in everything]))).iloc[0]
    assert vector["du_a.mean"] == pytest.approx(statistics.mean(everything if z < 4 else usual), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_rare_key_leans_on_its_parent(n: int) -> None:
    rare = [80.0, 84.0, 82.0, 83.0, 89.0][:n]
    common = [100.0, 110.0] * 10
    # The second sample only makes sure that every key occurs often enough to count.
    samples = [
        held(*[("e", hold) for hold in rare], *[("a", hold) for hold in common]),
        held(*[("e", hold) for hold in (70.0, 90.0) * 9]),
    ]
    vector = long_text_vectors(frame(*samples)).iloc[0]
    own_std = statistics.stdev(rare) if n > 1 else 0.0
    if n < 5:
        mean = (sum(rare) + 0.25 * statistics.mean(rare + common)) / (n + 0.25)
        std = (n * own_std + 0.25 * statistics.stdev(rare + common)) / (n + 0.25)
    else:
        mean, std = statistics.mean(rare), own_std
    assert vector["du_e.mean"] == pytest.approx(mean, rel=1e-12)
    assert vector["du_e.std"] == pytest.approx(std, rel=1e-12)


def test_where_the_parent_is_rare_too_the_next_broader_set_serves() -> None:
    elsewhere = held(*[(key, hold) for key in ("period", "comma") for hold in (50.0, 90.0) * 5])
    spaces = [("space", hold) for hold in (100.0, 104.0) * 5]
    three = held(("period", 60.0), ("comma", 70.0), ("comma", 71.0), *spaces)
    four = held(("period", 60.0), ("comma", 70.0), ("comma", 71.0), ("comma", 72.0), *spaces)
    first, second = long_text_vectors(frame(three, four, elsewhere)).iloc[:2].to_dict("records")
    # One period and three times of punctuation are 4 in all, too few; one and four are enough.
    non_letters = statistics.mean([60.0, 70.0, 71.0] + [100.0, 104.0] * 5)
    assert first["du_period.mean"] == pytest.approx((60.0 + 0.25 * non_letters) / 1.25)
    assert second["du_period.mean"] == pytest.approx((60.0 + 0.25 * statistics.mean([60, 70, 71, 72])) / 1.25)
    # A set without any times takes the statistics of the set that stands in for it.
    assert first["du_quote.mean"] == pytest.approx(non_letters)


def test_intervals_run_from_release_and_from_press() -> None:
    keys = [("t", 300.0, 80.0), ("h", 120.0, 90.0), ("t", 310.0, 82.0), ("h", 130.0, 90.0)] * 5
    vector = long_text_vectors(frame(keys)).iloc[0]
    assert vector["t2_t__h.mean"] == pytest.approx(125.0)
    assert vector["t1_t__h.mean"] == pytest.approx((40.0 + 48.0) / 2)
    # One key after itself is a double letter; there is none, so all pairs of letters stand in.
    assert vector["t2_double__letters.mean"] == vector["t2_letters__letters.mean"]


def naive_vector(samples: list[list[tuple[str, float, float]]], which: int) -> dict[str, float]:
    """The documented rules again in plain Python, one time after another."""
    times: list[tuple[str, int, tuple[str, ...], float]] = []
    for s, keystrokes in enumerate(samples):
        for position, (key, interval, hold) in enumerate(keystrokes):
            times.append(("du", s, (key,), hold))
            if position:
                before = keystrokes[position - 1]
                times.append(("t1", s, (before[0], key), interval - before[2]))
                times.append(("t2", s, (before[0], key), interval))
    vector: dict[str, float] = {}
    for kind in ("du", "t1", "t2"):
        of_kind = [time for time in times if time[0] == kind]
        kept = []
        for keys in {time[2] for time in of_kind}:
            left, before_round = [time for time in of_kind if time[2] == keys], -1
            while len(left) > 1 and len(left) != before_round:
                before_round = len(left)
                values = [time[3] for time in left]
                mean, reach = statistics.fmean(values), 4 * statistics.stdev(values)
                left = [time for time in left if abs(time[3] - mean) < reach]
            kept += left if len(left) > 1 else []
        mine = [time for time in kept if time[1] == which] or [time for time in of_kind if time[1] == which]
        tree = HOLD_TREE if kind == "du" else PAIR_TREE
        chosen: dict[str, list[float]] = {}
        for name, ancestors in lineages(tree).items():
            chosen[name] = [time[3] for time in mine if is_in(name, time[2])]
            if not any(time[1] == which for time in kept) and ancestors:
                chosen[name] = []
            n = len(chosen[name])
            near = [a for a in ancestors[1:] if n + len(chosen[a]) >= 5]
            support = chosen[near[-1] if near else next(iter(tree))]
            for label, statistic in (("mean", statistics.fmean), ("std", deviation)):
                own = statistic(chosen[name]) if n else 0.0
                if n < 5 and ancestors:
                    own = (n * own + 0.25 * statistic(support)) / (n + 0.25)
                vector[f"{kind}_{name}.{label}"] = own
    return vector


def is_in(name: str, keys: tuple[str, ...]) -> bool:
    names = [np.array([key], dtype=object) for key in keys]
    return bool(in_set(name, names[0])[0] if len(names) == 1 else in_pair(name, *names)[0])


def deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


KEYS = st.sampled_from(["e", "a", "t", "h", "k", "space", "shift", "period", "comma", "dash", "5", "Ω"])
# Whole milliseconds: sums are exact, so that no time is an outlier by rounding.
KEYSTROKES = st.tuples(KEYS, st.integers(1, 400).map(float), st.integers(1, 9000).map(float))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(KEYSTROKES, min_size=2, max_size=40), min_size=1, max_size=4))
def test_any_text_agrees_with_the_rules_in_plain_python(
    samples: list[list[tuple[str, float, float]]],
) -> None:
    ours = long_text_vectors(frame(*samples))
    for which in range(len(samples)):
        expected = naive_vector(samples, which)
        assert set(expected) == set(COLUMNS)
        np.testing.assert_allclose(
            ours.iloc[which].to_numpy(), [expected[column] for column in COLUMNS], rtol=1e-9, atol=1e-9
        )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.text(min_size=1), *[st.floats(0, 1e6)] * 2), min_size=1), min_size=1),
    st.randoms(use_true_random=False),
)
def test_no_value_is_missing_whatever_the_text(samples, random) -> None:
    keystrokes = frame(*samples)
    unseen = [random.random() < 0.3 for _ in range(len(keystrokes))]
    keystrokes.loc[unseen, "timerelease"] = np.nan
    vectors = long_text_vectors(keystrokes)
    assert vectors.shape == (len(samples), 218)
    assert np.isfinite(vectors.to_numpy()).all()
    stds = vectors[[column for column in COLUMNS if column.endswith("std")]]
    assert (stds.to_numpy() >= 0).all()


def test_end_of_the_fallback() -> None:
    # One keystroke: no spread to judge it by, so it is used as it is; nothing is known about intervals.
    single = long_text_vectors(frame(held(("e", 90.0)))).iloc[0]
    assert single["du_e.mean"] == single["du_digits.mean"] == 90.0
    assert single["du_e.std"] == single["t2_t__h.mean"] == 0.0
    # Constant times give every set the same statistics.
    constant = long_text_vectors(frame(held(*[(key, 90.0) for key in "the cat"]))).iloc[0]
    assert set(constant.filter(regex=r"^du.*mean")) == {90.0}
    assert set(constant.filter(regex=r"^t2.*mean")) == {100.0}
    assert set(constant.filter(like=".std")) == {0.0}
    # A sample without intervals takes the mean of those that have some.
    both = long_text_vectors(frame(held(*[(key, 90.0) for key in "the cat"]), held(("e", 70.0))))
    assert both.loc[("ada", 1), "t2_t__h.mean"] == 100.0


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(KEYSTROKES, min_size=2, max_size=40), min_size=1, max_size=4))
def test_units_scale_and_samples_keep_their_vectors(samples) -> None:
    vectors = long_text_vectors(frame(*samples))
    # Doubling is exact in floating point.
    doubled = [[(key, 2 * interval, 2 * hold) for key, interval, hold in sample] for sample in samples]
    np.testing.assert_array_equal(long_text_vectors(frame(*doubled)), 2 * vectors)
    # Sums by key are then in a different order.
    backwards = long_text_vectors(frame(*samples[::-1]))
    np.testing.assert_allclose(backwards.to_numpy()[::-1], vectors, rtol=1e-9, atol=1e-9)


def test_a_new_sample_is_judged_by_the_population(recordings: Path) -> None:
    dataset = load_dataset("fable", recordings)
    keystrokes, theirs = dataset.keystrokes, dataset.vectors
    bounds = time_bounds(keystrokes)
    whole = long_text_vectors(keystrokes, bounds)
    np.testing.assert_array_equal(whole, long_text_vectors(keystrokes))
    one = keystrokes[(keystrokes["user"] == 7) & (keystrokes["session"] == 2)]
    np.testing.assert_array_equal(long_text_vectors(one, bounds), whole.loc[[(7, 2)]])
    # On its own, most of its pairs of keys occur once and would not count.
    assert not np.allclose(long_text_vectors(one), theirs.loc[[(7, 2)]])


def test_bounds_of_something_else_are_refused() -> None:
    keystrokes = frame(held(("e", 90.0)))
    with pytest.raises(ValueError, match="bounds must have du, t1, t2, not du"):
        long_text_vectors(keystrokes, {"du": time_bounds(keystrokes)["du"]})


def test_keystrokes_out_of_schema_are_refused() -> None:
    with pytest.raises(ValueError, match="'timerelease'"):
        long_text_vectors(frame(held(("e", 90.0))).drop(columns="timerelease"))


@given(st.lists(st.text(min_size=1).map(str.lower) | KEYS, min_size=1))
def test_sets_divide_the_keys(names: list[str]) -> None:
    keys = np.array(names, dtype=object)

    def sizes(*sets: str) -> np.ndarray:
        return sum(in_set(name, keys).astype(int) for name in sets)

    assert (sizes("letters", "non_letters") == sizes("all_keys")).all()
    for parts in (
        ("left_letters", "right_letters"),
        ("vowels", "consonants"),
        ("vowels", "freq_cons", "next_freq_cons", "least_freq_cons", "other_cons"),
    ):
        np.testing.assert_array_equal(sizes(*parts), sizes("letters"))
    parts = ("space", "shift", "digits", "punctuation", "other_non_letters")
    np.testing.assert_array_equal(sizes(*parts), sizes("non_letters"))
    parts = ("period", "comma", "quote", "punctuation_other")
    np.testing.assert_array_equal(sizes(*parts), sizes("punctuation"))


def test_browsers_names_of_keys_are_the_same_keys() -> None:
    keys = held(*[(key, hold) for key in ("e", "shift", "4") for hold in (80.0, 90.0, 70.0) * 3])
    names = {"e": "KeyE", "shift": "ShiftLeft", "4": "Digit4"}
    by_code = frame([(names[key], *times) for key, *times in keys])
    pd.testing.assert_frame_equal(long_text_vectors(by_code), long_text_vectors(frame(keys)))
