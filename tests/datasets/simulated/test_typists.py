"""Simulated typists: their form, that they can be reproduced, and that they are who they claim to be."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keydyn.datasets.simulated.texts import NUMBER
from keydyn.datasets.simulated.typed_times import TypingTask
from keydyn.datasets.simulated.typist_population import PERSON, TIMES, TRAITS, Streams
from keydyn.datasets.simulated.typists import make_typists, simulated_keystrokes, simulated_typist
from keydyn.keystrokes.schema import COLUMNS, check_keystrokes
from tests.examples import examples

TEXTS = ("fixed", "copied", "free")
# The chance of a false alarm in each statistical test below; the seeds are fixed.
ALPHA = 1e-4


def by_sample(frame, column, n_keys):
    return frame[column].to_numpy().reshape(-1, n_keys)


@settings(max_examples=examples(40), deadline=None)
@given(
    n_users=st.integers(1, 4),
    n_samples=st.integers(1, 3),
    text=st.sampled_from(TEXTS),
    n_keys=st.integers(1, 11),
    tick=st.sampled_from([None, 0.001, 1.0, 15.6, 1000.0]),
    seed=st.integers(0, 2**64),
    mood=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_any_typists_are_in_the_schema(n_users, n_samples, text, n_keys, tick, seed, mood):
    frame = make_typists(n_users, n_samples, text, n_keys, tick=tick, random_state=seed, mood=mood)
    pd.testing.assert_frame_equal(check_keystrokes(frame), frame)
    assert tuple(frame.columns) == COLUMNS
    expected = pd.MultiIndex.from_product([range(n_users), range(n_samples), range(n_keys)])
    assert frame["user"].tolist() == expected.get_level_values(0).tolist()
    assert frame["session"].tolist() == expected.get_level_values(1).tolist()
    press, release = by_sample(frame, "timepress", n_keys), by_sample(frame, "timerelease", n_keys)
    assert (press[:, 0] == 0).all()
    assert np.isfinite(release).all()
    # A clock's times are a multiple of its tick, computed with rounding: half a tick is far from that.
    least = 0.0 if tick is None else 0.5 * tick
    assert (np.diff(press, axis=1) > least).all()
    assert (release - press > least).all()
    again = frame.groupby(["user", "session", "keyname"])["timepress"].shift(-1)
    assert not (frame["timerelease"] > again).any()


@pytest.mark.parametrize("text", TEXTS)
def test_a_clock_gives_whole_ticks_near_the_exact_times(text):
    exact = make_typists(3, 2, text)
    coarse = make_typists(3, 2, text, tick=15.6)
    assert (exact["keyname"] == coarse["keyname"]).all()
    for column in ("timepress", "timerelease"):
        ticks = coarse[column] / 15.6
        # Multiples up to 10⁵ are exact to 10⁻¹⁰.
        np.testing.assert_allclose(ticks, np.round(ticks), atol=1e-9)
        # Rounding moves a time by half a tick; keys within one tick are pushed on, and that is rare.
        assert np.mean(np.abs(coarse[column] - exact[column]) <= 7.81) > 0.9


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("chunk_users", [1, 3, 7, 100])
def test_chunks_do_not_matter(text, chunk_users):
    whole = make_typists(7, 2, text, 9, return_states=True, random_state=4)
    chunks = [
        make_typists(min(chunk_users, 7 - k), 2, text, 9, first_user=k, return_states=True, random_state=4)
        for k in range(0, 7, chunk_users)
    ]
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), whole)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("n_users", [1, 2, 5])
def test_batches_do_not_matter(text, n_users):
    task = TypingTask.of(5, 2, text, 9, None, None, 1, 0.1, 1.0, None, None, 0)
    batches = simulated_keystrokes(task, Streams(4), True, batch_size=n_users * 2 * 9)
    pd.testing.assert_frame_equal(batches, simulated_keystrokes(task, Streams(4), True))


@pytest.mark.parametrize("text", TEXTS)
def test_a_person_is_the_same_in_any_company(text):
    many = make_typists(12, 5, text, 11)
    few = make_typists(2, 3, text, 11, first_user=6)
    mine = many[many["user"].isin([6, 7]) & (many["session"] < 3)].reset_index(drop=True)
    pd.testing.assert_frame_equal(few, mine)
    last = make_typists(1, text=text, first_user=999_999)
    assert set(last["user"]) == {999_999}


def test_seeds():
    first = make_typists(3)
    pd.testing.assert_frame_equal(first, make_typists(3, random_state=0))
    press = first["timepress"].to_numpy()
    for other in (1, 2**64, None, np.random.default_rng(5), np.random.RandomState(0)):
        changed = make_typists(3, random_state=other)["timepress"].to_numpy()
        # Only the first press of each sample, zero, is the same.
        assert np.mean(press == changed) == pytest.approx(1 / 11)
    pd.testing.assert_frame_equal(first, make_typists(3, return_states=True).drop(columns="state"))


def test_streams_are_normal_and_independent_over_users_and_purposes():
    streams = Streams(3)
    users = np.arange(20_000)
    person, times = (streams.normals(users, purpose, (2,)) for purpose in (PERSON, TIMES))
    assert stats.kstest(person.ravel(), "norm").pvalue > ALPHA
    for one, other in (
        (person[:-1, 0], person[1:, 0]),
        (person[:, 0], person[:, 1]),
        (person[:, 0], times[:, 0]),
        (person[:-1, 1], times[1:, 0]),
    ):
        assert stats.pearsonr(one, other).pvalue > ALPHA
    assert stats.kstest(streams.uniforms(users, TIMES, (3,)).ravel(), "uniform").pvalue > ALPHA


@pytest.mark.parametrize("user", [0, 5])
def test_samples_are_drawn_from_the_typists_model(user):
    """Without mood, practice and digraphs; the password's keys are all distinct, so none is lifted early."""
    n = 6000
    frame = make_typists(
        1, n, first_user=user, mood=0.0, practice=0.0, digraphs=0.0, return_states=True, random_state=8
    )
    keys = frame["keyname"].iloc[:11].tolist()
    model = simulated_typist(user, keys, random_state=8)
    press, release = by_sample(frame, "timepress", 11), by_sample(frame, "timerelease", 11)
    states = by_sample(frame, "state", 11)
    duration, tau = np.log(release - press), np.log(np.diff(press, axis=1))
    pvalues = [stats.binomtest(int(states[:, 0].sum()), n, model.startprob_[0, 1]).pvalue]
    for k in range(11):
        for j in range(2):
            here = states[:, k] == j
            hold, interval = ((e.loc[k, j], e.scale[k, j]) for e in model.emission_)
            pvalues.append(stats.kstest(duration[here, k], stats.norm(*hold).cdf).pvalue)
            if k > 0:
                pvalues.append(stats.kstest(tau[here, k - 1], stats.norm(*interval).cdf).pvalue)
                before = states[:, k - 1] == j
                passive, chance = states[before, k], model.transmat_[k - 1, k, j, 1]
                pvalues.append(stats.binomtest(int(passive.sum()), len(passive), chance).pvalue)
    # The 63 comparisons together have one chance of a false alarm.
    assert min(pvalues) > ALPHA / len(pvalues)


def test_a_typists_model_knows_its_own_samples():
    """Each of five true models explains the samples of its own person best."""
    frame = make_typists(5, 20, mood=0.0, practice=0.0, digraphs=0.0)
    press, release = by_sample(frame, "timepress", 11), by_sample(frame, "timerelease", 11)
    # The first τ is missing.
    tau = np.diff(press, axis=1, prepend=np.nan)
    values = np.stack([release - press, tau], axis=2).reshape(5, 220, 2)
    events = frame["keyname"].to_numpy(dtype=object)[:220]
    models = [simulated_typist(user) for user in range(5)]
    scores = [[m.score(own, events=events, lengths=[11] * 20) for m in models] for own in values]
    assert np.argmax(scores, axis=1).tolist() == [0, 1, 2, 3, 4]


def test_people_are_spread_as_the_population_is():
    """The mean of a person's ln τ in the active state is the speed, plus the average habit at 57 keys."""
    speeds = [simulated_typist(user, list("etaoin")).emission_[1].loc[:, 0] for user in range(400)]
    mean, deviation = TRAITS["speed"]
    own = np.std(np.array(speeds) - np.mean(speeds, axis=1, keepdims=True), ddof=0) * np.sqrt(6 / 5)
    total = np.sqrt(deviation**2 + own**2 / 6)
    assert stats.kstest(np.mean(speeds, axis=1), stats.norm(mean, total).cdf).pvalue > ALPHA


def test_practice_makes_intervals_fall_as_published():
    """The shares of the password data, 316.8, 243.8 and 219.5 ms in sittings 1, 4 and 8.

    Over 100 people the mean of 50 samples is known to about 1 %; people differ in how they learn.
    """
    frame = make_typists(100, 400, sitting=50)
    tau = np.diff(by_sample(frame, "timepress", 11), axis=1).reshape(100, 8, 500).mean(axis=(0, 2))
    assert tau[3] / tau[0] == pytest.approx(243.8 / 316.8, abs=0.03)
    assert tau[7] / tau[0] == pytest.approx(219.5 / 316.8, abs=0.03)
    still = make_typists(20, 40, practice=0.0)
    early, late = np.diff(by_sample(still, "timepress", 11), axis=1).reshape(20, 2, 200).transpose(1, 0, 2)
    assert stats.ttest_ind(np.log(early).ravel(), np.log(late).ravel()).pvalue > ALPHA


def test_the_key_before_matters():
    """Same seed with and without: only the effect of the previous key is left. There may be exceptions."""
    for phrase, slower in (("dedededede", True), ("dsasdsas", True), ("dkdkslsl", False)):
        with_, without = (
            np.log(np.diff(by_sample(make_typists(60, phrase=phrase, digraphs=d), "timepress", len(phrase))))
            for d in (1.0, 0.0)
        )
        assert np.mean((with_ - without > 0) == slower) > 0.95


def test_mood_is_a_factor_of_the_whole_sample():
    a, b = (
        np.log(np.diff(by_sample(make_typists(50, mood=mood), "timepress", 11), axis=1)) for mood in (0.3, 0)
    )
    moods = a - b
    np.testing.assert_allclose(moods, np.repeat(moods[:, :1], 10, axis=1), atol=1e-9)
    assert stats.kstest(moods[:, 0] / 0.3, "norm").pvalue > ALPHA


def test_memory_does_not_grow_with_the_users():
    def peak(n_users):
        tracemalloc.start()
        for first in range(0, n_users, 200):
            make_typists(200, 4, first_user=first)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(200)
    # Ten times the users; a quarter more for what Python itself keeps.
    assert peak(4000) < 1.25 * peak(400)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number, 1 or more, not 0"),
        ({"n_users": 2.5}, "n_users must be a whole number"),
        ({"n_users": True}, "n_users must be a whole number"),
        ({"n_samples": -1}, "n_samples must be a whole number, 1 or more"),
        ({"n_keys": 0}, "n_keys must be a whole number, 1 or more"),
        ({"n_keys": 12}, "n_keys is 12, but the phrase has 11 keys"),
        ({"text": "song"}, "text must be one of fixed, copied, free, not 'song'"),
        ({"phrase": ""}, "the phrase is empty"),
        ({"phrase": "naïve"}, "there is no key for 'ï'"),
        ({"phrase": ["a", "hyper"]}, "no key is called 'hyper'"),
        ({"phrase": ["a", ["b"]]}, r"no key is called \['b'\]"),
        ({"phrase": 1234}, "phrase must be a text or names of keys, not 1234"),
        ({"text": "free", "phrase": "abc"}, "a phrase is for fixed text, not for free text"),
        ({"mistakes": 0.1}, "fixed text has no mistakes"),
        ({"text": "free", "mistakes": 0.9}, "mistakes must be a number from 0 to 0.5, not 0.9"),
        ({"practice": -0.1}, "practice must be a number from 0 to 1"),
        ({"mood": np.nan}, "mood must be a number from 0 to 1, not nan"),
        ({"digraphs": "strong"}, "digraphs must be a number"),
        ({"sitting": 0}, "sitting must be a whole number, 1 or more"),
        ({"tick": 0}, "tick must be a number from 0.001 to 1000, not 0"),
        ({"first_user": -1}, "first_user must be a whole number, 0 or more"),
        ({"first_user": 2**63}, "users are numbered up to"),
        ({"random_state": "dice"}, "random_state 'dice' is not a seed or generator"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_typists(**arguments)


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="user must be a whole number, 0 or more, not -1"):
        simulated_typist(-1)
    with pytest.raises(ValueError, match="users are numbered up to"):
        simulated_typist(2**63)
    with pytest.raises(ValueError, match="no key is called 'X'"):
        simulated_typist(0, ["a", "X"])
    with pytest.raises(ValueError, match="keys must be names of keys, not 'abc'"):
        simulated_typist(0, "abc")


def test_whole_numbers_of_any_kind_and_the_last_user():
    frame = make_typists(np.int8(2), np.int8(20), n_keys=np.int8(11))
    pd.testing.assert_frame_equal(frame, make_typists(2, 20, n_keys=11))
    assert set(make_typists(1, 1, first_user=2**63 - 1)["user"]) == {2**63 - 1}


def test_a_phrase_of_key_names():
    frame = make_typists(2, 3, phrase=NUMBER)
    assert (by_sample(frame, "keyname", 11) == np.array(NUMBER, dtype=object)).all()
    assert make_typists(1, 1, phrase="Ha?\n")["keyname"].tolist() == [
        "shift",
        "h",
        "a",
        "shift",
        "slash",
        "enter",
    ]
