"""Whether simulated typists resemble people: summaries that hold for both, and recognition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn import POHMM, POHMMClassifier, Sequences
from keydyn.datasets.simulated.texts import NUMBER
from keydyn.datasets.simulated.typists import make_typists

# The ranges that `make_typists` states. Real recordings are held to them as well: a range that they are not
# in would say nothing about realism.
RUNNING_TEXT = {
    "mean tau": (220, 290),
    "median tau": (150, 200),
    "above 1 s": (0.01, 0.04),
    "median hold": (70, 110),
    "rollover": (0.10, 0.20),
    "backspace": (0.02, 0.05),
}
PASSWORD = {
    "mean tau": (220, 290),
    "median tau": (150, 200),
    "above 1 s": (0.01, 0.04),
    "median hold": (70, 110),
    "rollover": (0.05, 0.20),
}
NUMBER_PAD = {
    "mean tau": (330, 420),
    "median tau": (250, 350),
    "above 1 s": (0.01, 0.04),
    "median hold": (70, 110),
    "rollover": (0.0, 0.02),
}


def summary(frame):
    same = frame[["user", "session"]].eq(frame[["user", "session"]].shift()).all(axis=1)
    tau = frame["timepress"].diff()[same]
    return {
        "mean tau": tau.mean(),
        "median tau": tau.median(),
        "above 1 s": np.mean(tau > 1000),
        "median hold": (frame["timerelease"] - frame["timepress"]).median(),
        "rollover": np.mean((frame["timepress"] < frame["timerelease"].shift())[same]),
        "backspace": np.mean(frame["keyname"] == "backspace"),
    }, tau.groupby(frame["user"]).mean()


def check(frame, ranges):
    values, by_user = summary(frame)
    outside = {name: values[name] for name, (low, high) in ranges.items() if not low <= values[name] <= high}
    assert not outside
    assert np.mean(by_user.between(100, 750)) >= 0.95


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("arguments", "ranges"),
    [
        ({"text": "copied", "n_samples": 4}, RUNNING_TEXT),
        ({"text": "free", "n_samples": 2}, RUNNING_TEXT),
        ({}, PASSWORD),
        ({"phrase": NUMBER}, NUMBER_PAD),
    ],
    ids=["copied", "free", "password", "number"],
)
def test_simulated_typists_are_in_the_stated_ranges(arguments, ranges, seed):
    check(make_typists(300, random_state=seed, **arguments), ranges)


@pytest.mark.parametrize(
    ("name", "ranges"), [("fable", RUNNING_TEXT), ("essay", RUNNING_TEXT), ("keypad", NUMBER_PAD)]
)
def test_people_are_in_the_same_ranges(recordings, name, ranges):
    check(pd.read_csv(recordings / f"{name}.csv", dtype={"keyname": str}), ranges)


def test_people_at_the_password_are_in_the_same_ranges(recordings):
    table = pd.read_csv(recordings / "password.csv.gz")
    tau, hold, gap = (1000.0 * table.filter(regex=rf"^{kind}\.").to_numpy() for kind in ("DD", "H", "UD"))
    values = {
        "mean tau": tau.mean(),
        "median tau": np.median(tau),
        "above 1 s": np.mean(tau > 1000),
        "median hold": np.median(hold),
        "rollover": np.mean(gap < 0),
    }
    for quantity, (low, high) in PASSWORD.items():
        assert low <= values[quantity] <= high, quantity


def test_a_new_password_is_slow_at_first():
    """316.8 ms in the first of eight sittings of 50."""
    frame = make_typists(100, 50, sitting=50)
    assert 290 < summary(frame)[0]["mean tau"] < 370


def test_pauses_come_where_people_think():
    frame = make_typists(100, 2, "free", return_states=True)
    passive = frame.groupby("keyname")["state"].mean()
    letters = frame["keyname"].isin(list("etaoinshrdlu"))
    after_space = (frame["keyname"].shift() == "space") & letters
    within_words = frame["keyname"].shift().isin(list("etaoinshrdlu")) & letters
    inside = frame["state"][within_words].mean()
    for key in ("space", "shift", "backspace", "period", "comma"):
        assert passive[key] > 1.5 * inside
    assert frame["state"][after_space].mean() > 1.5 * inside


def test_people_differ_more_than_a_persons_samples():
    """Standard deviation of ln median τ: 0.2 to 0.3 between people, 0.08 to 0.10 between long samples."""
    frame = make_typists(100, 4, "copied")
    tau = np.diff(frame["timepress"].to_numpy().reshape(100, 4, 100), axis=2)
    medians = np.log(np.median(tau, axis=2))
    between, within = medians.mean(axis=1).std(ddof=1), np.sqrt(medians.var(axis=1, ddof=1).mean())
    assert 0.2 < between < 0.4
    assert 0.07 < within < 0.13


@pytest.fixture(scope="module")
def entries():
    """Durations and τ of 20 people's 8 entries of the password: (20, 8, 11) and (20, 8, 10), and the keys."""
    frame = make_typists(20, 8)
    press, release = (frame[c].to_numpy().reshape(20, 8, 11) for c in ("timepress", "timerelease"))
    return release - press, np.diff(press, axis=2), frame["keyname"].to_numpy(dtype=object)[:11]


def test_a_pohmm_knows_most_people_by_one_entry_of_a_password(entries):
    """Six entries each for training, two for testing: 40 decisions among 20 people, 2 right by chance.

    Of real people at 11 keys, 30 at a number pad with 19 entries to learn from, 75 % were published.
    """
    duration, tau, keys = entries
    first = np.median(tau, axis=2, keepdims=True)
    values = np.stack([duration, np.concatenate([first, tau], axis=2)], axis=3)

    def sequences(part):
        n = part.shape[0] * part.shape[1]
        return Sequences.from_arrays(part.reshape(-1, 2), np.tile(keys, n), [11] * n)

    users = np.arange(20)
    classifier = POHMMClassifier(POHMM(tol=1e-3)).fit(sequences(values[:, :6]), np.repeat(users, 6))
    right = classifier.score(sequences(values[:, 6:]), np.repeat(users, 2))
    assert 0.35 <= right <= 0.95


def test_so_does_the_scaled_manhattan_distance(entries):
    duration, tau, _ = entries
    vectors = np.concatenate([duration, tau], axis=2)
    scaled = vectors / np.abs(vectors - vectors.mean(axis=(0, 1))).mean(axis=(0, 1))
    templates, queries = scaled[:, :6].mean(axis=1), scaled[:, 6:]
    distances = np.abs(queries[:, :, None] - templates).sum(axis=3)
    right = np.mean(distances.argmin(axis=2) == np.arange(20)[:, None])
    assert 0.35 <= right <= 0.95
