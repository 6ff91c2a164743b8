"""Frames of watched sessions as text: checked before anything else sees them.

Nothing here loops over keystrokes in Python: their checks are single calls of functions that do.
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

# The number of frames that cannot be understood after which the connection is closed.
BAD_FRAMES = 3

# Close codes. Those of a refusal are 4000 + the status of the problem, of one of these statuses or else 400.
ENDED, RESTARTING, BROKEN, LATER = 1000, 1012, 1011, 1013
NOT_AUTHENTICATED, NOT_FOUND, IDLE, TAKEN_OVER, TOO_SLOW = 4401, 4404, 4408, 4409, 4429
REFUSALS = (400, 401, 403, 404, 408, 409, 413, 429)


class Keys(NamedTuple):
    """Keystrokes, numbered from `first`: names, presses and releases, None where one was not seen."""

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
    """A frame as text."""
    return _ENCODER.encode(frame).decode()


def coarse(frame: TrustFrame) -> TrustFrame:
    """What a browser sees of its keystrokes: the trust after the last of them, in steps of 10 %.

    Exact numbers after each keystroke would tell a stranger which ones to type otherwise.
    """
    last = [None if one is None else round(one, 1) for one in frame.trust[-1:]]
    return structs.replace(frame, trust=last, suspicion=[], pausing=None, states=None)


def problem_frame(problem: Problem) -> str:
    """A problem as a frame: the fields of RFC 9457, whose `type` is called `problem` here."""
    fields = problem.as_json()
    return _ENCODER.encode({"type": "problem", "problem": fields.pop("type"), **fields}).decode()


def _keys(frame: KeysFrame) -> Keys:
    names, presses, releases = zip(*frame.keys, strict=True)
    if not "".join(names).isprintable():
        raise bad("a key's name has printable characters only")
    if list(presses) != sorted(presses):
        raise bad("keystrokes are in the order in which they were pressed")
    # Those that were seen, beside their presses.
    seen = tuple(map(is_not, releases, repeat(None)))
    if not all(map(le, compress(presses, seen), compress(releases, seen))):
        raise bad("no key is released before it is pressed")
    return Keys(frame.first, names, presses, releases)


_DECODER = msgspec.json.Decoder(ClientFrame)
_ENCODER = msgspec.json.Encoder()
