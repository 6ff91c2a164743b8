"""Who may ask how often, counted by a clock that the test moves."""

from __future__ import annotations

import pytest

from keydyn.service.http import limits
from keydyn.service.http.limits import Rates, by_address
from keydyn.service.problems import Problem


class Seconds:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self):
        return self.now


def admitted(rates, caller, number, **options):
    """How many of so many requests are."""
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


def test_callers_who_have_not_asked_for_longest_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "REMEMBERED_CALLERS", 2)
    rates = Rates(0.5, Seconds())
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
