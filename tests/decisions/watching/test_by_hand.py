"""Whether hands type watched sessions: in blocks of a hundred known keys, however the keys arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from keydyn.datasets import load_dataset, make_typists, reported_people
from keydyn.decisions import Targets, Verifier, recorded_samples
from keydyn.decisions.decision import ALARMS
from keydyn.decisions.liveness.hands import REASONS, typed_beside, with_manner
from keydyn.decisions.watching.by_hand import KEYS, LOCKED_SHARE, MOST, looks_in_name_of
from keydyn.keystrokes.schema import COLUMNS
from keydyn.lab.forgeries import FORGERS, joined
from keydyn.population import PopulationModel
from keydyn.population.stream.session_state import packed, parsed

PEOPLE = PopulationModel.shipped()
USERS = "abc"
N = 350


@pytest.fixture(scope="module")
def drawn():
    """Samples of three people who do not exist."""
    return PEOPLE.retyped(PEOPLE.draw(len(USERS), 1), 10, 120, 1)


@pytest.fixture(scope="module")
def verifier(drawn):
    """Each with three samples; suspicion locks nobody."""
    verifier = Verifier.shipped(Targets(lockouts_per_hour=0.001))
    for n, user in enumerate(USERS):
        verifier.enrol(user, drawn[drawn.users == n][:3])
    return verifier


def events_of(samples, n=N):
    """The first keys of samples, one after the other: intervals and holds, (n, 2), and names."""
    of = samples.sequences
    X = np.array(of.X[:n, [of.feature_names.index(name) for name in ("tau", "duration")]])
    X[np.isin(np.arange(len(X)), of.offsets), 0] = 200.0
    return X, of.event_types[of.codes[:n]].tolist()


@pytest.fixture(scope="module")
def typed(drawn):
    """What each types next: one a hand, one averages, one with keys that nobody knows and lost releases."""
    random = np.random.default_rng(2)
    own, recorded, texts = drawn[drawn.users == 0], drawn[drawn.users == 1][:3], drawn[drawn.users == 1][3:]
    forged = FORGERS["averages by pair"].forge(recorded, texts, random)
    found = [events_of(own[3:]), events_of(forged), events_of(drawn[drawn.users == 2][3:])]
    values, names = found[2]
    names[10:200:7] = ["a key of another world"] * len(names[10:200:7])
    values[5:200:9, 1] = np.nan
    return found


def whole(verifier, typed):
    """What is found of each session on its own, in one call."""
    found = []
    for user, (values, names) in zip(USERS, typed, strict=True):
        watch = verifier.watch(user)
        watched = watch.update_values(values, names)
        found.append(([look._replace(session=0) for look in watched.looks], watched.locked, watch))
    return found


def test_a_block_is_judged_as_a_sample_of_its_keys(verifier, typed):
    """Blocks are counted here key by key, and cut out of the session as samples."""
    found = whole(verifier, typed)
    for n, (looks, *_) in enumerate(found):
        values, names = typed[n]
        known = [name in PEOPLE.parameters.cells.vocabulary for name in names] & np.isfinite(values[:, 1])
        begin, count, expected = 0, 0, []
        for event in range(N):
            count += int(known[event])
            if count == KEYS:
                expected.append((begin, event))
                begin, count = event + 1, 0
        assert [look.event for look in looks] == [last for _, last in expected]
        assert len(expected) >= 2
        template = verifier.person(USERS[n]).template
        press = np.cumsum(values[:, 0])
        for (first, last), look in zip(expected, looks, strict=True):
            rows = slice(first, last + 1)
            frame = make_typists(1, 1, "free", last + 1 - first).assign(
                keyname=names[rows], timepress=press[rows], timerelease=(press + values[:, 1])[rows]
            )
            again = typed_beside(template.people, template.template_, recorded_samples(frame))[0]
            assert look.typed.llr == pytest.approx(again.llr, abs=1e-3)
            assert look.typed.answer == again.answer


def test_a_block_with_too_many_unknown_keys_is_not_judged(verifier, typed):
    values, names = (part[:N] for part in typed[1])
    names = [name if n % 3 else "a key of another world" for n, name in enumerate(names)]
    watch = verifier.watch("b")
    watched = watch.update_values(values, names)
    assert watched.looks == ()
    assert watch.typed.answer == "unsure"
    # What comes after it is a block of its own.
    after = watch.update_values(*typed[1])
    # Of the last ones before, which are too few to end a block, a third is unknown.
    earlier = N % MOST
    assert after.looks[0].event == KEYS - (earlier - sum(n % 3 == 0 for n in range(N - earlier, N))) - 1


def test_averages_lock_a_session_and_hands_do_not(verifier, typed):
    hand, averages, _ = whole(verifier, typed)
    assert not hand[1].any()
    assert hand[2].typed.answer != "no"
    looks, locked, watch = averages
    assert looks[0].typed.answer == "no"
    assert locked.tolist() == [n >= looks[0].event for n in range(N)]
    assert watch.locked_at == looks[0].event + 1
    assert watch.reason in REASONS
    watch.restart()
    assert (watch.typed.answer, watch.reason, watch.locked_at) == ("unsure", None, None)


def test_a_block_that_ends_with_the_first_key_of_a_message_locks_its_own_session(verifier, typed):
    last = whole(verifier, typed)[1][0][0].event
    sessions = verifier.watch_many(list(USERS))
    values, names = typed[1]
    sessions.update(values[:last], names[:last], np.full(last, 1))
    at = [0, last, 0]
    keys = [typed[s][1][n] for s, n in enumerate(at)]
    found = sessions.update(np.array([typed[s][0][n] for s, n in enumerate(at)]), keys, np.arange(3))
    assert [look.session for look in found.looks] == [1]
    assert found.locked.tolist() == [False, True, False]
    assert sessions.locked_at.tolist() == [0, last + 1, 0]


def test_without_alarms_it_is_said_and_nothing_is_locked(drawn, typed):
    verifier = Verifier.shipped(Targets(lockouts_per_hour=0.001, alarms=0.0))
    verifier.enrol("b", drawn[drawn.users == 1][:3])
    watch = verifier.watch("b")
    assert not watch.update_values(*typed[1]).locked.any()
    assert watch.typed.answer == "no"


SIZES = st.tuples(*[st.integers(0, 260)] * len(USERS))


@settings(max_examples=15, deadline=None)
@given(pieces=st.lists(st.tuples(SIZES, st.booleans(), st.integers(0, 9)), max_size=5))
def test_any_messages_and_any_interruption_give_the_same(verifier, typed, pieces):
    """Sessions interleaved in pieces of any size, stored and continued elsewhere between any two of them."""
    expected = whole(verifier, typed)
    sessions, done = verifier.watch_many(list(USERS)), np.zeros(3, dtype=int)
    looks, locked = [[], [], []], np.zeros((3, N), dtype=bool)
    for wanted, stored, seed in [*pieces, ((N, N, N), False, 0)]:
        sizes = np.minimum(wanted, N - done)
        owner = np.random.default_rng(seed).permutation(np.repeat(np.arange(3), sizes))
        place = np.empty(len(owner), dtype=int)
        for s in range(3):
            place[owner == s] = done[s] + np.arange(sizes[s])
        pairs = list(zip(owner.tolist(), place.tolist(), strict=True))
        values = np.array([typed[s][0][n] for s, n in pairs]).reshape(-1, 2)
        found = sessions.update(values, [typed[s][1][n] for s, n in pairs], owner)
        locked[owner, place] = found.locked
        for look in found.looks:
            looks[look.session].append(look._replace(event=int(place[look.event]), session=0))
        done += sizes
        if stored:
            kept, sessions = sessions.states_of(), verifier.watch_many(list(USERS))
            sessions.resume(kept)
    for s in range(3):
        assert looks[s] == expected[s][0]
        assert locked[s].tolist() == expected[s][1].tolist()
        assert sessions.typed(s) == expected[s][2].typed


def test_a_state_has_the_keys_of_its_block_alone(verifier, typed):
    sessions = verifier.watch_many(["a"])
    values, names = typed[0]
    sessions.update(values[:250], names[:250], np.zeros(250, dtype=int))
    state = parsed(sessions.state(), sessions._record)
    assert state["block_size"].tolist() == [50]
    np.testing.assert_allclose(state["block"][0, :50, 1:], values[200:250], rtol=1e-6)
    assert not state["block"][0, 50:].any()


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("block", (0, 3, 0), 0.5),
        ("block", (0, 3, 0), -1.0),
        ("block", (0, 3, 0), 1e6),
        ("block", (0, 3, 0), np.nan),
        ("block", (0, 3, 1), np.inf),
        ("block", (0, 3, 2), 0.0),
        ("block_size", 0, -1),
        ("block_size", 0, MOST),
        ("by_hand", (0, 0), 3.0),
        ("by_hand", (0, 1), np.nan),
        ("by_hand", (0, 2), 1.5),
        ("by_hand", (0, 3), float(len(REASONS))),
    ],
)
def test_a_state_that_cannot_be_is_refused(verifier, typed, name, place, value):
    sessions = verifier.watch_many(["a"])
    sessions.update(typed[0][0][:150], typed[0][1][:150], np.zeros(150, dtype=int))
    before = sessions.state()
    state = parsed(before, sessions._record)
    altered = state[name].copy()
    altered[place] = value
    with pytest.raises(ValueError, match=f"state's {name}"):
        sessions.resume(packed(state | {name: altered}))
    assert sessions.state() == before


@pytest.mark.parametrize("attack", ["averages by pair", "robot, random delays"])
def test_machines_are_noticed(drawn, attack):
    """Of ten sessions of three blocks each, most are."""
    recorded, random = drawn[drawn.users == 1][:3], np.random.default_rng(3)
    template = with_manner(PEOPLE, PEOPLE.enrol(recorded), recorded)
    claimed = Verifier.shipped().pattern.carrying(template)
    texts = drawn[drawn.users == 0]
    noticed = 0
    for _ in range(10):
        session = joined(FORGERS[attack].forge(recorded, texts[:3], random), 360)
        noticed += any(look.typed.answer == "no" for look in looks_in_name_of(claimed, session, ALARMS))
    assert noticed >= 8


def test_real_people_are_not_locked_more_often_than_stated(recordings):
    """People from whom nothing was learnt, and who are in no reported figure: the first sixty of Aalto."""
    typed = load_dataset("aalto", recordings).keystrokes[list(COLUMNS)]
    reported = set(reported_people(typed["user"].unique().tolist()))
    users = [user for user in typed["user"].unique() if user not in reported][:60]
    pattern, blocks, called, locked = Verifier.shipped().pattern, 0, 0, 0
    for _, one in typed[typed["user"].isin(users)].groupby("user", sort=False):
        samples = recorded_samples(one.reset_index(drop=True))
        claimed = pattern.carrying(with_manner(PEOPLE, PEOPLE.enrol(samples[:5]), samples[:5]))
        looks = looks_in_name_of(claimed, joined(samples[5:], samples[5:].sequences.n_events), ALARMS)
        blocks += len(looks)
        called += sum(look.typed.answer == "no" for look in looks)
        locked += sum(look.forged for look in looks)
    assert blocks > 150
    assert called <= binom.ppf(0.999, blocks, ALARMS)
    assert locked <= binom.ppf(0.999, blocks, LOCKED_SHARE * ALARMS)
