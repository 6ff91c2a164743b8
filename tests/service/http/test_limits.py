"""Limits of rates, by a clock that the test moves, and limits of bodies that are waited for."""

from __future__ import annotations

import asyncio

import pytest
from fastapi import Request

from keydyn.service.http.limits import (
    ARRIVED,
    OF_A_TENANT,
    OF_ALL,
    WAITING,
    Bodies,
    HeavyWork,
    Rates,
    arrived_body,
    by_address,
    checked_size,
)
from keydyn.service.problems import Problem
from keydyn.service.settings import Deployment


class Seconds:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self):
        return self.now


def admitted(rates, caller, number, **options):
    """The number of requests that are admitted, of `number`."""
    refused = []
    for _ in range(number):
        try:
            rates.count(caller, **options)
        except Problem as problem:
            refused.append((problem.status, problem.kind))
    assert set(refused) <= {(429, "too-many-requests")}
    return number - len(refused)


def test_two_seconds_worth_may_come_at_once_and_then_as_many_as_time_gives():
    clock = Seconds()
    rates = Rates(5.0, clock)
    assert admitted(rates, "ada", 20) == 10
    clock.now += 1.0
    assert admitted(rates, "ada", 20) == 5
    clock.now += 0.5
    assert admitted(rates, "ada", 20) == 2
    # A request that is refused uses up what has come meanwhile.
    for _ in range(4):
        clock.now += 0.125
        assert admitted(rates, "ada", 1) == 0
    clock.now += 0.25
    assert admitted(rates, "ada", 1) == 1
    # Nobody saves up more than that.
    clock.now += 1_000.0
    assert admitted(rates, "ada", 20) == 10
    # Others have their own; a share has the same share of both.
    assert admitted(rates, "eve", 20) == 10
    assert admitted(rates, "token", 20, share=0.2) == 2
    clock.now += 1.0
    assert admitted(rates, "token", 20, share=0.2) == 1


def test_a_caller_who_is_slower_than_the_rate_is_never_refused():
    clock = Seconds()
    rates = Rates(0.25, clock)
    for _ in range(20):
        assert admitted(rates, "ada", 1) == 1
        clock.now += 4.0


def test_callers_who_have_not_asked_for_longest_are_forgotten():
    rates = Rates(0.5, Seconds(), remembered=2)
    assert [admitted(rates, caller, 1) for caller in ("a", "b", "a", "c", "b", "c")] == [1, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("a socket", "a socket", True),
        ("a socket", "another", False),
    ],
)
def test_a_network_of_ipv6_is_one_caller(one, other, is_same):
    assert (by_address(one) == by_address(other)) is is_same


def bodies(concurrent):
    return Bodies(Deployment(database="none", concurrent=concurrent, arrival_seconds=3600.0))


def sent(*parts, **headers):
    """A request whose body arrives in these parts, and then stops."""
    left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive():
        return left.pop(0) if left else await asyncio.Event().wait()

    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": lines}, receive)


async def refusals(waited_for, callers):
    """The status of each caller's request that is refused; None for the others, which are cancelled."""
    tasks = [asyncio.ensure_future(waited_for.read(sent(), caller, 10)) for caller in callers]
    # Each gets as far as it can, and those that are pushed out end.
    for _ in range(5):
        await asyncio.sleep(0)
    ended = [task.exception().status if task.done() else None for task in tasks]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return ended


@pytest.mark.parametrize(
    ("concurrent", "caller", "most"),
    # Four times as many bodies as requests: of a key half of them, of an address a sixteenth, or four.
    [(16, "key a", 32), (16, "peer 192.0.2.1", 4), (64, "peer 192.0.2.1", 16), (1, "key a", 4)],
)
def test_no_caller_has_more_bodies_on_their_way_than_its_part(concurrent, caller, most):
    found = asyncio.run(refusals(bodies(concurrent), [caller] * (most + 3)))
    assert found == [None] * most + [429] * 3


def test_the_oldest_body_is_given_up_when_all_places_are_taken():
    found = asyncio.run(refusals(bodies(1), [f"peer 192.0.2.{n}" for n in range(6)]))
    assert found == [408] * 2 + [None] * 4


@pytest.mark.parametrize("headers", [{}, {"content-length": "11"}, {"content-length": "x"}])
def test_no_more_is_read_of_a_body_than_it_may_have(headers):
    with pytest.raises(Problem) as caught:
        asyncio.run(bodies(1).read(sent(b"12345", b"678901", **headers), "key a", 10))
    assert (caught.value.status, caught.value.more["limit"]) == (413, 10)


def test_a_body_is_what_arrived_and_may_be_as_large_as_the_limit():
    left = [(b"67890", False), (b"12345", True)]

    async def receive():
        part, more = left.pop()
        return {"type": "http.request", "body": part, "more_body": more}

    waited_for, headers = bodies(1), [(b"content-length", b"10")]
    request = Request({"type": "http", "headers": headers}, receive)
    assert asyncio.run(waited_for.read(request, "key a", 10)) == b"1234567890"
    # Nothing is remembered of a body that has arrived.
    assert waited_for._callers == waited_for._waiting == {}


def test_the_places_of_a_caller_are_free_again_when_bodies_are_given_up():
    async def twice():
        waited_for = bodies(1)
        return [await refusals(waited_for, ["key a"] * 5) for _ in range(2)]

    assert asyncio.run(twice()) == [[None] * 4 + [429]] * 2


def test_a_client_that_leaves_amid_a_body_is_no_longer_waited_for():
    async def left():
        return {"type": "http.disconnect"}

    with pytest.raises(Problem) as caught:
        asyncio.run(bodies(1).read(Request({"type": "http", "headers": []}, left), "key a", 10))
    assert (caught.value.status, caught.value.kind) == (400, "gone")


@pytest.mark.parametrize(
    ("state", "message", "body"),
    [
        ({}, {"type": "http.request", "body": b"x"}, None),
        ({ARRIVED: True}, {"type": "http.request", "body": b"x"}, b"x"),
        ({ARRIVED: True}, {"type": "http.disconnect"}, None),
    ],
)
def test_a_body_that_arrived_with_its_headers_is_not_waited_for(state, message, body):
    async def receive():
        return message

    request = Request({"type": "http", "headers": [], "state": state}, receive)
    assert asyncio.run(arrived_body(request)) == body


def test_a_body_that_has_arrived_may_be_as_large_as_the_limit():
    assert checked_size(b"12345", 5) == b"12345"
    with pytest.raises(Problem) as caught:
        checked_size(b"123456", 5)
    assert (caught.value.status, caught.value.more["limit"]) == (413, 5)


class Turns:
    """Requests that take long, each of which runs until it is let go."""

    def __init__(self):
        self.heavy, self.running, self.go = HeavyWork(), [], asyncio.Event()

    async def one(self, tenant):
        """Run one; the status of the problem if it is refused."""
        try:
            async with self.heavy.turn(tenant):
                self.running.append(tenant)
                await self.go.wait()
                self.running.remove(tenant)
        except Problem as problem:
            return problem.status
        return None

    async def asked(self, tenants):
        """The tasks of some more requests, which have got as far as they can."""
        tasks = [asyncio.ensure_future(self.one(tenant)) for tenant in tenants]
        for _ in range(5):
            await asyncio.sleep(0)
        return tasks


def test_few_requests_of_a_tenant_that_take_long_run_at_once_some_wait_and_others_are_refused():
    async def ask():
        turns = Turns()
        tasks = await turns.asked(["a"] * (OF_A_TENANT + WAITING + 2))
        assert turns.running == ["a"] * OF_A_TENANT
        assert [task.result() for task in tasks if task.done()] == [429] * 2
        # Other tenants have their own turns.
        tasks += await turns.asked(["b"])
        assert turns.running == [*["a"] * OF_A_TENANT, "b"]
        turns.go.set()
        assert (await asyncio.gather(*tasks)).count(None) == OF_A_TENANT + WAITING + 1
        # Nothing is remembered of tenants whose requests have been answered, and all turns are free.
        assert turns.heavy._asked == turns.heavy._tenants == {}
        assert await turns.one("a") is None

    asyncio.run(ask())


def test_few_requests_of_all_tenants_that_take_long_run_at_once():
    async def ask():
        turns = Turns()
        tasks = await turns.asked([f"tenant-{n}" for n in range(OF_ALL + 2)])
        assert len(turns.running) == OF_ALL
        turns.go.set()
        assert await asyncio.gather(*tasks) == [None] * (OF_ALL + 2)

    asyncio.run(ask())
