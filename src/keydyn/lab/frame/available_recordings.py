"""Which recordings a study works on: those that were named, or all that are here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TypeVar

Recordings = TypeVar("Recordings")


def available_or_simulated(
    names: Sequence[str],
    default_names: Sequence[str],
    load: Callable[[str, str | PathLike[str] | None], Recordings],
    data: str | PathLike[str] | None,
    substitute: str,
    message_if_none: str,
) -> tuple[list[Recordings], list[str]]:
    """The recordings, loaded from `data`, and messages about those that are not here.

    Without names, these are all `default_names` that are here. If none is, `substitute` is loaded instead,
    and `message_if_none` is added. What was named must be here, and a folder that was named must have
    something.
    """
    if names:
        return [load(name, data) for name in dict.fromkeys(names)], []
    loaded, messages = [], []
    for name in default_names:
        try:
            loaded.append(load(name, data))
        except FileNotFoundError as error:
            messages.append(str(error))
    if not loaded and data is not None:
        raise FileNotFoundError(messages[0])
    if not loaded:
        messages.append(message_if_none)
        loaded.append(load(substitute, None))
    return loaded, messages
