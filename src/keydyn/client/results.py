"""What the service answers, as types. Fields that a newer service adds are ignored."""

from __future__ import annotations

import types
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Result = TypeVar("Result")


@dataclass(frozen=True)
class Text:
    """What is typed: "free", or the "fixed" text or "positions" of that name."""

    kind: str
    name: str | None = None


@dataclass(frozen=True)
class Profile:
    """How far somebody's enrolment has come, for one kind of text and of device.

    Attributes
    ----------
    clock_tick_ms : the coarsest clock of the samples; 0 if none was coarse
    drift : how far the template has gone from its enrolment, up to 1; from 0.7 on, enrol again
    """

    text: Text
    device: str
    samples: int
    samples_needed: int
    keystrokes: int
    known_keystrokes: int
    clock_tick_ms: float
    complete: bool
    template_at: datetime | None
    template_age_s: float | None
    drift: float


@dataclass(frozen=True)
class User:
    """A person.

    Attributes
    ----------
    wait_s : seconds until the next attempt to be this person is allowed
    """

    id: str
    created_at: datetime
    profiles: tuple[Profile, ...]
    failed_attempts: int
    wait_s: int


@dataclass(frozen=True)
class Quality:
    """What there is of a sample, and what weakens it."""

    keystrokes: int
    known_keystrokes: int
    clock_tick_ms: float
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """A sample that was stored; `sample` is its id."""

    sample: str
    profile: Profile
    quality: Quality


@dataclass(frozen=True)
class Spoke:
    """A key, and one of its times, that spoke for a claim or against it."""

    key: str
    feature: str
    nats: float


@dataclass(frozen=True)
class Evidence:
    """How much of a sample counts, and what spoke loudest."""

    keystrokes: int
    known_keystrokes: int
    pairs: int
    known_pairs: int
    spoke_for: tuple[Spoke, ...] = ()
    spoke_against: tuple[Spoke, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The answer to a claim.

    Attributes
    ----------
    answer : "accept", "reject" or "unsure"
    llr : natural logarithm of the calibrated likelihood ratio
    false_match_rate : the share of strangers who would score as high
    false_match_rate_interval : its 95 % interval over people
    updated : whether the template followed this sample
    """

    id: str
    claimed: str
    answer: str
    llr: float
    false_match_rate: float
    false_match_rate_interval: tuple[float, float]
    evidence: Evidence
    reasons: tuple[str, ...]
    level: str
    target_false_match_rate: float
    updated: bool

    @property
    def accepted(self) -> bool:
        """Whether the answer is "accept"."""
        return self.answer == "accept"


@dataclass(frozen=True)
class Candidate:
    """Somebody who may have typed a sample."""

    user: str
    probability: float
    llr: float
    false_match_rate: float


@dataclass(frozen=True)
class Identification:
    """Who typed a sample, the most probable first; `nobody` if none of those enrolled did."""

    candidates: tuple[Candidate, ...]
    nobody: bool
    nobody_probability: float
    evidence: Evidence
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Token:
    """What a browser may present in place of an API key: for one person and purpose, and for a short time."""

    token: str = field(repr=False)
    purpose: str
    session: str | None
    expires_at: datetime


@dataclass(frozen=True)
class Erased:
    """A person is gone; `population` says what happens to a population that was learnt from them."""

    erased: bool
    population: str


@dataclass(frozen=True)
class Levels:
    """The largest share of strangers to accept, by security level."""

    low: float
    standard: float
    high: float


@dataclass(frozen=True)
class Settings:
    """What the tenant has chosen."""

    levels: Levels
    samples_needed: int
    updating: bool
    retention_days: int
    lockouts_per_hour: float
    learn_from_people: bool
    origins: tuple[str, ...]


@dataclass(frozen=True)
class Webhook:
    """An address to which events are reported."""

    id: str
    url: str
    events: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True)
class NewWebhook(Webhook):
    """The same, with the secret by which `verify_signature` knows its reports; it is shown this once."""

    secret: str = field(repr=False)


@dataclass(frozen=True)
class Trust:
    """What is thought of the typist after one keystroke of a watched session.

    Attributes
    ----------
    keystroke : its number in the session, from 1
    trust : None where there is nothing to judge by
    """

    keystroke: int
    trust: float | None
    suspicion: float


class UnexpectedAnswerError(ValueError):
    """The service answered with something that this client does not understand.

    Examples
    --------
    >>> from keydyn.client import UnexpectedAnswerError, User
    >>> from keydyn.client.results import read
    >>> try:
    ...     read(User, {"id": 7})  # as a client reads an answer
    ... except UnexpectedAnswerError as error:
    ...     print(error)
    the service's answer is no User
    """


def read(kind: type[Result], value: Any) -> Result:
    """An answer as a type; an `UnexpectedAnswerError` if it does not fit."""
    try:
        return cast(Result, _read(kind, value))
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise UnexpectedAnswerError(f"the service's answer is no {kind.__name__}") from error


def _read(kind: Any, value: Any) -> Any:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(inside[0], value)
    if origin is tuple:
        if inside[-1] is Ellipsis:
            return tuple([_read(inside[0], one) for one in value])
        return tuple([_read(of, one) for of, one in zip(inside, value, strict=True)])
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        names = [one.name for one in fields(kind) if one.name in value]
        return cast(Any, kind)(**{name: _read(hints[name], value[name]) for name in names})
    if kind is datetime:
        return datetime.fromtimestamp(value / 1000, UTC)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
