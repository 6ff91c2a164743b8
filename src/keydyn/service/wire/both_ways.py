"""Types that occur in both requests and answers (moments, texts, a tenant's settings), and their JSON.

These types ignore unknown fields, so that a client can talk to a newer service. The service refuses unknown
fields in a request: the strict forms of the types are in `requests`.
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
# In Python, `$` also matches before a line break at the end of the text.
ENDS_THERE = r"(?!\n)"
Message = TypeVar("Message")
_MILLISECOND = timedelta(milliseconds=1)


def about(description: str = "", *, pattern: str | None = None, **limits: Any) -> Meta:
    """Describe a field: its meaning, and the limits of its values."""
    return Meta(
        description=description or None, pattern=None if pattern is None else pattern + ENDS_THERE, **limits
    )


class Text(Struct, frozen=True):
    """The text that was typed. Samples of texts of different kinds or names are never compared."""

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
        """Parse the form "free", "fixed:NAME" or "positions:NAME"."""
        kind, _, name = text.partition(":")
        if kind not in ("free", "fixed", "positions") or (kind == FREE) == bool(name):
            raise ValueError(f'a text is "free", "fixed:NAME" or "positions:NAME", not {text!r}')
        return cls(kind, name or None)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.kind if self.name is None else f"{self.kind}:{self.name}"

    @property
    def vocabulary(self) -> str:
        """The set of key names in use: each text of positions has its own, all others share one."""
        return str(self) if self.kind == POSITIONS else KEYS


# The calibration's tables can state no smaller rate than one stranger in ten thousand.
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
    """The settings that a tenant can change."""

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
        """The moment this many milliseconds after the start of 1970."""
        return cls.fromtimestamp(0, UTC) + milliseconds * _MILLISECOND

    @property
    def milliseconds(self) -> int:
        """The milliseconds from the start of 1970 to this moment."""
        since: timedelta = self - Moment.at(0)
        return since // _MILLISECOND


def encoded(message: Any) -> bytes:
    """Encode a message as JSON."""
    return _ENCODER.encode(message)


def decoded(kind: type[Message], contents: bytes) -> Message:
    """Decode a message of the given type from JSON.

    Raises `msgspec.ValidationError`, which names the place, if the JSON does not fit the type, and
    `msgspec.DecodeError` if the contents are not JSON.
    """
    found: Message = _decoder(kind).decode(contents)
    return found


def converted(kind: type[Message], value: Any) -> Message:
    """Convert JSON that is already parsed to a message of the given type; raises the errors of `decoded`."""
    _decoder(kind)
    return msgspec.convert(value, kind)


def _sent(value: Any) -> int | float:
    if isinstance(value, Moment):
        return value.milliseconds
    if isinstance(value, float):
        # A NumPy float64, which is a subclass of float.
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
    """The decoder for messages of the given type, prepared by one thread at a time.

    While msgspec inspects the fields of a struct, which it does once, the struct is half prepared. Another
    thread that used it then would crash the process with a segmentation fault.
    """
    found = _DECODERS.get(kind)
    if found is None:
        with _PREPARING:
            found = _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_received)
    return found
