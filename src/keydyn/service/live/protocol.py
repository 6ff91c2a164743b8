"""What goes over the wire: text frames of JSON, checked before anything else sees them.

Nothing here loops over keystrokes: their checks are single calls of functions that do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import compress, repeat
from operator import is_not, le
from typing import Any, NamedTuple, NoReturn

from keydyn.service.problems import Problem

# The largest frame, how many keystrokes it may have, and how long a key's name may be.
FRAME_BYTES, KEYS_PER_FRAME, KEY_NAME = 32_768, 100, 32
# Times in milliseconds, and sequence numbers, are smaller than this.
LATEST, LAST_NUMBER = 1e15, 2**53
TOKEN, ID = 4096, 64
# Frames that cannot be understood: after so many, the connection is closed.
BAD_FRAMES = 3

# Close codes. Those of a refusal are 4000 + the status of the problem.
ENDED, RESTARTING, BROKEN, LATER = 1000, 1012, 1011, 1013
BAD_FRAME, NOT_FOUND, IDLE, TAKEN_OVER, TOO_LARGE, TOO_SLOW = 4400, 4404, 4408, 4409, 4413, 4429


@dataclass(frozen=True)
class Hello:
    """The first frame: `token` from a browser, the rest beside an API key.

    `states` asks for the hidden states of keystrokes.
    """

    token: str | None = None
    session: str | None = None
    text: dict[str, str] | None = None
    device: str | None = None
    states: bool = False


class Keys(NamedTuple):
    """Keystrokes, numbered from `first`: names, presses, and releases, None where one was not seen."""

    first: int
    names: tuple[str, ...]
    presses: tuple[float, ...]
    releases: tuple[float | None, ...]

    @property
    def last(self) -> int:
        """The number of the last keystroke."""
        return self.first + len(self.names) - 1

    def after(self, number: int) -> Keys:
        """Without the keystrokes up to this one."""
        n = number + 1 - self.first
        return self if n <= 0 else Keys(number + 1, self.names[n:], self.presses[n:], self.releases[n:])


@dataclass(frozen=True)
class Unlock:
    """Asks that a locked session begins again, trusted."""

    token: str | None = None


@dataclass(frozen=True)
class Bye:
    """Ends the connection, once everything is durable."""


Frame = Hello | Keys | Unlock | Bye


def bad(detail: str, status: int = 400) -> Problem:
    """The problem with a frame that cannot be taken."""
    title = "The frame is too large" if status == 413 else "The frame cannot be understood"
    return Problem(status, "frame-too-large" if status == 413 else "bad-frame", title, detail)


def parsed(text: str | None) -> Frame:
    """The frame in a message, None if that is binary; a `Problem` says what is wrong with it."""
    if text is None:
        raise bad("frames are text, not binary")
    # A character has at least one byte: this is cheap, and no frame is parsed that is far too large.
    if len(text) > FRAME_BYTES or (not text.isascii() and len(text.encode("utf-8", "replace")) > FRAME_BYTES):
        raise bad(f"a frame has at most {FRAME_BYTES} bytes", 413)
    try:
        frame = _DECODE(text)
    except (ValueError, RecursionError):
        raise bad("it is not valid JSON") from None
    if type(frame) is not dict:
        raise bad("a frame is an object")
    kind = frame.pop("type", None)
    reader = _READERS.get(kind) if type(kind) is str else None
    if reader is None:
        raise bad(f"type must be one of {', '.join(_READERS)}")
    fields, read = reader
    if not frame.keys() <= fields:
        raise bad(f"a frame of type {kind} has no fields but {', '.join(sorted(fields)) or 'its type'}")
    found: Frame = read(frame)
    return found


def composed(frame: dict[str, Any]) -> str:
    """A frame as text."""
    text: str = _ENCODE(frame)
    return text


def problem_frame(problem: Problem) -> str:
    """A problem as a frame: the fields of RFC 9457, whose `type` is called `problem` here."""
    fields = problem.as_json()
    return composed({"type": "problem", "problem": fields.pop("type"), **fields})


def _keys(frame: dict[str, Any]) -> Keys:
    first, keys = frame.get("first"), frame.get("keys")
    if type(first) is not int or not 1 <= first < LAST_NUMBER - KEYS_PER_FRAME:
        raise bad("first must be a whole number, 1 or more")
    if type(keys) is not list or not 1 <= len(keys) <= KEYS_PER_FRAME:
        raise bad(f"keys must be a list of 1 to {KEYS_PER_FRAME} keystrokes")
    if set(map(type, keys)) != {list} or set(map(len, keys)) != {3}:
        raise bad("a keystroke is a list of name, press and release")
    names, presses, releases = zip(*keys, strict=True)
    if set(map(type, names)) != {str} or not 1 <= min(map(len, names)) <= max(map(len, names)) <= KEY_NAME:
        raise bad(f"a key's name is a text of 1 to {KEY_NAME} characters")
    if not "".join(names).isprintable():
        raise bad("a key's name has printable characters only")
    if not set(map(type, presses)) <= _NUMBERS or not set(map(type, releases)) <= _TIMES:
        raise bad("press and release are numbers of milliseconds; release may be null")
    if list(presses) != sorted(presses):
        raise bad("keystrokes are in the order in which they were pressed")
    # Those that were seen, beside their presses.
    seen = tuple(map(is_not, releases, repeat(None)))
    pressed, released = tuple(compress(presses, seen)), tuple(compress(releases, seen))
    if not -LATEST < presses[0] <= presses[-1] < LATEST or max(released, default=0) >= LATEST:
        raise bad(f"times are below {LATEST:.0e} milliseconds")
    if not all(map(le, pressed, released)):
        raise bad("no key is released before it is pressed")
    return Keys(first, names, presses, releases)


def _hello(frame: dict[str, Any]) -> Hello:
    text = frame.get("text")
    if text is not None and (
        type(text) is not dict
        or not 1 <= len(text) <= 4
        or set(map(type, text.values())) != {str}
        or max(map(len, (*text, *text.values()))) > ID
    ):
        raise bad('text must be an object such as {"kind": "free"}')
    states = frame.get("states", False)
    if type(states) is not bool:
        raise bad("states must be true or false")
    names = _text(frame, "session", ID), text, _text(frame, "device", ID)
    return Hello(_text(frame, "token", TOKEN), *names, states)


def _text(frame: dict[str, Any], name: str, most: int) -> str | None:
    found = frame.get(name)
    if found is not None and (type(found) is not str or not 1 <= len(found) <= most):
        raise bad(f"{name} must be a text of 1 to {most} characters, or null")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_NUMBERS = {int, float}
_TIMES = {int, float, type(None)}
_DECODE = json.JSONDecoder(parse_constant=_refuse).decode
_ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_READERS: dict[str, Any] = {
    "hello": ({"token", "session", "text", "device", "states"}, _hello),
    "keys": ({"first", "keys"}, _keys),
    "unlock": ({"token"}, lambda frame: Unlock(_text(frame, "token", TOKEN))),
    "bye": (set(), lambda frame: Bye()),
}
