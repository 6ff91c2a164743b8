"""Frames of a watched session, from the client and from the service, each of which names its `type`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from keydyn.service.wire.answers import TypedBy
from keydyn.service.wire.both_ways import about

# The largest frame in bytes, and how many keystrokes it may have.
FRAME_BYTES, KEYS_PER_FRAME = 32_768, 100
# Times in milliseconds, and numbers of keystrokes, are smaller than this.
LATEST_TIME, LAST_NUMBER = 1e15, 2**53 - KEYS_PER_FRAME
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
ShortText = Annotated[str, about(min_length=1, max_length=64, pattern=PRINTABLE)]
LongText = Annotated[str, about(min_length=1, max_length=4096, pattern=PRINTABLE)]
KeyName = Annotated[str, about(min_length=1, max_length=32)]
Time = Annotated[float, about(gt=-LATEST_TIME, lt=LATEST_TIME)]


class Hello(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="hello"):
    """The first frame: `token` from a browser, the rest beside an API key.

    `states` asks for the hidden states of keystrokes.
    """

    token: LongText | None = None
    session: ShortText | None = None
    text: Annotated[dict[ShortText, ShortText], about(min_length=1, max_length=4)] | None = None
    device: ShortText | None = None
    states: bool = False


class KeysFrame(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="keys"):
    """Keystrokes, numbered from `first`: name, press and release, null where it was not seen."""

    first: Annotated[int, about(ge=1, lt=LAST_NUMBER)]
    keys: Annotated[list[tuple[KeyName, Time, Time | None]], about(min_length=1, max_length=KEYS_PER_FRAME)]


class Unlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="unlock"):
    """Asks for a locked session to begin again, trusted."""

    token: LongText | None = None


class Bye(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="bye"):
    """Ends the connection, once everything is durable."""


ClientFrame = Hello | KeysFrame | Unlock | Bye


class Welcome(Struct, frozen=True, kw_only=True, tag_field="type", tag="welcome"):
    """Answers `Hello`: the session, and how much may be sent."""

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
    """Answers keystrokes: trust and suspicion after each of them that was judged, and whether a hand types.

    To a token: the trust after the last of them, in steps of 10 %, and whether a hand types.
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
    """The session was locked at this keystroke; the decision can be asked for by its id.

    Programs learn why, if it was not suspicion.
    """

    at: int
    decision: str = ""
    reason: str | None = None


class Unlocked(Struct, frozen=True, tag_field="type", tag="unlocked"):
    """Answers `Unlock`."""


class Durable(Struct, frozen=True, tag_field="type", tag="bye"):
    """Answers `Bye`: the last keystroke that is durable."""

    durable: int


ServiceFrame = Welcome | TrustFrame | Lock | Unlocked | Durable
