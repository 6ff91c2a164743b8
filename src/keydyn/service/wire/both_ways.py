"""Types that are part of requests and of answers (moments, texts, a tenant's settings), and their JSON.

A client takes fields that it does not know from a newer service, and the service refuses them in a request:
`requests` has the strict forms of these.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec
from msgspec import Meta, Struct

Level = Literal["low", "standard", "high"]
Device = Literal["keyboard", "phone"]
Purpose = Literal["enrol", "verify", "watch", "unlock"]
Event = Literal["enrolment.complete", "session.locked", "template.drifted", "attempts.unusual"]
FREE, POSITIONS, KEYS, KEYBOARD, PHONE = "free", "positions", "keys", "keyboard", "phone"
USER_ID = r"^[A-Za-z0-9][A-Za-z0-9._~@+-]{0,127}$"
TEXT_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
ABOUT_USER_ID = "Your id for the person: preferably an opaque one, not a name or an address."
# At its end, a pattern of Python matches before a line break too.
ENDS_THERE = r"(?!\n)"
Message = TypeVar("Message")
_MILLISECOND = timedelta(milliseconds=1)


def about(description: str = "", *, pattern: str | None = None, **limits: Any) -> Meta:
    """What a field means, and its limits."""
    return Meta(
        description=description or None, pattern=None if pattern is None else pattern + ENDS_THERE, **limits
    )


class Text(Struct, frozen=True):
    """What was typed. Texts of different kinds, or of different names, are never compared."""

    kind: Annotated[
        Literal["free", "fixed", "positions"],
        about(
            '"free" for any text; "fixed" for a text that is the same each time; "positions" for such a text '
            'if only positions are sent, whose key names are then "1", "2" and so on.'
        ),
    ] = "free"
    name: Annotated[
        Annotated[str, about(pattern=TEXT_NAME)] | None, about("Which fixed text; null for free text.")
    ] = None

    def __post_init__(self) -> None:
        if (self.kind == FREE) != (self.name is None):
            raise ValueError("a fixed text needs a name, and a free text must not have one")

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the form "free", "fixed:NAME" or "positions:NAME"."""
        kind, _, name = text.partition(":")
        if kind not in ("free", "fixed", "positions") or (kind == FREE) == bool(name):
            raise ValueError(f'a text is "free", "fixed:NAME" or "positions:NAME", not {text!r}')
        return cls(kind, name or None)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.kind if self.name is None else f"{self.kind}:{self.name}"

    @property
    def vocabulary(self) -> str:
        """Which keys there are: positions in one text mean nothing in another."""
        return str(self) if self.kind == POSITIONS else KEYS


# One stranger in ten thousand is the smallest rate that the calibration's tables can state.
FalseMatchRate = Annotated[float, about(ge=0.0001, le=0.5)]


class Levels(Struct, frozen=True):
    """The largest share of strangers to accept, by security level."""

    low: Annotated[FalseMatchRate, about("At the level `low`.")] = 0.05
    standard: Annotated[FalseMatchRate, about("At the level `standard`.")] = 0.01
    high: Annotated[FalseMatchRate, about("At the level `high`.")] = 0.001

    def __post_init__(self) -> None:
        if not self.low >= self.standard >= self.high:
            raise ValueError("a higher level must not accept more strangers than a lower one")


Origin = Annotated[str, about(pattern=r"^https?://[A-Za-z0-9.\-\[\]:]{1,253}$", max_length=300)]


class Settings(Struct, frozen=True):
    """What a tenant may choose."""

    levels: Annotated[Levels, about("The largest share of strangers to accept, by security level.")] = (
        Levels()
    )
    samples_needed: Annotated[
        int, about("The number of samples that completes an enrolment.", ge=1, le=50)
    ] = 5
    updating: Annotated[
        bool, about("Whether templates follow samples that were accepted with confidence.")
    ] = True
    retention_days: Annotated[int, about("Days for which raw samples are kept.", ge=0, le=3650)] = 30
    lockouts_per_hour: Annotated[
        float,
        about(
            "How often per hour a watched session may be locked although the right person types.",
            ge=0.001,
            le=60,
        ),
    ] = 1.0
    learn_from_people: Annotated[
        bool, about("Whether enrolled people may become part of the tenant's own population and cohort.")
    ] = False
    origins: Annotated[
        tuple[Origin, ...], about("Origins of the tenant's own pages, as browsers name them.", max_length=20)
    ] = ()
    compare_people: Annotated[
        bool,
        about(
            "Whether samples of people who enrol are compared with the templates of others, so that error "
            "rates hold here; only scores are kept."
        ),
    ] = True
    takeover_chance: Annotated[
        float,
        about(
            "The largest chance, per user and 30 days, that strangers are accepted as this user.",
            ge=0.001,
            le=0.5,
        ),
    ] = 0.05
    takeovers_per_day: Annotated[
        Annotated[float, about(ge=0.01, le=10_000)] | None,
        about(
            "How many takeovers failed attempts may amount to per day, over all users, before every attempt "
            "is judged at the level `high`; by default one for every hundred users, and at least one."
        ),
    ] = None
    identifications_per_day: Annotated[
        int, about("Samples that each API key may identify per day.", ge=1, le=10_000_000)
    ] = 1000
    alarms: Annotated[
        float,
        about(
            "The largest share of people's own samples to reject as forged by a machine, and of each hundred "
            "keys of a watched session; with 0, none is rejected as such.",
            ge=0,
            le=0.5,
        ),
    ] = 0.01


class Moment(datetime):
    """A date in UTC, sent as whole milliseconds since 1970."""

    @classmethod
    def at(cls, milliseconds: int) -> Self:
        """The moment this long after the start of 1970."""
        return cls.fromtimestamp(0, UTC) + milliseconds * _MILLISECOND

    @property
    def milliseconds(self) -> int:
        """Since the start of 1970."""
        since: timedelta = self - Moment.at(0)
        return since // _MILLISECOND


def encoded(message: Any) -> bytes:
    """A message as JSON."""
    return _ENCODER.encode(message)


def decoded(kind: type[Message], contents: bytes) -> Message:
    """A message of this type from JSON.

    Raises `msgspec.ValidationError`, which names the place, if the JSON is no such message, and
    `msgspec.DecodeError` if it is not JSON at all.
    """
    found: Message = _decoder(kind).decode(contents)
    return found


def converted(kind: type[Message], value: Any) -> Message:
    """A message of this type from what JSON has been parsed to; the errors are those of `decoded`."""
    _decoder(kind)
    return msgspec.convert(value, kind)


def _sent(value: Any) -> int | float:
    if isinstance(value, Moment):
        return value.milliseconds
    if isinstance(value, float):
        # A NumPy number.
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be sent")


def _received(kind: type[Any], value: Any) -> Any:
    if kind is Moment and type(value) is int:
        try:
            return Moment.at(value)
        except OverflowError:
            raise ValueError("this date lies too far away") from None
    raise TypeError(f"Expected `int`, got `{type(value).__name__}`")


_ENCODER = msgspec.json.Encoder(enc_hook=_sent)


_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_PREPARING = Lock()


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """What decodes messages of this type. Only one thread at a time prepares types.

    While msgspec looks at the fields of a struct, which it does once, other threads see a struct that is half
    prepared. They would end the process with a segmentation fault.
    """
    found = _DECODERS.get(kind)
    if found is None:
        with _PREPARING:
            found = _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_received)
    return found
