"""The data that a process keeps in memory."""

from __future__ import annotations

from keydyn.service.people.context import Crowd, Newest
from keydyn.service.storage import audit
from tests.service.people.conftest import logged, person_of


def test_the_newest_version_is_kept_and_the_least_used_thing_is_forgotten():
    held = Newest[str](2)
    held.put("a", 1, "first")
    held.put("a", 2, "second")
    held.put("a", 1, "late")
    assert held.get("a", 2) == "second"
    assert held.get("a", 1) is None
    held.put("b", 1, "b")
    held.get("a", 2)
    held.put("c", 1, "c")
    assert (held.latest("a"), held.latest("b"), held.latest("c")) == ("second", None, "c")
    held.drop("a")
    assert held.latest("a") is None


def test_a_thing_of_the_same_version_takes_the_place_of_the_one_before():
    held = Newest[str](2)
    for thing in ("first", "second"):
        held.put("a", 1, thing)
    assert held.get("a", 1) == held.latest("a") == "second"
    held.put("b", 1, "b")
    held.put("a", 1, "third")
    held.put("c", 1, "c")
    assert held.names() == ["a", "c"]


def test_things_are_forgotten_by_the_ids_of_their_owners():
    held = Newest[str](9)
    for name in ("a/x", "a/y", "ab/x", "b/a"):
        held.put(name, 1, name)
    held.drop_of(["a", "c"])
    assert held.names() == ["ab/x", "b/a"]


def test_a_crowd_is_of_the_rows_and_the_very_backgrounds_that_it_was_made_from():
    one, equal = [1], [1]
    crowd = Crowd([(1, 2)], {"x": one, "y": None}, [], {})
    assert crowd.is_of([(1, 2)], {"x": one, "y": None})
    assert not crowd.is_of([(1, 3)], {"x": one, "y": None})
    assert not crowd.is_of([(1, 2)], {"x": equal, "y": None})
    assert not crowd.is_of([(1, 2)], {"x": one})


def test_an_entry_of_the_log_names_a_person_by_pseudonym_and_may_name_nobody(context, write):
    key = person_of(context, write).key

    def note(connection):
        write.note(connection, 5, "seen", key, number=3)
        write.note(connection, 6, "asked")

    context.database.write(note)
    names = ("at", "actor", "action", "subject", "details")
    assert [tuple(one[name] for name in names) for one in logged(context, write)[-2:]] == [
        (5, "service", "seen", audit.pseudonym(key), {"number": 3}),
        (6, "service", "asked", "", {}),
    ]
