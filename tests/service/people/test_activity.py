"""Counts from the audit log, against counting its entries one by one; on both databases."""

from __future__ import annotations

import random

from keydyn import __version__
from keydyn.service.accounts import Tenant
from keydyn.service.people.activity import COUNTED, over_time, standing
from keydyn.service.people.recognition.attempts import UNIT, cost_of, fitting
from keydyn.service.storage import audit
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import counters
from keydyn.service.wire.report_answers import StandingAnswer
from keydyn.service.wire.requests import TenantSettings
from tests.service.storage.rows import add_tenant, add_user

SINCE, LENGTH, PERIODS = 1_000, 100, 7


def test_what_happened_is_counted_by_period(database):
    chance = random.Random(3)
    entries = []
    for _ in range(300):
        action = chance.choice([*COUNTED, "verified", "verified", "identified", "user.created"])
        details = {}
        if action == "verified":
            answer = chance.choice(["accept", "reject", "unsure"])
            details = {"answer": answer, "level": chance.choice(["low", "standard", "high"])}
        elif action == "identified":
            details = {"nobody": chance.random() < 0.5}
        elif action == "sample.stored":
            details = {"number": chance.randrange(9)}
        entries.append((chance.randrange(SINCE - 50, SINCE + LENGTH * PERIODS + 50), action, details))

    def fill(connection):
        for tenant in ("a", "b"):
            add_tenant(connection, tenant)
        for at, action, details in entries:
            audit.append(connection, "a", audit.Entry(at, "operator", action, "", details))
        audit.append(connection, "b", audit.Entry(SINCE, "operator", "sample.stored"))

    database.write(fill)
    with database.reading() as connection:
        found = over_time(connection, "a", SINCE, PERIODS, LENGTH)
        rare = audit.newest(connection, "a", 300, "identified")
        later = audit.newest(connection, "a", 300, "identified", (rare[4]["at"], rare[4]["number"]))
    assert [period.at for period in found] == [SINCE + n * LENGTH for n in range(PERIODS)]
    for period in found:
        inside = [one for one in entries if period.at <= one[0] < period.at + LENGTH]
        for action, name in COUNTED.items():
            assert getattr(period, name) == sum(one[1] == action for one in inside)
        asked = [details["nobody"] for _, action, details in inside if action == "identified"]
        assert (period.identified, period.nobody) == (len(asked), sum(asked))
        for level in ("low", "standard", "high"):
            for answer in ("accept", "reject", "unsure"):
                expected = sum(details == {"answer": answer, "level": level} for _, _, details in inside)
                assert getattr(getattr(period.verified, level), answer) == expected
    # One kind of entry, the newest first, and on from the fifth.
    assert [one["at"] for one in rare] == sorted(
        (e[0] for e in entries if e[1] == "identified"), reverse=True
    )
    assert later == rare[5:]


def test_nothing_has_happened_yet(database):
    database.write(lambda connection: add_tenant(connection, "a"))
    with database.reading() as connection:
        found = standing(connection, Tenant("a", "shop", TenantSettings(), DataKey.new()), 7)
        assert found == StandingAnswer("shop", 7, __version__, 0, 0, 0, 0, 0, 0, 0, {})
        assert audit.newest(connection, "a", 10) == []


def test_people_are_blocked_who_have_no_attempt_left(database):
    """Exactly those: who has spent so much that one attempt fits still has it."""
    settings, now = TenantSettings(), 100
    one_left = round(settings.takeover_chance * UNIT) - cost_of(settings.levels.high)
    spent = {"nobody's": [], "one left": [one_left], "just over": [one_left + 1]}
    spent |= {"in parts": [one_left, 1], "in parts, one left": [one_left - 5, 5], "all": [UNIT]}
    over = [("expired", UNIT, now), ("expires next", UNIT, now + 1)]

    def fill(connection):
        for tenant in ("a", "b"):
            add_tenant(connection, tenant)
        for user in [*spent, *(name for name, _, _ in over)]:
            add_user(connection, user, "a")
        rows = [(user, amount, now + 5) for user, amounts in spent.items() for amount in amounts] + over
        for n, (user, amount, expires) in enumerate(rows):
            row = {"name": f"spent {n}", "user_id": user, "amount": amount, "expires_at": expires}
            connection.execute(counters.insert().values(tenant_id="a", **row))
        # The tenant's own count is nobody's.
        tenants_own = {"name": "all people", "user_id": None, "amount": UNIT, "expires_at": now + 5}
        connection.execute(counters.insert().values(tenant_id="a", **tenants_own))

    database.write(fill)
    blocked = [user for user, amounts in spent.items() if fitting("high", settings, sum(amounts)) is None]
    assert blocked == ["just over", "in parts", "all"]
    with database.reading() as connection:
        found = [
            standing(connection, Tenant(tenant, tenant, settings, DataKey.new()), now) for tenant in "ab"
        ]
    assert [(one.people, one.blocked) for one in found] == [(len(spent) + 2, len(blocked) + 1), (0, 0)]
