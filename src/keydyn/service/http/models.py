"""What requests and answers look like, and how large they may be. The OpenAPI document is made from this."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from keydyn.service.jobs.webhooks import EVENTS
from keydyn.service.people.keystroke_payload import Typed, paired
from keydyn.service.people.texts import FREE, Text
from keydyn.service.settings import Level

MOST_KEYSTROKES = 5000
LATEST = 1e15
UserId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~@+-]{0,127}$", max_length=128),
    Field(description="Your id for the person: preferably an opaque one, not a name or an address."),
]
KeyName = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
TextName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Time = Annotated[float, Field(strict=True, ge=-LATEST, le=LATEST, allow_inf_nan=False)]
Purpose = Literal["enrol", "verify", "watch", "unlock"]
Event = Literal["enrolment.complete", "session.locked", "template.drifted"]
Device = Literal["keyboard", "phone"]


class Strict(BaseModel):
    """Fields that are not known are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Keystroke(Strict):
    """A key that was pressed; times in milliseconds, counted from whenever you like."""

    keyname: KeyName
    timepress: Time
    timerelease: Time | None = Field(None, description="Missing if the release was not seen.")


class KeyEvent(Strict):
    """A raw event, as a browser or an operating system reports it."""

    type: Literal["press", "release", "keydown", "keyup", "blur", "focus", "paste"]
    key: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    time: Time
    repeat: bool = Field(False, strict=True)


class TextKind(Strict):
    """What was typed. Texts of different kinds, or of different names, are never compared."""

    kind: Literal["free", "fixed", "positions"] = Field(
        "free",
        description='"free" for any text; "fixed" for a text that is the same each time; "positions" for '
        'such a text if only positions are sent, whose key names are then "1", "2" and so on.',
    )
    name: TextName | None = Field(None, description="Which fixed text.")

    @model_validator(mode="after")
    def _named(self) -> TextKind:
        if (self.kind == FREE) != (self.name is None):
            raise ValueError("a fixed text needs a name, and a free text must not have one")
        return self

    @property
    def text(self) -> Text:
        """As the rest of the service has it."""
        return Text(self.kind, self.name or "")


class SampleBody(Strict):
    """One sample: keystrokes, or raw events from which they are made."""

    keystrokes: Annotated[list[Keystroke], Field(min_length=1, max_length=MOST_KEYSTROKES)] | None = None
    events: Annotated[list[KeyEvent], Field(min_length=1, max_length=2 * MOST_KEYSTROKES)] | None = None
    text: TextKind = TextKind(kind="free", name=None)
    device: Device = "keyboard"

    @model_validator(mode="after")
    def _one_of(self) -> SampleBody:
        if (self.keystrokes is None) == (self.events is None):
            raise ValueError("send either keystrokes or events")
        return self

    @property
    def typed(self) -> Typed:
        """The keystrokes, whichever way they were sent."""
        if self.keystrokes is None:
            return paired([event.model_dump() for event in self.events or []]).resolved()
        rows = self.keystrokes
        return Typed(
            tuple([row.keyname for row in rows]),
            tuple([row.timepress for row in rows]),
            tuple([row.timerelease for row in rows]),
        ).resolved()


class ClaimBody(SampleBody):
    """A sample to be judged."""

    level: Level = Field(
        "standard", description="The security level, whose false-match rate is in the settings."
    )


class IdentifyBody(ClaimBody):
    """A sample whose typist is asked for."""

    most: int = Field(
        10, strict=True, ge=1, le=1000, description="The largest number of candidates to return."
    )


class NewUser(Strict):
    """Somebody to create."""

    id: UserId | None = Field(None, description="Random if not given.")


class TokenBody(Strict):
    """A token to make."""

    purpose: Purpose
    seconds: int = Field(600, strict=True, ge=10, le=3600, description="How long it is valid.")
    session: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None, description="The session to resume, or to unlock; by default a new one."
    )
    text: TextKind = Field(
        TextKind(kind="free", name=None), description="What is typed in a watched session."
    )
    device: Device = "keyboard"


class NewWebhook(Strict):
    """Where events are sent."""

    url: Annotated[str, StringConstraints(min_length=8, max_length=2000)]
    events: Annotated[list[Event], Field(min_length=1, max_length=len(EVENTS))]


class SessionBody(Strict):
    """What opens a session of a page: one of the two."""

    link: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="What follows `#link=` in a link of `keydyn serve` or `keydyn service link`."
    )
    key: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        None, description="An API key with the scope admin."
    )

    @model_validator(mode="after")
    def _one_of(self) -> SessionBody:
        if (self.link is None) == (self.key is None):
            raise ValueError("send either a link or a key")
        return self


class PopulationBody(Strict):
    """Which population to learn."""

    text: TextKind = TextKind(kind="free", name=None)
    device: Device = "keyboard"


class ProfileAnswer(BaseModel):
    """How far somebody's enrolment has come, for one kind of text and device."""

    text: TextKind
    device: Device
    samples: int
    samples_needed: int
    keystrokes: int
    known_keystrokes: int = Field(description="Keystrokes of keys that the population knows.")
    clock_tick_ms: float = Field(description="The coarsest clock of the samples; 0 if none was coarse.")
    complete: bool
    template_at: int | None = Field(description="When the template was learnt, milliseconds since 1970.")
    template_age_s: float | None
    drift: float = Field(
        description="How far the template has moved since enrolment, up to 1; from 0.7 on, enrol again."
    )


class UserAnswer(BaseModel):
    """Somebody."""

    id: str
    created_at: int
    profiles: list[ProfileAnswer]
    failed_attempts: int
    wait_s: int = Field(description="Seconds until the next attempt to be this person is allowed.")


class UsersAnswer(BaseModel):
    """One page of people."""

    users: list[UserAnswer]
    next: str | None = Field(description="The cursor of the next page; null on the last.")


class QualityAnswer(BaseModel):
    """What there is of a sample, and what weakens it."""

    keystrokes: int
    known_keystrokes: int
    clock_tick_ms: float
    remarks: list[str]


class SampleAnswer(BaseModel):
    """A sample that was stored."""

    sample: str
    profile: ProfileAnswer
    quality: QualityAnswer


class SpokeAnswer(BaseModel):
    """A key and one of its times that spoke for a claim, or against it."""

    key: str
    feature: str
    nats: float


class EvidenceAnswer(BaseModel):
    """How much of the sample counts, and what spoke loudest."""

    keystrokes: int
    known_keystrokes: int
    pairs: int
    known_pairs: int
    spoke_for: list[SpokeAnswer] = []
    spoke_against: list[SpokeAnswer] = []


class DecisionAnswer(BaseModel):
    """The answer to a claim."""

    id: str
    claimed: str
    answer: Literal["accept", "reject", "unsure"]
    llr: float = Field(description="Natural logarithm of the calibrated likelihood ratio.")
    false_match_rate: float = Field(description="The share of strangers who would score as high.")
    false_match_rate_interval: tuple[float, float] = Field(description="Its 95 % interval over people.")
    evidence: EvidenceAnswer
    reasons: list[str]
    level: Level
    target_false_match_rate: float
    updated: bool = Field(description="Whether the template was updated with this sample.")


class CandidateAnswer(BaseModel):
    """Somebody who may have typed a sample."""

    user: str
    probability: float
    llr: float
    false_match_rate: float


class IdentificationAnswer(BaseModel):
    """Who typed a sample, the most probable first."""

    candidates: list[CandidateAnswer]
    nobody: bool = Field(description="Whether the answer is that none of them did.")
    nobody_probability: float
    evidence: EvidenceAnswer
    reasons: list[str]


class TokenAnswer(BaseModel):
    """A token for a browser."""

    token: str
    purpose: Purpose
    session: str | None
    expires_at: int


class SessionAnswer(BaseModel):
    """A session of a page."""

    token: str = Field(description="Sent as Authorization: Bearer, from the service's own pages only.")
    scopes: list[str]
    expires_at: int


class CurveAnswer(BaseModel):
    """The density of one time of two keys typed in a row, for somebody and for everybody."""

    feature: Literal["interval", "hold"] = Field(
        description='"interval" from the first press to the second, "hold" for which the first key is held.'
    )
    keys: tuple[str, str]
    times_ms: list[float]
    own: list[float] = Field(description="Per millisecond.")
    everybody: list[float]


class DensitiesAnswer(BaseModel):
    """How somebody's most typed keys differ from everybody's."""

    curves: list[CurveAnswer]


class ErasedAnswer(BaseModel):
    """Somebody is gone."""

    erased: Literal[True] = True
    population: Literal["unchanged", "being learnt again without them"]


class WebhookAnswer(BaseModel):
    """Where events are sent."""

    id: str
    url: str
    events: list[Event]
    created_at: int


class NewWebhookAnswer(WebhookAnswer):
    """The same, with the secret that signs them, shown this once."""

    secret: str


class WebhooksAnswer(BaseModel):
    """All of them."""

    webhooks: list[WebhookAnswer]


class PopulationAnswer(BaseModel):
    """One of the tenant's own populations."""

    device: Device
    vocabulary: str
    background: str
    created_at: int
    learnt_here: bool
    people: int


class PopulationsAnswer(BaseModel):
    """The tenant's own populations; without any, the one that comes with keydyn is used."""

    populations: list[PopulationAnswer]


class HealthAnswer(BaseModel):
    """Whether the service works."""

    status: Literal["ok"]


class ProblemAnswer(BaseModel):
    """Anything that is no success (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


Exported = dict[str, Any]
