"""Delays after failed attempts, and the budget that they spend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from keydyn.service.jobs import queue, webhooks
from keydyn.service.people import registry
from keydyn.service.people.recognition import attempts
from keydyn.service.people.recognition.attempts import (
    FREE_FAILURES,
    LEVELS,
    UNIT,
    USERS_PER_TAKEOVER,
    Attempt,
    Counts,
    Spent,
)
from keydyn.service.people.rows import Stale
from keydyn.service.problems import Problem
from keydyn.service.storage import counters
from keydyn.service.storage.tables import users
from keydyn.service.wall_clock import DAY, SECOND
from keydyn.service.wire.requests import TenantLevels, TenantSettings
from tests.service.people.conftest import logged, person_of
from tests.service.running import KEYS
from tests.service.tries import failures_allowed

SETTINGS = TenantSettings()


def test_the_delay_doubles_from_half_a_minute_to_an_hour():
    delays = [attempts.delay_after(failures) // SECOND for failures in range(100)]
    assert delays[:5] == [0] * 5
    assert delays[5:12] == [30, 60, 120, 240, 480, 960, 1920]
    assert set(delays[12:]) == {3600}


def test_waiting_ends_and_is_never_longer_than_the_longest_delay():
    assert attempts.waiting_time(5, 1000, 1000) == 30 * SECOND
    assert attempts.waiting_time(5, 1000, 1000 + 30 * SECOND) == 0
    # A failure in the future, after the clock was set back.
    assert attempts.waiting_time(99, 10**15, 0) == 3600 * SECOND


rates = st.floats(0.0001, 0.5)


@given(st.lists(rates, min_size=3, max_size=3), st.floats(0.001, 0.5), st.sampled_from(LEVELS))
def test_no_sequence_of_failures_gives_strangers_more_than_the_chance_in_the_settings(given_, chance, asked):
    low, standard, high = sorted(given_, reverse=True)
    settings = TenantSettings(levels=TenantLevels(low, standard, high), takeover_chance=chance)
    failures = failures_allowed(settings, asked)
    # The union bound, from the rates themselves.
    union = sum(getattr(settings.levels, level) * number for level, number in failures.items())
    assert union <= chance + 1e-6
    # One more would not fit: nothing is withheld that the promise allows.
    spent = sum(attempts.cost_of(getattr(settings.levels, level)) * n for level, n in failures.items())
    assert spent + attempts.cost_of(high) > round(chance * UNIT)


def test_an_attempt_is_possible_again_when_enough_of_what_was_spent_has_expired():
    # All of 50,000 is spent, and one attempt at high costs 1,000.
    spent = [Spent(9 * DAY, 20_000), Spent(4 * DAY, 500), Spent(5 * DAY, 29_500)]
    assert attempts.spent_until(spent, SETTINGS, DAY) == 5 * DAY
    assert attempts.spent_until(spent[:2], SETTINGS, DAY) == DAY
    # The delay after failures in a row may last longer than that.
    counts = Counts(5, DAY, spent[:2])
    assert counts.waiting_time(SETTINGS, DAY) == 30 * SECOND


@pytest.mark.parametrize(
    ("asked", "spent", "judged"),
    [
        ("standard", 30_000, "standard"),
        ("standard", 30_001, "high"),
        ("low", 0, "standard"),
        ("high", 49_000, "high"),
        ("high", 49_001, None),
        ("low", 49_001, None),
    ],
)
def test_an_attempt_is_judged_at_the_next_level_that_fits(asked, spent, judged):
    assert attempts.fitting(asked, SETTINGS, spent) == judged


def counted(context, write, *made, tenant=None):
    """Count attempts to be ada; the waiting time after the last one."""

    def change(connection):
        ada, now = person_of(context, write), context.clock()
        return [attempts.count_attempt(connection, tenant or write.tenant, ada, one, now) for one in made][-1]

    return context.database.write(change)


def counts(context, write):
    with context.database.reading() as connection:
        return attempts.counts_of(connection, write.tenant, person_of(context, write).id, context.clock())


FAILED, ACCEPTED = Attempt("high", "high", accepted=False), Attempt("high", "high", accepted=True)


def test_failures_count_until_an_attempt_is_accepted_and_cost_for_longer(context, write):
    assert counted(context, write, *[FAILED] * (FREE_FAILURES - 1)) == 0
    before = counts(context, write)
    assert (before.failures, before.failed_at) == (FREE_FAILURES - 1, context.clock())
    assert counted(context, write, ACCEPTED) == 0
    after = counts(context, write)
    assert (after.failures, after.failed_at) == (0, 0)
    cost = attempts.cost_of(SETTINGS.levels.high)
    today = context.clock() // DAY
    assert after.spent == before.spent == [Spent((today + 31) * DAY, (FREE_FAILURES - 1) * cost)]
    context.clock.now += DAY
    assert counted(context, write, *[FAILED] * FREE_FAILURES) == 30 * SECOND
    # Each day's cost counts until its own end.
    assert counts(context, write).spent[1:] == [Spent((today + 32) * DAY, FREE_FAILURES * cost)]
    context.clock.now = (today + 31) * DAY
    assert [one.amount for one in counts(context, write).spent] == [FREE_FAILURES * cost]


def test_no_outcome_is_told_while_an_attempt_must_wait(context, write):
    counted(context, write, *[FAILED] * FREE_FAILURES)
    for made in (FAILED, ACCEPTED):
        with pytest.raises(Problem) as caught:
            counted(context, write, made)
        found = caught.value
        assert (found.status, found.kind, found.more) == (429, "too-many-attempts", {"retry_after": 30})
    context.clock.now += 30 * SECOND - 1
    with pytest.raises(Problem) as caught:
        counted(context, write, ACCEPTED)
    assert caught.value.more == {"retry_after": 1}
    context.clock.now += 1
    assert counted(context, write, ACCEPTED) == 0


def test_an_outcome_at_a_level_that_others_have_used_up_meanwhile_is_found_again_at_a_stricter_one(
    context, write
):
    standard = Attempt("standard", "standard", accepted=False)
    counted(context, write, *[standard] * 4)
    for accepted in (False, True):
        with pytest.raises(Stale):
            counted(context, write, Attempt("standard", "standard", accepted))
    # Judged more strictly than necessary does no harm.
    assert counted(context, write, Attempt("standard", "high", accepted=True)) == 0


def test_an_attempt_that_the_budget_no_longer_allows_says_when_it_will(context, write):
    poor = structs.replace(SETTINGS, takeover_chance=SETTINGS.levels.high)
    tenant = replace(write.tenant, settings=poor)
    until = (context.clock() // DAY + 31) * DAY - context.clock()
    assert counted(context, write, FAILED, tenant=tenant) == until
    with pytest.raises(Problem) as caught:
        counted(context, write, FAILED, tenant=tenant)
    found = caught.value
    assert (found.status, found.kind) == (429, "attempts-spent")
    assert found.more == {"retry_after": -(-until // SECOND)}


def test_a_locked_session_costs_as_much_as_a_failure_at_the_strictest_level(context, write):
    ada = person_of(context, write).id
    context.database.write(lambda c: attempts.count_lock(c, write.tenant, ada, context.clock()))
    found = counts(context, write)
    assert (found.failures, found.failed_at) == (1, context.clock())
    assert [one.amount for one in found.spent] == [attempts.cost_of(SETTINGS.levels.high)]


def test_a_failure_in_the_future_is_moved_to_now_and_one_in_the_past_is_not(context, write):
    counted(context, write, FAILED)
    ada, failed_at = person_of(context, write), context.clock()
    for now, expected in ((failed_at + 1, failed_at), (failed_at - 1, failed_at - 1)):
        context.database.write(lambda c, now=now: attempts.clock_set_back(c, ada, now))
        assert counts(context, write).failed_at == expected


@pytest.mark.parametrize(
    ("most", "people", "spent", "is_unusual"),
    [
        (1, 0, UNIT, False),
        (1, 0, UNIT + 1, True),
        (2, 0, 2 * UNIT, False),
        # By default one takeover is allowed, or one per hundred people.
        (None, 0, UNIT, False),
        (None, 0, UNIT + 1, True),
        (None, 2 * USERS_PER_TAKEOVER - 1, 2 * UNIT, False),
        (None, 2 * USERS_PER_TAKEOVER - 1, 2 * UNIT + 1, True),
    ],
)
def test_so_many_failures_at_a_tenant_are_unusual(context, write, most, people, spent, is_unusual):
    tenant = replace(write.tenant, settings=structs.replace(SETTINGS, takeovers_per_day=most))

    def change(connection):
        # With ada.
        rows = [{"id": f"{n}", "tenant_id": tenant.id, "name": f"{n}"} for n in range(people)]
        for row in rows:
            connection.execute(users.insert().values(**row, created_at=0, wrapped_key=b""))
        today = f"attempts/{context.clock() // DAY}"
        counters.add(connection, tenant.id, today, spent, context.clock() + DAY)
        found = attempts.counts_of(connection, tenant, person_of(context, write).id, context.clock())
        return found, attempts.allowed_level(tenant, found, "low", context.clock())

    found, level = context.database.write(change)
    assert found.unusual is is_unusual
    assert level == ("high" if is_unusual else "standard")


def test_unusually_many_failures_are_told_once_a_day(context, write):
    registry.create(context, write, "bob")
    few = structs.replace(SETTINGS, takeovers_per_day=0)
    tenant = replace(write.tenant, settings=few)

    def hook(connection):
        webhooks.create(connection, tenant, "https://example.org/", ["attempts.unusual"], now=0)

    context.database.write(hook)
    counted(context, write, FAILED, FAILED, tenant=tenant)
    assert [one["action"] for one in logged(context, write)].count("attempts.unusual") == 1
    assert logged(context, write)[-1]["actor"] == "service"
    context.clock.now += DAY
    counted(context, write, FAILED, tenant=tenant)
    assert [one["action"] for one in logged(context, write)].count("attempts.unusual") == 2
    lease = context.database.write(lambda c: queue.take(c, "webhook", context.clock()))
    report = lease.opened(KEYS).payload["report"]
    assert (report["type"], report["data"]) == ("attempts.unusual", {"level": "high"})
