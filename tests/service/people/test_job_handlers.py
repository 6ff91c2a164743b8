"""Jobs: a process forgets people when another process has erased them."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import delete, update

from keydyn.service.jobs.queue import Job
from keydyn.service.people import job_handlers
from keydyn.service.people.background.populations import PopulationKind
from keydyn.service.people.context import Context
from keydyn.service.people.job_handlers import AT_A_TIME, CaughtUp, handlers
from keydyn.service.problems import Problem
from keydyn.service.storage.database import DatabaseUnavailableError
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import profiles, tenants, users
from tests.service.storage.rows import add_tenant, add_user


def add_person(connection, tenant, person):
    """Add a person with one profile of the same id."""
    add_user(connection, person, tenant)
    numbers = dict.fromkeys(["samples", "keystrokes", "known_keystrokes", "fitted_samples"], 0)
    of_typing = {"clock_tick": 0.0, "drift": 0.0, "text": "free", "device": "keyboard"}
    connection.execute(
        profiles.insert().values(id=person, user_id=person, created_at=0, version=1, **numbers, **of_typing)
    )


def erase(connection, tenant, person):
    """Erase a person as another process does."""
    connection.execute(delete(profiles).where(profiles.c.id == person))
    connection.execute(delete(users).where(users.c.id == person))
    one_more = update(tenants).where(tenants.c.id == tenant).values(erasures=tenants.c.erasures + 1)
    connection.execute(one_more)


def test_an_erased_person_is_forgotten_at_once_and_once_more_the_next_time(database):
    people = [f"person-{n}" for n in range(AT_A_TIME + 3)]

    def fill(connection):
        for tenant in ("a", "b"):
            add_tenant(connection, tenant)
        for person in people:
            add_person(connection, "a", person)

    database.write(fill)
    context = Context(database, MasterKeys([b"k" * 32]), lambda: 7)
    catch_up = CaughtUp(context)
    for person in people:
        context.people.put(person, 1, f"template of {person}")
    for held in (context.backgrounds, context.crowds):
        for owner in ("a", "b"):
            held.put(f"{owner}/free", 1, "made of templates")
    # No one has been erased so far, whenever the process began.
    catch_up()
    assert context.people.names() == people
    assert context.backgrounds.names() == context.crowds.names() == ["a/free", "b/free"]
    gone = [people[0], people[-1]]
    for person in gone:
        database.write(partial(erase, tenant="a", person=person))
    catch_up()
    assert context.people.names() == people[1:-1]
    # What rests on several people's templates is made again, but not that of other tenants.
    assert context.backgrounds.names() == context.crowds.names() == ["b/free"]
    # A request that was under way remembers somebody after all.
    context.people.put(gone[0], 1, "template")
    context.crowds.put("a/free", 1, "made of templates")
    catch_up()
    assert context.people.names() == people[1:-1]
    assert context.crowds.names() == ["b/free"]
    # Then nobody is looked for any more.
    context.people.put(gone[0], 1, "template")
    catch_up()
    assert gone[0] in context.people.names()


def job(write, **payload):
    return Job(write.tenant.id, payload, write.tenant.key, 1)


@pytest.mark.parametrize("kind", ["too-few-people", "not-allowed", "busy"])
def test_a_population_is_learnt_later_only_if_that_would_help(context, write, monkeypatch, kind):
    asked = []

    def refused(context, write, kind_of_typing):
        asked.append((write.tenant.id, write.actor, kind_of_typing))
        raise Problem(409, kind, "Not now")

    monkeypatch.setattr(job_handlers, "learn", refused)
    learn = partial(handlers(context)["learn-population"], job(write, device="phone", vocabulary="keys"))
    if kind == "busy":
        with pytest.raises(Problem):
            learn()
    else:
        learn()
    assert asked == [(write.tenant.id, "service", PopulationKind("phone", "keys"))]


@pytest.mark.parametrize("without", [True, False])
def test_a_population_is_removed_only_when_someone_left_it(context, write, monkeypatch, without):
    called = []
    for name in ("learn", "learn_again"):
        monkeypatch.setattr(job_handlers, name, lambda *_, name=name: called.append(name))
    handlers(context)["learn-population"](job(write, device="phone", vocabulary="keys", without=without))
    assert called == ["learn_again" if without else "learn"]


def test_templates_on_the_device_of_a_replaced_population_are_learnt_again(context, write, monkeypatch):
    def fill(connection):
        add_tenant(connection, "another")
        for tenant, person in ((write.tenant.id, "bob"), (write.tenant.id, "eve"), ("another", "zoe")):
            add_person(connection, tenant, person)
        connection.execute(update(profiles).where(profiles.c.id == "eve").values(device="phone"))

    context.database.write(fill)
    fitted = []
    monkeypatch.setattr(job_handlers, "_fitted", lambda _, *which: fitted.append(which))
    handlers(context)["migrate"](job(write, device="keyboard"))
    assert fitted == [(write.tenant.id, "bob")]


@pytest.mark.parametrize("is_done", [True, False])
def test_a_log_that_others_read_is_truncated_later(context, write, monkeypatch, is_done):
    monkeypatch.setattr(type(context.database), "truncate_log", lambda _: is_done)
    truncate = partial(handlers(context)["truncate-log"], job(write))
    if is_done:
        truncate()
    else:
        with pytest.raises(DatabaseUnavailableError):
            truncate()


@pytest.mark.parametrize("kind", ["learn-population", "fit", "own-people"])
def test_nothing_is_done_for_a_tenant_or_a_profile_that_is_gone(context, write, kind):
    payload = {"device": "keyboard", "vocabulary": "keys", "profile": "gone", "text": "free", "anew": True}
    handlers(context)[kind](Job("gone", payload, write.tenant.key, 1))
    handlers(context)["fit"](job(write, **payload))
