"""Writes that are sent again: the same request gets the same answer, and any other is another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fastapi import Request
from msgspec import structs
from sqlalchemy import select

from keydyn.service.http.access import Caller
from keydyn.service.http.idempotency import change_once, once
from keydyn.service.http.openapi import LONGEST_KEY
from keydyn.service.http.routing import Call, Replayed
from keydyn.service.people import registry
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import idempotency
from keydyn.service.wire.answers import User
from keydyn.service.wire.both_ways import decoded
from tests.service.people.conftest import context, person_of, write

__all__ = ["context", "write"]
SENT = {"method": "POST", "path": "/v1/users", "query": "", "body": b"{}"}


@pytest.fixture
def asked(context, write):
    """A function that makes the call of a request with an `Idempotency-Key`."""

    def call(key="one", key_id="k", **changed):
        sent = SENT | changed
        scope = {
            "type": "http",
            "server": ("localhost", 80),
            "method": sent["method"],
            "path": sent["path"],
            "query_string": sent["query"].encode(),
            "headers": [] if key is None else [(b"idempotency-key", key.encode("latin-1"))],
            "state": {"caller": Caller(write.tenant, key_id), "body": sent["body"]},
            "app": SimpleNamespace(state=SimpleNamespace(context=context)),
        }
        return Call(Request(scope), 201)

    return call


def create(context, name="bob"):
    return lambda write: registry.create(context, write, name)


def test_the_same_request_has_the_same_answer(context, asked, write):
    made = once(asked(), create(context))
    with pytest.raises(Replayed) as caught:
        once(asked(), create(context, "eve"))
    assert caught.value.status == 201
    assert decoded(User, caught.value.body) == made
    with context.database.reading() as connection:
        (row,) = connection.execute(select(idempotency)).all()
    assert (row.key, row.created_at, row.tenant_id) == ("k/one", context.clock(), write.tenant.id)
    assert row.user_id == person_of(context, write, "bob").id


@pytest.mark.parametrize(
    "changed", [{"method": "PUT"}, {"path": "/v1/other"}, {"query": "x=1"}, {"body": b"{ }"}], ids=str
)
def test_another_request_with_the_same_key_is_refused(context, asked, changed):
    once(asked(), create(context))
    with pytest.raises(Problem) as caught:
        once(asked(**changed), create(context, "eve"))
    assert (caught.value.status, caught.value.kind) == (422, "idempotency-key-reused")


def test_the_parts_of_a_request_are_kept_apart(context, asked):
    once(asked(path="/ab", body=b"c"), create(context))
    with pytest.raises(Problem):
        once(asked(path="/a", body=b"bc"), create(context, "eve"))


def test_requests_of_other_callers_and_without_a_key_are_others(context, asked):
    once(asked(), create(context))
    once(asked(key_id="another"), create(context, "eve"))
    for name in ("zoe", "kim"):
        once(asked(None), create(context, name))
    with context.database.reading() as connection:
        keys = connection.execute(select(idempotency.c.key)).scalars().all()
    assert sorted(keys) == ["another/one", "k/one"]


@pytest.mark.parametrize(
    ("key", "is_taken"),
    [
        ("x" * LONGEST_KEY, True),
        ("x" * (LONGEST_KEY + 1), False),
        ("a b", True),
        ("", False),
        ("caf\xe9", False),
        ("a\tb", False),
    ],
)
def test_keys_are_short_and_printable(context, asked, key, is_taken):
    if is_taken:
        assert once(asked(key), create(context)).id == "bob"
        return
    with pytest.raises(Problem) as caught:
        once(asked(key), create(context))
    assert (caught.value.status, caught.value.kind) == (400, "bad-idempotency-key")


def test_a_problem_that_the_same_request_caused_is_answered_as_that_one_was(context, asked):
    """Both found no answer at first; the second is refused because of what the first has done."""
    first = []

    def overtaken(write):
        first.append(once(asked(), create(context)))
        return registry.create(context, write, "bob")

    with pytest.raises(Replayed) as caught:
        once(asked(), overtaken)
    assert decoded(User, caught.value.body) == first[0]


def test_a_problem_is_not_remembered(context, asked):
    with pytest.raises(Problem) as caught:
        once(asked(), create(context, "ada"))
    assert caught.value.kind == "user-exists"
    assert once(asked(), create(context)).id == "bob"


def test_an_answer_that_changes_later_is_replaced(context, asked):
    def changed(write):
        made = registry.create(context, write, "bob")
        write.amend(structs.replace(made, id="later"))
        return made

    once(asked("other"), create(context, "eve"))
    once(asked(), changed)
    answers = []
    for key in ("one", "other"):
        with pytest.raises(Replayed) as caught:
            once(asked(key), create(context))
        answers.append(decoded(User, caught.value.body).id)
    assert answers == ["later", "eve"]


def test_one_change_is_kept_with_its_answer_or_not_at_all(context, asked):
    found = registry.find_user(context, asked().caller.tenant, "ada")
    changes = []

    def change(connection, write):
        changes.append(write.tenant.id)
        return found

    assert change_once(asked(), change) == found
    with pytest.raises(Replayed):
        change_once(asked(), change)
    assert changes == [asked().caller.tenant.id]
    with context.database.reading() as connection:
        assert connection.execute(select(idempotency.c.user_id)).scalar_one() is None
