"""Sessions that come and go in one pool: plain arrays, single states, and updates that fail as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.watching import sessions as watched_sessions
from keydyn.decisions.watching.watched import Watched
from keydyn.population.stream import streams

USERS = "abcdef"


@pytest.fixture(scope="module")
def typing():
    frame = make_typists(6, 4, text="free", n_keys=60, random_state=8)
    return frame.assign(user=[USERS[user] for user in frame["user"]])


@pytest.fixture(scope="module")
def verifier(typing):
    verifier = Verifier.shipped()
    first = typing[typing["session"] < 3]
    verifier.enrol_many({user: first[first["user"] == user].reset_index(drop=True) for user in USERS})
    return verifier


@pytest.fixture
def last(typing):
    """Everybody's last sample, in the order of time; and whose each keystroke is."""
    frame = typing[typing["session"] == 3].sort_values("timepress", kind="stable").reset_index(drop=True)
    return frame, frame["user"].map(USERS.index).to_numpy()


def pool_of(verifier, slots=9):
    """Six of nine slots taken, in another order than the users'."""
    pool = verifier.watch_pool(slots)
    pool.restart(
        [7, 3, 0, 5, 1, 8],
        [verifier.person(user).template.template_ for user in USERS],
        [verifier.in_use.watched.place(user) for user in USERS],
    )
    return pool, np.array([7, 3, 0, 5, 1, 8])


def shown(found):
    return np.stack([found.ratio, found.keys, found.suspicion, found.locked], axis=1)


def lists(frame):
    return frame["keyname"].tolist(), frame["timepress"].tolist(), frame["timerelease"].tolist()


def test_a_slot_of_a_pool_is_a_session_like_any_other(verifier, last):
    frame, who = last
    pool, slots = pool_of(verifier)
    expected = verifier.watch_many(list(USERS), verifier.watching.level).update_keystrokes(frame, who)
    np.testing.assert_array_equal(shown(pool.update_typed(*lists(frame), slots[who])), shown(expected))
    # Somebody leaves, and somebody else begins in the same slot.
    place = verifier.in_use.watched.place("b")
    pool.restart([7], [verifier.person("b").template.template_], [place])
    mine = frame[who == 1]
    again = pool.update_typed(*lists(mine), np.full(len(mine), 7))
    np.testing.assert_array_equal(shown(again), shown(expected)[who == 1])


def test_arrays_codes_and_frames_are_the_same(verifier, last):
    frame, who = last
    keys, press, release = lists(frame)
    release[5] = None
    frame.loc[5, "timerelease"] = np.nan
    expected = shown(verifier.watch_many(list(USERS)).update_keystrokes(frame, who))
    for given in ((keys, press, release), (np.array(keys), np.array(press), frame["timerelease"].to_numpy())):
        np.testing.assert_array_equal(
            shown(verifier.watch_many(list(USERS)).update_typed(*given, who)), expected
        )
    sessions = verifier.watch_many(list(USERS))
    codes, pressed, released = sessions.check_typed(keys, press, release)
    np.testing.assert_array_equal(
        shown(sessions.update_typed(None, pressed, released, who, codes=codes)), expected
    )


def test_trust_is_the_probability_at_even_odds():
    ratio = np.array([np.nan, 0.0, np.log(3.0), -np.log(9.0), 800.0, -800.0])
    nothing = np.zeros(6)
    trust = Watched(ratio, nothing, nothing, nothing > 0, nothing).trust
    np.testing.assert_allclose(trust, [0.5, 0.5, 0.75, 0.1, 1.0, 0.0], rtol=1e-12, atol=1e-300)


def test_states_of_single_sessions(verifier, last):
    frame, who = last
    pool, slots = pool_of(verifier)
    half = len(frame) // 2
    pool.update_typed(*lists(frame[:half]), slots[who[:half]])
    each = pool.states_of(slots)
    assert each == [pool.state([slot]) for slot in slots]
    elsewhere, others = pool_of(verifier)[0], np.array([2, 4, 6, 0, 1, 3])
    elsewhere.restart(others, [verifier.person(user).template.template_ for user in USERS])
    elsewhere.resume(each, others)
    rest = lists(frame[half:])
    np.testing.assert_array_equal(
        shown(elsewhere.update_typed(*rest, others[who[half:]])),
        shown(pool.update_typed(*rest, slots[who[half:]])),
    )
    with pytest.raises(ValueError, match="damaged"):
        elsewhere.resume([each[0], each[1][:-8] + bytes(8)], others[:2])
    with pytest.raises(ValueError, match="another claimed template"):
        elsewhere.resume(each[::-1], others)
    beside = verifier.background.with_cohort({user: verifier.person(user).template for user in USERS})
    cohort = Verifier.of(beside).watch_pool(2)
    with pytest.raises(ValueError, match="different populations or cohorts"):
        elsewhere.resume([each[0], cohort.state([0])], others[:2])
    with pytest.raises(ValueError, match="there are no states"):
        elsewhere.resume([], [])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keys": ["a"]}, "one number per keystroke: 1"),
        ({"press": [1.0, None, 3.0]}, "line 1: timepress is missing"),
        ({"press": [1.0, float("inf"), 3.0]}, "line 1: timepress is beyond"),
        ({"press": [1.0, "2", 3.0]}, "timepress must be numbers"),
        ({"release": [5.0, 6.0]}, "timerelease must be one number per keystroke"),
        ({"release": [5.0, 6.0, 2.0**90]}, "line 2: timerelease is beyond"),
        ({"keys": ["a", "b", "c\0"]}, "null character"),
        ({"keys": ["a", "b", ["c"]]}, "must be text or whole numbers"),
    ],
)
def test_what_one_client_sends_wrong_disturbs_nobody(verifier, last, changed, message):
    frame, who = last
    pool, slots = pool_of(verifier)
    pool.update_typed(*lists(frame), slots[who])
    before = pool.state()
    wrong = {"keys": ["a", "b", "c"], "press": [1e6, 1e6 + 90, 1e6 + 200], "release": [None] * 3} | changed
    with pytest.raises(ValueError, match=message):
        pool.check_typed(**wrong)
    with pytest.raises(ValueError, match=r"\w"):
        pool.update_typed(**wrong, sessions=[7, 3, 0])
    assert pool.state() == before
    for sessions in ([7, 3], [7, 3, 9], [7, 3, -1], [7.0, 3.0, 0.0], [[7], [3], [0]]):
        with pytest.raises(ValueError, match=r"sessions|per keystroke"):
            pool.update_typed(["a", "b", "c"], [1e6, 1e6, 1e6], [None] * 3, sessions)
    assert pool.state() == before


@pytest.mark.parametrize(
    ("module", "name"), [(streams, "_follow"), (streams, "_score"), (watched_sessions, "_watch")]
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_is_interrupted_midway_is_as_it_was(verifier, last, monkeypatch, module, name, error):
    frame, who = last
    pool, slots = pool_of(verifier)
    half = len(frame) // 2
    pool.update_typed(*lists(frame[:half]), slots[who[:half]])
    before = pool.state()
    original = getattr(module, name)

    def fails(*arguments):
        original(*arguments)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fails)
        with pytest.raises(error):
            pool.update_typed(*lists(frame[half:]), slots[who[half:]])
    assert pool.state() == before
    whole = pool_of(verifier)[0].update_typed(*lists(frame), slots[who])
    rest = pool.update_typed(*lists(frame[half:]), slots[who[half:]])
    np.testing.assert_allclose(shown(rest), shown(whole)[half:], rtol=1e-9, atol=1e-12)


def test_a_restart_that_is_refused_changes_nothing(verifier):
    pool, _ = pool_of(verifier)
    before = pool.state()
    template = verifier.person("a").template.template_
    with pytest.raises(ValueError, match="left_out"):
        pool.restart([1], [template], [24])
    with pytest.raises(ValueError, match="left_out"):
        pool.restart([1, 2], [template, template], [-1])
    with pytest.raises(ValueError, match="2 templates for 1 sessions"):
        pool.restart([1], [template, template])
    with pytest.raises(ValueError, match="named twice"):
        pool.restart([1, 1], [template, template])
    assert pool.state() == before


def test_only_a_population_has_a_pool():
    from tests.decisions import typed_samples

    with pytest.raises(ValueError, match="population"):
        Verifier.of(typed_samples.background()).watch_pool(3)
    assert len(Verifier.of(shipped_background()).watch_pool(3)) == 3
