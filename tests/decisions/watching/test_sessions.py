"""Watched sessions: the numbers of whole samples, in any interleaving, after any interruption."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.watching.sessions import WatchedSessions
from keydyn.decisions.watching.watch import LOCKED, TRUSTED, Watch
from keydyn.decisions.watching.watched import ABSENT, Watching
from keydyn.keystrokes.samples import Samples
from keydyn.lab.verification.watched_people import swapped
from keydyn.population import PopulationModel
from keydyn.population.stream.session_state import packed, parsed
from tests.decisions.calibration.test_cohort import by_hand as score_by_hand
from tests.population.simulated import people
from tests.population.test_model import of

SETTINGS = Watching(level=4.0, ratio_keeps=0.9, keep=0.8, allowed=0.05)


RATES = np.zeros((2, 41))
CALIBRATION = Calibration(
    np.array([5, 20]),
    np.array([0.5, 0.1]),
    np.array([0.4, 0.8]),
    np.full(2, 1e-3),
    *[RATES] * 4,
    np.full(41, 4.0),
    10,
    30.0,
)


def evidence(sums, keys):
    """The calibrated ratio, by hand."""
    score = score_by_hand(sums[0], sums[1:].tolist(), max(keys, 1.0))
    share = np.clip(np.log(np.rint(keys) / 5) / np.log(20 / 5), 0, 1)
    # One genuine sample in a thousand is typed as a stranger would.
    few, many = (np.log(0.999 * np.exp(line) + 0.001) for line in (0.5 + 0.4 * score, 0.1 + 0.8 * score))
    return (1 - share) * few + share * many


@pytest.fixture(scope="module")
def known():
    """A population, ten people's templates, and keystrokes of sessions in which four others take over."""
    frame = people(n_people=14, n_samples=4, n_keys=60, spread=0.6)
    everyone = Samples.of(frame, first="missing")
    model = PopulationModel().fit(everyone)
    templates = [model.enrol(of(everyone, user)[:3]) for user in range(10)]
    pairs = [((user, 3), (10 + user, 3)) for user in range(4)]
    sessions = pd.concat([swapped(frame, pairs, 30), frame[(frame["session"] == 3) & (frame["user"] < 4)]])
    sessions["session"] = np.repeat(np.arange(8), 60)
    return model, templates, sessions.reset_index(drop=True)


def watched(known, settings=SETTINGS):
    """Eight sessions, in the names of people 0 to 3 and again 0 to 3."""
    model, templates, _ = known
    return WatchedSessions(model, [*templates[:4], *templates[:4]], templates[4:], CALIBRATION, settings)


def by_hand(known, session):
    """Ratio, keys, suspicion and lock after each key, from their definitions."""
    model, templates, frame = known
    typed = Samples.of(frame[frame["session"] == session], first="missing")
    terms = model.event_log_likelihoods([templates[session % 4], *templates[4:]], typed)
    rows, sums, keys, weights, level, locked = [], np.zeros(7), 0.0, np.zeros(6), 0.0, False
    # What the last key was worth is never known.
    rows.append((np.nan, 0.0, 0.0, False))
    for term in terms[:-1]:
        sums, keys = 0.9 * sums + term, 0.9 * keys + 1
        step = term[0] - (logsumexp(weights + term[1:]) - logsumexp(weights))
        weights = 0.8 * (weights + term[1:])
        level = max(0.0, level - max(step, -2.0) - 0.05)
        locked |= level > 4.0
        rows.append((evidence(sums, keys), keys, level, locked))
    return np.array(rows)


def shown(found):
    return np.stack([found.ratio, found.keys, found.suspicion, found.locked], axis=1)


@pytest.mark.parametrize("at_a_time", [1, 37, 480])
def test_numbers_of_whole_sessions_in_any_interleaving(known, at_a_time):
    frame = known[2]
    random = np.random.default_rng(at_a_time)
    owner = frame["session"].to_numpy()
    order = np.empty(len(owner), dtype=np.int64)
    order[np.argsort(random.permutation(owner), kind="stable")] = np.arange(len(owner))
    sessions, found = watched(known), np.empty((len(owner), 4))
    for begin in range(0, len(order), at_a_time):
        rows = order[begin : begin + at_a_time]
        found[rows] = shown(sessions.update_keystrokes(frame.iloc[rows], owner[rows]))
    expected = np.concatenate([by_hand(known, session) for session in range(8)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    locked = expected[:, 3].reshape(8, 60).astype(bool)
    first = np.where(locked.any(axis=1), np.argmax(locked, axis=1) + 1, 0)
    np.testing.assert_array_equal(sessions.locked_at, first)
    # The change is noticed, and nobody is locked who is not to be.
    assert (sessions.locked_at[:4] > 30).all()
    assert (sessions.locked_at[4:] == 0).all()


@pytest.mark.parametrize("cut", [0, 1, 200, 479])
def test_what_is_saved_goes_on_elsewhere_bit_for_bit(known, cut):
    frame = known[2].sort_values("timepress", kind="stable")
    owner = frame["session"].to_numpy()
    one, other = watched(known), watched(known)
    one.update_keystrokes(frame.iloc[:cut], owner[:cut])
    other.update_keystrokes(frame.iloc[:90], owner[:90])
    for which in ([7, 1, 2], [0, 3, 4, 5, 6]):
        other.resume(one.state(which), which)
    np.testing.assert_array_equal(other.locked_at, one.locked_at)
    found, expected = (shown(x.update_keystrokes(frame.iloc[cut:], owner[cut:])) for x in (other, one))
    np.testing.assert_array_equal(found, expected)


def test_one_session(known):
    model, templates, frame = known
    typed = frame[frame["session"] == 2]
    watch = Watch(WatchedSessions(model, [templates[2]], templates[4:], CALIBRATION, SETTINGS))
    assert watch.standing == TRUSTED
    assert watch.locked_at is None
    found = [shown(watch.update(typed.iloc[n : n + 1])) for n in range(60)]
    expected = by_hand(known, 2)
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9, atol=1e-9)
    assert watch.standing == LOCKED
    assert watch.locked_at == np.argmax(expected[:, 3]) + 1
    state = watch.state()
    watch.restart()
    assert watch.standing == TRUSTED
    other = Watch(WatchedSessions(model, [templates[2]], templates[4:], CALIBRATION, SETTINGS))
    other.resume(state)
    assert other.standing == LOCKED
    # As values, in one call.
    press, release = typed["timepress"].to_numpy(), typed["timerelease"].to_numpy()
    values = np.stack([np.diff(press, prepend=np.nan), release - press], axis=1)
    found = shown(watch.update_values(values, typed["keyname"].tolist()))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_times_that_cannot_be_are_not_seen(known):
    """Keys pressed at once, released before they were pressed, or never."""
    model, templates, _ = known
    watch = Watch(WatchedSessions(model, [templates[0]], templates[4:], CALIBRATION, SETTINGS))
    strange = pd.DataFrame(
        {
            "keyname": list("abcda"),
            "timepress": [0, 0, 50, 40, 41],
            "timerelease": [10, 0, 20, np.nan, 60],
        }
    )
    found = watch.update(strange)
    assert np.isfinite(found.ratio[1:]).all()
    same = Watch(WatchedSessions(model, [templates[0]], templates[4:], CALIBRATION, SETTINGS))
    values = [[np.nan, 10.0], [np.nan, np.nan], [50.0, np.nan], [np.nan, np.nan], [1.0, 19.0]]
    np.testing.assert_array_equal(shown(same.update_values(values, list("abcda"))), shown(found))


@pytest.mark.parametrize("sums", [ABSENT, 0.999999 * ABSENT])
def test_a_state_leaves_someone_in_the_cohort(known, sums):
    """Also after the keys that follow: a sum that is only just above absent falls with the next key."""
    frame = known[2]
    typed = frame[frame["session"] == 0]
    sessions = watched(known)
    sessions.update_keystrokes(typed.iloc[:20], np.zeros(20, dtype=int))
    state = parsed(sessions.state([0]), sessions._record)
    altered = state["sums"].copy()
    altered[:, 1:-1] = sums
    with pytest.raises(ValueError, match="leave nobody in the cohort"):
        sessions.resume(packed(state | {"sums": altered}), [0])
    # One who counts is enough.
    altered[:, 2] = 0.0
    sessions.resume(packed(state | {"sums": altered}), [0])
    found = sessions.update_keystrokes(typed.iloc[20:], np.zeros(40, dtype=int))
    assert np.isfinite(found.ratio).all()


@pytest.mark.parametrize("session", [0, 1])
@pytest.mark.parametrize("name", ["locked_at", "sums"])
def test_no_state_of_several_has_a_count_below_zero(known, name, session):
    """When a session was locked, and how many keys count, whichever of the states says so."""
    sessions = watched(known)
    typed = known[2].iloc[:20]
    sessions.update_keystrokes(typed, np.arange(20) % 2)
    state = parsed(sessions.state([0, 1]), sessions._record)
    altered = state[name].copy()
    altered[(session, -1)[: altered.ndim]] = -1
    with pytest.raises(ValueError, match="out of range: locked_at or sums"):
        sessions.resume(packed(state | {name: altered}), [0, 1])
    sessions.resume(packed(state), [0, 1])


def test_a_key_that_no_person_could_have_typed_is_judged(known):
    """Its term under everybody is below that of an absent member of the cohort."""
    frame = known[2]
    typed = frame[frame["session"] == 0]
    sessions = watched(known)
    sessions.update_keystrokes(typed.iloc[:20], np.zeros(20, dtype=int))
    state = parsed(sessions.state([0]), sessions._record)
    sessions.resume(packed(state | {"values": np.full_like(state["values"], 1e12)}), [0])
    found = sessions.update_keystrokes(typed.iloc[20:], np.zeros(40, dtype=int))
    assert np.isfinite(found.ratio).all()
    assert np.isfinite(found.suspicion).all()


def test_what_is_refused_leaves_nothing(known):
    model, templates, frame = known
    sessions = watched(known)
    typed = frame[frame["session"] == 0]
    sessions.update_keystrokes(typed.iloc[:20], np.zeros(20, dtype=int))
    state = sessions.state()
    with pytest.raises(ValueError, match="timerelease"):
        sessions.update_keystrokes(typed[["keyname", "timepress"]], np.zeros(60, dtype=int))
    with pytest.raises(ValueError, match="numbered 0 to 7"):
        sessions.update_keystrokes(typed, np.full(60, 8))
    with pytest.raises(ValueError, match="per keystroke"):
        sessions.update_keystrokes(typed, np.zeros(59, dtype=int))
    with pytest.raises(ValueError, match="positive"):
        sessions.update([[-1.0, 5.0]], ["a"], [0])
    assert sessions.state() == state
    with pytest.raises(ValueError, match="does not fit"):
        sessions.resume(state, [0, 1])
    with pytest.raises(ValueError, match="another claimed"):
        sessions.resume(sessions.state([1]), [0])
    with pytest.raises(ValueError, match="no one in it"):
        WatchedSessions(model, [templates[0]], [], CALIBRATION, SETTINGS)
    with pytest.raises(ValueError, match="follows one session, not 8"):
        Watch(sessions)
    with pytest.raises(ValueError, match="level"):
        Watching(level=0.0)
    assert len(sessions.update(np.empty((0, 2)), [], []).ratio) == 0


def test_nobody_is_compared_with_themselves(known):
    """Leaving a member of the cohort out for one session is the same as a cohort without that member."""
    model, templates, frame = known
    two = [templates[4], templates[1]]
    own = WatchedSessions(model, two, templates[4:], CALIBRATION, SETTINGS, left_out=[0, -1])
    alone = WatchedSessions(model, two[:1], templates[5:], CALIBRATION, SETTINGS)
    whole = WatchedSessions(model, two[1:], templates[4:], CALIBRATION, SETTINGS)
    rows = frame[frame["session"] < 2].reset_index(drop=True)
    for _ in range(2):
        found = own.update_keystrokes(rows, rows["session"].to_numpy())
        for session, expected in enumerate((alone, whole)):
            own_rows = rows[rows["session"] == session].reset_index(drop=True)
            same = expected.update_keystrokes(own_rows, np.zeros(len(own_rows), dtype=np.int64))
            here = (rows["session"] == session).to_numpy()
            np.testing.assert_allclose(found.suspicion[here], same.suspicion, rtol=1e-12)
            np.testing.assert_allclose(found.ratio[here], same.ratio, rtol=1e-12)
            expected.restart()
        own.restart()
    # Another person in the first session, who is not in the cohort.
    own.restart([0], [templates[0]])
    other = WatchedSessions(model, [templates[0]], templates[4:], CALIBRATION, SETTINGS)
    first = rows[rows["session"] == 0].reset_index(drop=True)
    nought = np.zeros(len(first), dtype=np.int64)
    np.testing.assert_array_equal(
        own.update_keystrokes(first, nought).suspicion, other.update_keystrokes(first, nought).suspicion
    )
    with pytest.raises(ValueError, match="places in the cohort, 0 to 5, or -1"):
        WatchedSessions(model, two, templates[4:], CALIBRATION, SETTINGS, left_out=[6, -1])


def test_hidden_states_are_those_that_were_simulated() -> None:
    """Key by key from the stream, and of the whole session."""
    verifier = Verifier.shipped()
    typed = make_typists(1, 3, text="free", n_keys=150, return_states=True, random_state=2)
    session = typed[typed["session"] == 2].reset_index(drop=True)
    simulated, typed = session.pop("state").to_numpy(), typed.drop(columns="state")
    verifier.enrol("ada", typed[typed["session"] < 2].reset_index(drop=True))
    watch = verifier.watch("ada")
    assert np.isnan(watch.pausing)
    followed = []
    for n in range(len(session)):
        watch.update(session.iloc[[n]])
        followed.append(watch.pausing)
    # All keys at once: the same.
    at_once = verifier.watch("ada").update(session).pausing
    np.testing.assert_allclose(at_once, followed)
    whole = verifier.hidden_states("ada", session)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    assert roc_auc_score(simulated, whole[:, 1]) > 0.85
    # A key's state is known when the next key is.
    assert roc_auc_score(simulated[:-1], followed[1:]) > 0.8


def test_without_hidden_states_nobody_is_said_to_pause() -> None:
    frame = people(n_people=6, n_samples=3, n_keys=20)
    everyone = Samples.of(frame, first="missing")
    model = PopulationModel(hidden_states=False).fit(everyone)
    one, other = (model.enrol(of(everyone, user)[:2]) for user in (0, 1))
    watch = Watch(WatchedSessions(model, [one], [other], CALIBRATION, SETTINGS))
    watch.update(frame[(frame["user"] == 0) & (frame["session"] == 2)].reset_index(drop=True))
    assert np.isnan(watch.pausing)
