"""Checks that a database has everything that was acknowledged, and nothing half-written."""

from __future__ import annotations

import json
from collections import Counter

from sqlalchemy import func, select

from keydyn.service.accounts import find_tenant
from keydyn.service.live.session_rows import place
from keydyn.service.people.keystroke_payload import TypedKeys
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import (
    comparisons,
    fingerprints,
    idempotency,
    jobs,
    profiles,
    samples,
    tenants,
    users,
    watch_sessions,
)
from keydyn.service.storage.upgrading import check
from tests.service.faults.served import KEY

KEYS = MasterKeys([KEY])


def assert_whole(url, acknowledged, settled=False):
    """Check a database that is not in use; `settled` if no unanswered request may have had an effect."""
    with acknowledged.lock:
        names, complete = set(acknowledged.users), set(acknowledged.complete)
        stored, verified = dict(acknowledged.samples), Counter(acknowledged.verified)
        durable = dict(acknowledged.durable)
    database = Database(url)
    try:
        assert check(database).problems == ()
        with database.reading() as connection:
            tenant = find_tenant(connection, KEYS, connection.execute(select(tenants.c.id)).scalar_one())
            assert [report.problem for report in audit.verify_all(connection)] == [""]
            people = people_of(connection)
            assert_rows_fit(connection, people)
            assert_everything_opens(connection, tenant, people)
            by_name = {person["name"]: person for person in people.values()}
            assert names <= set(by_name)
            there = {row.id: row.profile_id for row in connection.execute(select(samples))}
            assert set(stored) <= set(there)
            logged = Counter(
                (entry["subject"], entry["action"]) for entry in audit.entries(connection, tenant.id)
            )
            for name, person in by_name.items():
                subject = audit.pseudonym(person["key"])
                counts = {action: logged[subject, action] for action in ("sample.stored", "verified")}
                expected = {
                    "sample.stored": sum(1 for owner in stored.values() if owner == name),
                    "verified": verified[name],
                }
                # What was not answered may have had its one effect.
                spare = 0 if settled else 1
                assert all(0 <= counts[what] - expected[what] <= spare for what in counts), (counts, expected)
            events = webhook_events(connection, tenant)
            for name in complete:
                assert events[name] == 1
            for row in connection.execute(select(watch_sessions)):
                assert row.sequence >= durable.get(row.id, 0)
            found = connection.execute(select(func.count()).select_from(watch_sessions)).scalar_one()
            assert found >= len(durable)
    finally:
        database.close()


def people_of(connection):
    return {
        row.id: {"name": row.name, "key": KEYS.unwrap(row.wrapped_key, f"users/{row.id}")}
        for row in connection.execute(select(users))
    }


def assert_rows_fit(connection, people):
    """Check that counts agree with the rows that they count."""
    numbers = {
        row.profile_id: (row.count, row.last, row.keystrokes)
        for row in connection.execute(
            select(
                samples.c.profile_id,
                func.count().label("count"),
                func.max(samples.c.number).label("last"),
                func.sum(samples.c.keystrokes).label("keystrokes"),
            ).group_by(samples.c.profile_id)
        )
    }
    for row in connection.execute(select(profiles)):
        assert row.user_id in people
        assert numbers[row.id] == (row.samples, row.samples, row.keystrokes)
        assert 0 <= row.fitted_samples <= row.samples
        assert (row.template is None) == (row.fitted_samples == 0)
        assert (row.complete_at is None) == (row.samples < 3)


def assert_everything_opens(connection, tenant, people):
    owners = {row.id: people[row.user_id]["key"] for row in connection.execute(select(profiles))}
    for row in connection.execute(select(profiles).where(profiles.c.template.is_not(None))):
        assert owners[row.id].open(row.template, f"profiles/{row.id}/template")
    for row in connection.execute(select(samples)):
        contents = owners[row.profile_id].open(row.contents, f"samples/{row.id}/contents")
        assert len(TypedKeys.from_bytes(contents)) == row.keystrokes
    for row in connection.execute(select(fingerprints)):
        assert owners[row.profile_id].open(row.contents, f"fingerprints/{row.profile_id}/contents")
    for row in connection.execute(select(comparisons)):
        assert row.claimed_id in owners
        sealed_at = f"comparisons/{row.profile_id}/{row.claimed_id}/contents"
        assert json.loads(owners[row.profile_id].open(row.contents, sealed_at))["scores"]
    for row in connection.execute(select(watch_sessions).where(watch_sessions.c.state.is_not(None))):
        assert owners[row.profile_id].open(row.state, place(row.id))
    for row in connection.execute(select(idempotency)):
        assert json.loads(tenant.key.open(row.answer, f"idempotency/{row.key}/answer"))


def webhook_events(connection, tenant):
    """The number of times that each person's enrolment is to be reported."""
    found = Counter()
    for row in connection.execute(select(jobs).where(jobs.c.kind == "webhook")):
        payload = json.loads(tenant.key.open(row.payload, f"jobs/{row.kind}/payload"))
        found[payload["report"]["data"]["user"]] += 1
    return found
