"""Parsing, checking and composing the text of frames of watched sessions.

For speed, nothing here loops over keystrokes in Python code: each check is one call of a built-in function.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import is_not, le
from typing import NamedTuple

import msgspec
from msgspec import structs

from keydyn.service.problems import Problem
from keydyn.service.wire.watch_frames import (
    FRAME_BYTES,
    Bye,
    ClientFrame,
    Hello,
    KeysFrame,
    ServiceFrame,
    TrustFrame,
    Unlock,
)

# The number of malformed frames after which the connection is closed.
BAD_FRAMES = 3

# Close codes. That of a refusal is 4000 plus the status of the problem, if it is one of `REFUSALS`, or 400.
ENDED, RESTARTING, BROKEN, LATER = 1000, 1012, 1011, 1013
NOT_AUTHENTICATED, NOT_FOUND, IDLE, TAKEN_OVER, TOO_SLOW = 4401, 4404, 4408, 4409, 4429
REFUSALS = (400, 401, 403, 404, 408, 409, 413, 429)


class Keys(NamedTuple):
    """Keystrokes, numbered from `first`: names, presses, and releases, which are None if not seen."""

    first: int
    names: tuple[str, ...]
    presses: tuple[float, ...]
    releases: tuple[float | None, ...]

    @property
    def last(self) -> int:
        """The number of the last keystroke."""
        return self.first + len(self.names) - 1

    def after(self, number: int) -> Keys:
        """The keystrokes after the one with this number."""
        n = number + 1 - self.first
        return self if n <= 0 else Keys(number + 1, self.names[n:], self.presses[n:], self.releases[n:])


Frame = Hello | Keys | Unlock | Bye


def bad(detail: str, status: int = 400) -> Problem:
    """The problem that reports a malformed frame or, with status 413, one that is too large."""
    title = "The frame is too large" if status == 413 else "The frame cannot be understood"
    return Problem(status, "frame-too-large" if status == 413 else "bad-frame", title, detail)


def parsed(text: str | None) -> Frame:
    """Parse the text of a message, None if it was binary; raise a `Problem` if it is not a valid frame."""
    if text is None:
        raise bad("frames are text, not binary")
    # A character has at least one byte, so that the first check is enough for frames that are far too large.
    if len(text) > FRAME_BYTES or (not text.isascii() and len(text.encode("utf-8", "replace")) > FRAME_BYTES):
        raise bad(f"a frame has at most {FRAME_BYTES} bytes", 413)
    try:
        frame = _DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise bad(str(error)[:200]) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise bad("it is not valid JSON") from None
    return _keys(frame) if isinstance(frame, KeysFrame) else frame


def close_code(status: int) -> int:
    """The code with which a connection is closed after a problem of this status."""
    return LATER if status == 503 else 4000 + (status if status in REFUSALS else 400)


def composed(frame: ServiceFrame) -> str:
    """Encode a frame as text."""
    return _ENCODER.encode(frame).decode()


def coarse(frame: TrustFrame) -> TrustFrame:
    """Reduce an answer to what browsers get: the trust after the last keystroke, in steps of 10 %.

    Exact numbers after each keystroke would show a stranger which keys to type differently.
    """
    last = [None if one is None else round(one, 1) for one in frame.trust[-1:]]
    return structs.replace(frame, trust=last, suspicion=[], pausing=None, states=None)


def problem_frame(problem: Problem) -> str:
    """Encode a problem as a frame: the fields of RFC 9457, with `type` renamed to `problem`."""
    fields = problem.as_json()
    return _ENCODER.encode({"type": "problem", "problem": fields.pop("type"), **fields}).decode()


def _keys(frame: KeysFrame) -> Keys:
    names, presses, releases = zip(*frame.keys, strict=True)
    if not "".join(names).isprintable():
        raise bad("a key's name has printable characters only")
    if list(presses) != sorted(presses):
        raise bad("keystrokes are in the order in which they were pressed")
    # Compare presses and releases only where the release was seen.
    seen = tuple(map(is_not, releases, repeat(None)))
    if not all(map(le, compress(presses, seen), compress(releases, seen))):
        raise bad("no key is released before it is pressed")
    return Keys(frame.first, names, presses, releases)


_DECODER = msgspec.json.Decoder(ClientFrame)
_ENCODER = msgspec.json.Encoder()
