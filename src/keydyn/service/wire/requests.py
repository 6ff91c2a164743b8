"""The bodies of requests, with the limits of their fields. Unknown fields are an error."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, structs

from keydyn.service.wire.both_ways import (
    ABOUT_USER_ID,
    USER_ID,
    Device,
    Event,
    Level,
    Levels,
    Origin,
    Purpose,
    Settings,
    Text,
    about,
)

MOST_KEYSTROKES = 5000
LATEST = 1e15
PRINTABLE = r"^[^\x00-\x1f\x7f]"
Time = Annotated[float, about(ge=-LATEST, le=LATEST)]
KeyName = Annotated[str, about(pattern=f"{PRINTABLE}+$", min_length=1, max_length=64)]
UserId = Annotated[str, about(pattern=USER_ID, max_length=128)]
Secret = Annotated[str, about(max_length=200)]


class Request(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base class of the bodies of requests and their parts."""


class TypedText(Text, frozen=True, forbid_unknown_fields=True):
    """The text that was typed. Samples of texts of different kinds or names are never compared."""


class Keystroke(Request, frozen=True):
    """A key that was pressed. Times are milliseconds from an arbitrary start."""

    keyname: Annotated[KeyName, about("The key's name, such as `a` or `space`.")]
    timepress: Annotated[Time, about("When the key was pressed.")]
    timerelease: Annotated[
        Time | None, about("When it was released; missing if the release was not seen.")
    ] = None


class KeyEvent(Request, frozen=True, kw_only=True):
    """A raw keyboard event, as a browser or an operating system reports it."""

    type: Annotated[
        Literal["press", "release", "keydown", "keyup", "blur", "focus", "paste"], about("What happened.")
    ]
    key: Annotated[
        str, about("The key's name; empty for events without one.", pattern=f"{PRINTABLE}*$", max_length=64)
    ] = ""
    time: Annotated[Time, about("When it happened, in milliseconds.")]
    repeat: Annotated[bool, about("Whether the event repeats a key that is held.")] = False


class SampleBody(Request, frozen=True):
    """One sample: keystrokes, or raw events from which they are made."""

    keystrokes: Annotated[
        Annotated[list[Keystroke], about(min_length=1, max_length=MOST_KEYSTROKES)] | None,
        about("Keystrokes, in the order in which they were pressed."),
    ] = None
    events: Annotated[
        Annotated[list[KeyEvent], about(min_length=1, max_length=2 * MOST_KEYSTROKES)] | None,
        about("Raw events instead of keystrokes."),
    ] = None
    text: Annotated[
        TypedText | None, about("What was typed; by default what the token is for, or free text.")
    ] = None
    device: Annotated[
        Device | None, about("What it was typed on; by default what the token is for, or a keyboard.")
    ] = None

    def __post_init__(self) -> None:
        if (self.keystrokes is None) == (self.events is None):
            raise ValueError("send either keystrokes or events")


class NewSample(SampleBody, frozen=True):
    """A sample to enrol."""

    add: Annotated[
        bool,
        about(
            "Add the sample to an enrolment that is complete, if it is recognised as the user's at the level "
            "`high`. The template then follows it, as far as one sample may move it."
        ),
    ] = False


class ClaimBody(SampleBody, frozen=True):
    """A sample to verify."""

    level: Annotated[
        Level | None,
        about(
            "The security level, whose false-match rate is in the settings; by default that of the token, or "
            "`standard`."
        ),
    ] = None


class IdentifyBody(ClaimBody, frozen=True):
    """A sample whose typist is to be identified."""

    most: Annotated[int, about("The largest number of candidates to return.", ge=1, le=1000)] = 10


class NewUser(Request, frozen=True):
    """A user to create."""

    id: Annotated[UserId | None, about(f"{ABOUT_USER_ID} Random if not given.")] = None


class TokenBody(Request, frozen=True):
    """A token to make."""

    purpose: Annotated[Purpose, about("What the browser may do.")]
    seconds: Annotated[int, about("How long the token is valid.", ge=10, le=3600)] = 600
    session: Annotated[
        Annotated[str, about(pattern=r"^[0-9a-f]{32}$")] | None,
        about("The session to resume, or to unlock; by default a new one."),
    ] = None
    text: Annotated[TypedText, about("What is typed; the token is valid for nothing else.")] = TypedText()
    device: Annotated[Device, about("What it is typed on; the token is valid for nothing else.")] = "keyboard"
    level: Annotated[Level, about("The level at which samples are judged.")] = "standard"
    uses: Annotated[
        Annotated[int, about(ge=1, le=50)] | None,
        about(
            "How many samples may be sent with it: by default the samples that an enrolment needs, or 5 to "
            "verify. A token to watch is valid for one session."
        ),
    ] = None


class WebhookBody(Request, frozen=True):
    """An address to which events are sent."""

    url: Annotated[str, about("The address, which begins with https://.", min_length=8, max_length=2000)]
    events: Annotated[list[Event], about("The events to send.", min_length=1, max_length=4)]


class SessionBody(Request, frozen=True):
    """The credential that opens a session of a page: either a link or an API key."""

    link: Annotated[
        Secret | None, about("What follows `#link=` in a link of `keydyn serve` or `keydyn service link`.")
    ] = None
    key: Annotated[Secret | None, about("An API key with the scope admin.")] = None

    def __post_init__(self) -> None:
        if (self.link is None) == (self.key is None):
            raise ValueError("send either a link or a key")


class PopulationBody(Request, frozen=True, omit_defaults=False):
    """The population to learn: its kind of text and of device."""

    text: Annotated[TypedText, about("The kind of text.")] = TypedText()
    device: Annotated[Device, about("The kind of device.")] = "keyboard"


class ErrorRatesBody(PopulationBody, frozen=True):
    """The samples to measure with: their kind of text and of device."""


class TenantLevels(Levels, frozen=True, forbid_unknown_fields=True):
    """The largest share of strangers to accept, by security level."""


class TenantSettings(Settings, frozen=True, forbid_unknown_fields=True):
    """The settings that a tenant can change."""

    levels: Annotated[TenantLevels, about("The largest share of strangers to accept, by security level.")] = (
        TenantLevels()
    )
    origins: Annotated[
        tuple[Origin, ...], about("Origins of the tenant's own pages, as browsers name them.", max_length=20)
    ] = ()

    def __post_init__(self) -> None:
        structs.force_setattr(self, "origins", tuple(origin.rstrip("/").lower() for origin in self.origins))
