"""The data that a process keeps in memory."""

from __future__ import annotations

from keydyn.service.people.context import Newest


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
