"""Watched sessions survive lost connections: every keystroke arrives once, in order."""

from __future__ import annotations

import itertools
import random

import pytest

from keydyn.client import NotEnrolled, NotFound, ServiceProblem, ServiceUnreachable, ServiceWatch
from tests.client.conftest import Client, Running
from tests.client.flaky_proxy import ANSWER_CUT, ANSWER_LOST, LOST, PASS, flaky, planned
from tests.waiting import PATIENCE


def typed(number: int, start: int = 0) -> list[tuple[str, float, float | None]]:
    """Keystrokes of keys that are named by numbers."""
    return [(str(n), 100.0 * n, 100.0 * n + 80) for n in range(start + 1, start + number + 1)]


def names(number: int) -> list[str]:
    return [str(n) for n in range(1, number + 1)]


def test_trust_comes_for_every_keystroke(fake: Running) -> None:
    with Client(fake.url, "a-key") as client, client.watch("ada", text="fixed:pin", device="phone") as watch:
        first = watch.send(typed(3))
        second = watch.send(typed(1, start=3))
        assert [one.keystroke for one in first + second] == [1, 2, 3, 4]
        assert [one.trust for one in first + second] == [1, 2, 3, 4]
        assert (watch.session, watch.locked, watch.durable) == ("5e55", False, 4)
    assert fake.session.stored == names(4)
    (hello,) = fake.session.hellos
    assert hello == {
        "type": "hello",
        "session": None,
        "text": {"kind": "fixed", "name": "pin"},
        "device": "phone",
        "token": None,
        "states": False,
        "authorization": "Bearer a-key",
    }


def test_many_keystrokes_go_in_frames_as_large_as_the_service_takes(fake: Running) -> None:
    with Client(fake.url, "key") as client, client.watch("ada") as watch:
        found = watch.send(typed(95))
    assert [one.keystroke for one in found] == list(range(1, 96))
    # Ten of keystrokes and the farewell.
    assert fake.session.frames == 11


def test_sending_nothing_is_nothing(fake: Running) -> None:
    with Client(fake.url, "key") as client, client.watch("ada") as watch:
        assert watch.send([]) == []
    assert fake.session.frames == 1


@pytest.mark.parametrize("lag", [0, 3, 100])
@pytest.mark.parametrize("fates", [*itertools.product((LOST, ANSWER_LOST, ANSWER_CUT), repeat=2)])
def test_after_a_lost_connection_what_is_not_durable_is_sent_again(
    fake: Running, fates: tuple[str, ...], lag: int
) -> None:
    fake.session.durable_lag = lag
    # The handshake, the hello and two batches pass; then two connections are lost.
    plan = planned(PASS, PASS, PASS, PASS, fates[0], PASS, PASS, fates[1])
    with flaky(fake.port, plan) as proxy, Client(proxy.url, "key") as client, client.watch("ada") as watch:
        for n in range(10):
            found = watch.send(typed(3, start=3 * n))
            # An answer that was lost is not asked for again once the keystrokes are durable.
            assert [one.keystroke for one in found] in ([3 * n + 1, 3 * n + 2, 3 * n + 3], [])
    assert fake.session.stored == names(30)
    assert proxy.connections >= 2
    assert all(hello["session"] == "5e55" for hello in fake.session.hellos[1:])


@pytest.mark.parametrize("seed", range(5))
def test_connections_that_are_lost_at_random_lose_no_keystroke(fake: Running, seed: int) -> None:
    chance = random.Random(seed)
    fates = [PASS] * 8 + [LOST, ANSWER_LOST, ANSWER_CUT]
    total = 0
    with (
        flaky(fake.port, lambda: chance.choice(fates)) as proxy,
        Client(proxy.url, "key", patience_s=PATIENCE) as client,
        client.watch("ada") as watch,
    ):
        for _ in range(20):
            fake.session.durable_lag = chance.randrange(40)
            number = chance.randrange(1, 40)
            watch.send(typed(number, start=total))
            total += number
    assert fake.session.stored == names(total)


def test_a_session_that_locks_and_is_unlocked(fake: Running) -> None:
    fake.session.locks_at = 5
    with Client(fake.url, "key") as client, client.watch("ada") as watch:
        assert not watch.locked
        assert [one.keystroke for one in watch.send(typed(8))] == [1, 2, 3, 4, 5]
        assert watch.locked
        assert watch.send(typed(2, start=8)) == []
        watch.unlock()
        assert not watch.locked
        assert [one.keystroke for one in watch.send(typed(2, start=10))] == [11, 12]
        watch.unlock()
    assert fake.session.unlocked == 1, "a session that is not locked is not unlocked"
    assert fake.session.stored == names(12)


@pytest.mark.parametrize("fate", [LOST, ANSWER_LOST])
def test_unlocking_survives_a_lost_connection(fake: Running, fate: str) -> None:
    fake.session.locks_at = 1
    plan = planned(PASS, PASS, PASS, fate)
    with flaky(fake.port, plan) as proxy, Client(proxy.url, "key") as client, client.watch("ada") as watch:
        watch.send(typed(1))
        assert watch.locked
        watch.unlock()
        assert not watch.locked
    assert fake.session.unlocked == 1


def test_the_end_waits_until_everything_is_durable(fake: Running) -> None:
    fake.session.durable_lag = 50
    plan = planned(PASS, PASS, PASS, LOST)
    with flaky(fake.port, plan) as proxy, Client(proxy.url, "key") as client:
        with client.watch("ada") as watch:
            watch.send(typed(4))
            assert watch.durable == 0
        assert watch.durable == 4
    assert fake.session.stored == names(4)


def test_an_earlier_session_goes_on(fake: Running) -> None:
    with Client(fake.url, "key") as client:
        with client.watch("ada") as watch:
            watch.send(typed(4))
        with client.watch("ada", session=watch.session) as again:
            assert again.durable == 4
            assert [one.keystroke for one in again.send(typed(2, start=4))] == [5, 6]
    assert fake.session.stored == names(6)


@pytest.mark.parametrize(
    ("kind", "status", "code", "expected"),
    [
        ("not-authenticated", 401, 4401, ServiceProblem),
        ("forbidden", 403, 4403, ServiceProblem),
        ("no-such-user", 404, 4404, NotFound),
        ("not-enrolled", 409, 4409, NotEnrolled),
        ("invalid-request", 422, 4400, ServiceProblem),
    ],
)
def test_refusals_are_raised_at_once(
    fake: Running, kind: str, status: int, code: int, expected: type[ServiceProblem]
) -> None:
    frame = {"type": "problem", "problem": f"urn:keydyn:problem:{kind}", "title": "No", "status": status}
    fake.session.refuse = frame, code
    with Client(fake.url, "key") as client, pytest.raises(expected) as caught, client.watch("ada"):
        pass
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert len(fake.session.hellos) == 1


def test_a_session_that_another_client_took_over_is_not_taken_back(fake: Running) -> None:
    fake.session.refuse = None, 4409
    with Client(fake.url, "key") as client, pytest.raises(ServiceProblem) as caught, client.watch("ada"):
        pass
    assert (caught.value.kind, caught.value.status) == ("taken-over", 409)
    assert len(fake.session.hellos) == 1


@pytest.mark.usefixtures("passing_time")
@pytest.mark.parametrize("code", [1012, 1013, 4408])
def test_a_service_that_restarts_is_waited_for(fake: Running, code: int) -> None:
    fake.session.refuse = None, code
    with Client(fake.url, "key") as client, pytest.raises(ServiceUnreachable):
        client.watch("ada").__enter__()
    assert len(fake.session.hellos) > 1


@pytest.mark.usefixtures("passing_time")
def test_a_service_that_is_full_is_asked_again_and_then_the_problem_is_raised(fake: Running) -> None:
    kind = "urn:keydyn:problem:too-many-sessions"
    fake.session.refuse = {"type": "problem", "problem": kind, "title": "Full", "status": 429}, 4429
    with Client(fake.url, "key") as client, pytest.raises(ServiceProblem) as caught:
        client.watch("ada").__enter__()
    assert caught.value.kind == "too-many-sessions"
    assert len(fake.session.hellos) > 1


def test_raw_events_cannot_be_watched(fake: Running) -> None:
    with Client(fake.url, "key") as client, client.watch("ada") as watch:
        with pytest.raises(ValueError, match="not raw events"):
            watch.send([{"type": "press", "key": "a", "time": 0}])
        assert len(watch.send(typed(1))) == 1


def test_an_error_in_the_block_is_raised_as_it_is(fake: Running) -> None:
    def fail(watch: ServiceWatch) -> None:
        raise KeyError

    with Client(fake.url, "key") as client, pytest.raises(KeyError), client.watch("ada") as watch:
        fail(watch)
    assert watch._connection is None


@pytest.mark.usefixtures("passing_time")
def test_frames_that_make_no_sense_are_not_believed(fake: Running) -> None:
    fake.session.refuse = ["no", "frame"], 1000
    with (
        Client(fake.url, "key") as client,
        pytest.raises(ServiceUnreachable, match="no type"),
    ):
        client.watch("ada").__enter__()
    assert len(fake.session.hellos) > 1
