"""Which recordings a study works on: those that were named, or all that are here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Recordings = TypeVar("Recordings")


def those_here(
    names: Sequence[str], usual: Sequence[str], load: Callable[[str], Recordings], instead: str, told: str
) -> tuple[list[Recordings], list[str]]:
    """The recordings, and what to tell about those that are not here.

    Without names all of the `usual` ones that are here; where none is, `instead`, and `told` says so. What
    was named must be here.
    """
    if names:
        return [load(name) for name in dict.fromkeys(names)], []
    found, messages = [], []
    for name in usual:
        try:
            found.append(load(name))
        except FileNotFoundError as error:
            messages.append(str(error))
    if not found:
        messages.append(told)
        found.append(load(instead))
    return found, messages
