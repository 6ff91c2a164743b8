"""The frames of a watched session, sent by the client or by the service; each names its `type`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from keydyn.service.wire.answers import TypedBy
from keydyn.service.wire.both_ways import about

# The largest size of a frame, in bytes and in keystrokes.
FRAME_BYTES, KEYS_PER_FRAME = 32_768, 100
# Upper bounds of times in milliseconds, and of the numbers that keystrokes carry.
LATEST_TIME, LAST_NUMBER = 1e15, 2**53 - KEYS_PER_FRAME
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
ShortText = Annotated[str, about(min_length=1, max_length=64, pattern=PRINTABLE)]
LongText = Annotated[str, about(min_length=1, max_length=4096, pattern=PRINTABLE)]
KeyName = Annotated[str, about(min_length=1, max_length=32)]
Time = Annotated[float, about(gt=-LATEST_TIME, lt=LATEST_TIME)]


class Hello(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="hello"):
    """The first frame of a connection.

    A browser sends a `token`. A client that connects with an API key sends `session`, or `text` and `device`;
    `states` requests the hidden states of keystrokes.
    """

    token: LongText | None = None
    session: ShortText | None = None
    text: Annotated[dict[ShortText, ShortText], about(min_length=1, max_length=4)] | None = None
    device: ShortText | None = None
    states: bool = False


class KeysFrame(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="keys"):
    """Keystrokes, numbered from `first`: key name, press and release, which is null if it was not seen."""

    first: Annotated[int, about(ge=1, lt=LAST_NUMBER)]
    keys: Annotated[list[tuple[KeyName, Time, Time | None]], about(min_length=1, max_length=KEYS_PER_FRAME)]


class Unlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="unlock"):
    """Asks to unlock a locked session, whose trust then starts afresh."""

    token: LongText | None = None


class Bye(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="bye"):
    """Asks to end the connection, once everything is durable."""


ClientFrame = Hello | KeysFrame | Unlock | Bye


class Welcome(Struct, frozen=True, kw_only=True, tag_field="type", tag="welcome"):
    """Answers `Hello`: the session, and the limits of what may be sent."""

    session: str
    durable: int
    locked: bool
    restarted: bool = False
    level: float = 0.0
    keys_per_frame: int
    frame_bytes: int = FRAME_BYTES
    frames_in_flight: int = 1
    idle_s: float = 300.0


class TrustFrame(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="trust"):
    """Answers `KeysFrame`: trust and suspicion after each keystroke judged, and whether a hand types.

    A browser gets the trust after the last keystroke only, in steps of 10 %, and whether a hand types.
    """

    first: int
    last: int
    trust: Sequence[float | None]
    suspicion: Sequence[float]
    pausing: float | None
    locked: bool
    durable: int
    typed: TypedBy = "unsure"
    states: list[float | None] | None = None


class Lock(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="lock"):
    """Reports that the session was locked at keystroke `at`, by the decision with the id `decision`.

    `reason` says why the keystrokes were not typed by a hand. It is left out if suspicion locked the session,
    and for browsers.
    """

    at: int
    decision: str = ""
    reason: str | None = None


class Unlocked(Struct, frozen=True, tag_field="type", tag="unlocked"):
    """Answers `Unlock`."""


class Durable(Struct, frozen=True, tag_field="type", tag="bye"):
    """Answers `Bye` with the number of the last durable keystroke."""

    durable: int


ServiceFrame = Welcome | TrustFrame | Lock | Unlocked | Durable
