"""Jobs: a process forgets people when another process has erased them."""

from __future__ import annotations

from functools import partial

from sqlalchemy import delete, update

from keydyn.service.people.context import Context
from keydyn.service.people.job_handlers import AT_A_TIME, CaughtUp
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
