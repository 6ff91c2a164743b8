"""Sessions over real sockets: the numbers are those of the verifier, even if connections are lost."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select
from websockets.exceptions import ConnectionClosed

from keydyn.service.storage.tables import users, watch_sessions
from tests.service.live.world import PEOPLE, QUICK, Server, make_database, session_of, undisturbed
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    found = make_database(f"sqlite:///{tmp_path_factory.mktemp('watch')}/service.db")
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(database):
    with Server(database) as found:
        yield found


def cut(rows, cuts):
    """Divide rows into frames (first, rows) after these numbers of keystrokes."""
    edges = [0, *sorted(n for n in cuts if n < len(rows)), len(rows)]
    return [(a + 1, rows[a:b]) for a, b in pairwise(edges) if b > a]


def numbers(answers, name):
    found = [value for answer in answers for value in answer[name]]
    return np.array([np.nan if value is None else value for value in found])


@given(st.sets(st.integers(1, 149), min_size=2), st.integers(0, len(PEOPLE) - 1))
@settings(max_examples=15, deadline=None)
def test_the_numbers_are_those_of_the_verifier_wherever_frames_are_cut(server, cuts, user):
    rows = session_of(PEOPLE[user])[:150]
    trust, suspicion, locked = undisturbed(PEOPLE[user], rows)
    with server.connect(PEOPLE[user]) as talk:
        assert not talk.welcome["locked"]
        answers = [talk.asked(first, part) for first, part in cut(rows, {*cuts, 75})]
    assert locked is None
    np.testing.assert_allclose(numbers(answers, "trust"), trust, rtol=1e-12)
    np.testing.assert_allclose(numbers(answers, "suspicion"), suspicion, rtol=1e-12)
    assert [answer["last"] for answer in answers][-1] == 150


def test_hidden_states_are_for_those_who_ask(server):
    """Each keystroke's is known with the next one: wherever frames are cut, it is that of one by one."""
    rows = session_of(PEOPLE[0])[:60]
    with server.connect(hello={"type": "hello", "states": True}) as talk:
        asked = [talk.asked(first, part) for first, part in cut(rows, {1, 7, 30})]
    with server.connect() as talk:
        single = [talk.asked(n + 1, [row]) for n, row in enumerate(rows)]
    assert not any("states" in answer for answer in single)
    assert [len(answer["states"]) for answer in asked] == [len(answer["trust"]) for answer in asked]
    expected = [answer["pausing"] for answer in single]
    assert expected[0] is None
    assert asked[0]["states"] == [None]
    np.testing.assert_allclose(numbers(asked, "states")[1:], expected[1:], rtol=1e-12)


def test_several_frames_in_flight_are_answered_in_order(server):
    rows = session_of(PEOPLE[0])[:150]
    frames = cut(rows, range(5, 150, 5))
    with server.connect() as talk:
        for first, part in frames:
            talk.keys(first, part)
        answers = [talk.hear() for _ in frames]
        assert [answer["first"] for answer in answers] == [first for first, _ in frames]
        np.testing.assert_allclose(numbers(answers, "trust"), undisturbed(PEOPLE[0], rows)[0], rtol=1e-12)
        talk.say({"type": "bye"})
        assert talk.hear() == {"type": "bye", "durable": 150}
        assert talk.close_code() == 1000


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), min_size=1, max_size=4))
@settings(max_examples=8, deadline=None)
def test_a_dropped_session_goes_on_elsewhere(server, other, drops):
    """Connections drop anywhere, and the next one goes to another engine on the same database."""
    rows = session_of(PEOPLE[1])[:180]
    trust, suspicion, _ = undisturbed(PEOPLE[1], rows)
    seen, session, durable = {}, None, 0
    for n, (sent, lost) in enumerate([*drops, (200, 0)]):
        talk = (server, other)[n % 2].connect(PEOPLE[1], session)
        session, durable = talk.welcome["session"], talk.welcome["durable"]
        assert not talk.welcome["restarted"]
        frames = cut(rows[: durable + sent], range(durable, 200, 7))
        for first, part in [frame for frame in frames if frame[0] > durable]:
            found = talk.asked(first, part)
            assert found["type"] == "trust"
            seen |= {
                first + k: pair for k, pair in enumerate(zip(found["trust"], found["suspicion"], strict=True))
            }
            assert found["durable"] >= durable
        # Sent, and the answer never read.
        for first, part in cut(rows[: durable + sent + lost], {durable + sent})[1:]:
            talk.keys(first, part[:100])
        talk.drop()
    # Answers to what was lost were never read.
    known = np.array(sorted(seen))
    assert known[-1] == 180
    assert len(known) >= 180 - sum(lost for _, lost in drops)
    found = np.array([[np.nan if v is None else v for v in seen[k]] for k in sorted(seen)])
    np.testing.assert_allclose(found[:, 0], trust[known - 1], rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], suspicion[known - 1], rtol=1e-12)


@pytest.fixture(scope="module")
def other(database):
    with Server(database) as found:
        yield found


def test_what_is_known_is_ignored_and_what_is_missing_is_asked_for(server):
    rows = session_of(PEOPLE[0])
    with server.connect() as talk:
        assert talk.asked(1, rows[:10])["last"] == 10
        again = talk.asked(3, rows[2:8])
        assert (again["first"], again["last"], again["trust"]) == (3, 8, [])
        over = talk.asked(8, rows[7:15])
        assert (over["first"], over["last"]) == (11, 15)
        assert len(over["trust"]) == 5
        gap = talk.asked(17, rows[16:20])
        assert gap["type"] == "problem"
        assert gap["problem"] == "urn:keydyn:problem:gap"
        assert gap["expected"] == 16
        rest = talk.asked(16, rows[15:60])
        np.testing.assert_allclose(rest["trust"], undisturbed(PEOPLE[0], rows[:60])[0][15:], rtol=1e-12)


def locked_session(server, **options):
    """A session in which another person takes over, up to the lock."""
    rows = session_of((PEOPLE[0], PEOPLE[1]))
    _, _, at = undisturbed(PEOPLE[0], rows)
    assert at
    assert at > 100
    talk = server.connect(PEOPLE[0], **options)
    answers = []
    for first, part in cut(rows, range(7, 200, 7)):
        answers.append(talk.asked(first, part))
        if answers[-1]["locked"]:
            break
    return talk, answers, rows, at


def test_a_session_that_locks_is_durable_before_anybody_hears_of_it(server, other, database):
    talk, answers, rows, at = locked_session(server)
    trust, suspicion, _ = undisturbed(PEOPLE[0], rows)
    # Not judged after the keystroke that locked it.
    assert len(numbers(answers, "trust")) == at
    np.testing.assert_allclose(numbers(answers, "suspicion"), suspicion, rtol=1e-12)
    np.testing.assert_allclose(numbers(answers, "trust"), trust, rtol=1e-12)
    last = answers[-1]["last"]
    assert answers[-1]["durable"] == last
    with database.reading() as connection:
        row = connection.execute(
            select(watch_sessions).where(watch_sessions.c.id == talk.welcome["session"])
        ).one()
    assert row.locked_at is not None
    assert row.sequence == last
    lock = talk.hear()
    assert (lock["type"], lock["at"]) == ("lock", at)
    more = talk.asked(last + 1, rows[last : last + 5])
    assert (more["locked"], more["trust"], more["last"]) == (True, [], last + 5)
    talk.drop()
    with other.connect(PEOPLE[0], talk.welcome["session"]) as again:
        assert again.welcome["locked"]
        durable = again.welcome["durable"]
        assert durable >= last
        still = again.asked(durable + 1, rows[durable : durable + 3])
        assert still["locked"]
        assert still["trust"] == []
        again.say({"type": "unlock"})
        assert again.hear() == {"type": "unlocked"}
        begin = durable + 3
        found = again.asked(begin + 1, rows[:40])
        assert not found["locked"]
        # From the beginning, trusted; with ten more it would be known for a recording of what came before.
        np.testing.assert_allclose(found["suspicion"], undisturbed(PEOPLE[0], rows[:40])[1], rtol=1e-12)


def test_unlocking_takes_the_right_token(server):
    talk, *_ = locked_session(server, hello={"type": "hello", "token": "secret"})
    talk.hear()
    for token in (None, "another"):
        talk.say({"type": "unlock", "token": token})
        refused = talk.hear()
        assert refused["status"] == 403
    talk.say({"type": "unlock", "token": f"unlock {talk.welcome['session']}"})
    assert talk.hear() == {"type": "unlocked"}
    talk.drop()


@pytest.mark.parametrize("in_one_process", [True, False])
def test_the_older_of_two_connections_is_closed_and_cannot_write(other, database, in_one_process):
    rows = session_of(PEOPLE[3])
    # The same process hands everything over: nothing is saved before, and that is waited for.
    limits = replace(QUICK, save_s=PATIENCE) if in_one_process else QUICK
    with Server(database, limits) as server:
        old = server.connect(PEOPLE[3])
        session = old.welcome["session"]
        old.asked(1, rows[:20])
        new = (server if in_one_process else other).connect(PEOPLE[3], session)
        durable = new.welcome["durable"]
        if in_one_process:
            assert durable == 20
        else:
            # It may be closed already.
            with contextlib.suppress(ConnectionClosed):
                old.keys(21, rows[20:30])
        assert old.close_code() == 4409
        found = new.asked(durable + 1, rows[durable:100])
        expected = undisturbed(PEOPLE[3], rows[:100])[0]
        np.testing.assert_allclose(numbers([found], "trust")[-80:], expected[-80:], rtol=1e-12)
        new.say({"type": "bye"})
        assert new.hear()["durable"] == 100


def test_who_is_not_admitted_hears_why(server):
    for user, hello, code, status in (
        ("nobody", {"type": "hello"}, 4404, 404),
        (PEOPLE[0], {"type": "hello", "token": "wrong"}, 4401, 401),
        (PEOPLE[0], {"type": "hello", "session": "0" * 32}, 4404, 404),
        (PEOPLE[0], {"type": "bye"}, 4400, 400),
        (PEOPLE[0], "nonsense", 4400, 400),
    ):
        talk = server.connect(user, hello=hello)
        assert talk.welcome["type"] == "problem"
        assert talk.welcome["status"] == status
        assert talk.close_code() == code
    # Nobody goes on with the session of somebody else.
    with server.connect(PEOPLE[0]) as talk:
        assert server.connect(PEOPLE[1], talk.welcome["session"]).close_code() == 4404
        assert talk.asked(1, session_of(PEOPLE[0])[:2])["last"] == 2


def test_erasing_a_person_ends_the_session(tmp_path):
    database = make_database(f"sqlite:///{tmp_path}/service.db")
    with Server(database) as server, server.connect(PEOPLE[2]) as talk:
        rows = session_of(PEOPLE[2])
        talk.asked(1, rows[:5])
        database.write(lambda connection: connection.execute(delete(users).where(users.c.id == PEOPLE[2])))
        with contextlib.suppress(ConnectionClosed):
            talk.keys(6, rows[5:9])
        assert talk.close_code() == 4404
    database.close()


def test_everything_is_durable_when_the_service_stops(tmp_path):
    database = make_database(f"sqlite:///{tmp_path}/service.db")
    rows = session_of(PEOPLE[2])
    with Server(database) as server:
        talk = server.connect(PEOPLE[2])
        talk.asked(1, rows[:33])
    assert talk.close_code() == 1012
    with Server(database) as server, server.connect(PEOPLE[2], talk.welcome["session"]) as again:
        assert again.welcome["durable"] == 33
        found = again.asked(34, rows[33:90])
        np.testing.assert_allclose(found["trust"], undisturbed(PEOPLE[2], rows[:90])[0][33:], rtol=1e-12)
    database.close()


def test_places_are_given_back(tmp_path):
    """Many sessions come and go, more than the smallest pool holds; none of them knows of another."""
    database = make_database(f"sqlite:///{tmp_path}/service.db")
    whose = [user for user in PEOPLE for _ in range(18)]
    rows = {user: session_of(user)[:40] for user in PEOPLE}
    expected = undisturbed(PEOPLE[1], rows[PEOPLE[1]])[0]
    with Server(database) as server:
        for _ in range(3):
            talks = [server.connect(user) for user in whose]
            for k in range(0, 40, 10):
                for user, talk in zip(whose, talks, strict=True):
                    talk.keys(k + 1, rows[user][k : k + 10])
                found = [talk.hear() for talk in talks]
            for answer in found[18:36]:
                np.testing.assert_allclose(answer["trust"], expected[30:], rtol=1e-12)
            for talk in talks:
                talk.drop()
        wait_until(lambda: not server.engine._leaving and not server.engine._pools)
        assert server.meter.now == 0
    database.close()


def test_memory_does_not_grow_with_keystrokes(server, database):
    rows = session_of(PEOPLE[0])[:100]

    def typed(talk, first, frames):
        for n in range(frames):
            found = talk.asked(first + 100 * n, rows)
            if found["locked"]:
                talk.hear()
                talk.say({"type": "unlock"})
                talk.hear()
        return first + 100 * frames

    def stored(talk):
        own = watch_sessions.c.id == talk.welcome["session"]
        with database.reading() as connection:
            return len(connection.execute(select(watch_sessions.c.state).where(own)).scalar_one())

    def in_use():
        # When garbage is collected by itself depends on the tests before this one.
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    with server.connect(PEOPLE[0]) as talk:
        tracemalloc.start()
        try:
            first = typed(talk, 1, 10)
            wait_until(lambda: talk.asked(1, rows[:1])["durable"] == first - 1)
            size, before = stored(talk), in_use()
            first = typed(talk, first, 40)
            wait_until(lambda: talk.asked(1, rows[:1])["durable"] == first - 1)
            after = in_use()
        finally:
            tracemalloc.stop()
        # The latest blocks of keys do not have the same number of hashes.
        assert stored(talk) < size + 500
        # A keystroke kept as a list, with its numbers, would take 160 bytes: 640,000 in all.
        assert after - before < 200_000
