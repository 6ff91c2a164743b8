"""The service's answers. The client uses the same types, and ignores fields that a newer service adds."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from keydyn.service.wire.both_ways import Device, Event, Level, Moment, Purpose, Text, about
from keydyn.short_repr import named

DATE = "milliseconds since 1970"


class Answer(Struct, frozen=True):
    """Base class of answers and their parts; secrets are left out of the printed form."""

    def __repr__(self) -> str:
        shown = [name for name in self.__struct_fields__ if name not in ("token", "secret")]
        return named(type(self).__name__, ((name, getattr(self, name)) for name in shown))


class Profile(Answer, frozen=True):
    """The progress of a user's enrolment, for one kind of text and device."""

    text: Annotated[Text, about("The kind of text.")]
    device: Annotated[Device, about("The kind of device.")]
    samples: Annotated[int, about("Samples enrolled so far.")]
    samples_needed: Annotated[int, about("Samples after which enrolment is complete.")]
    keystrokes: Annotated[int, about("Keystrokes in these samples.")]
    known_keystrokes: Annotated[int, about("Keystrokes of keys that the population knows.")]
    clock_tick_ms: Annotated[float, about("The coarsest clock of the samples; 0 if none was coarse.")]
    complete: Annotated[bool, about("Whether the user can be verified.")]
    template_at: Annotated[Moment | None, about(f"When the template was learnt, {DATE}.")]
    template_age_s: Annotated[float | None, about("Seconds since then.")]
    drift: Annotated[
        float, about("How far the template has moved since enrolment, up to 1; from 0.7 on, enrol again.")
    ]


class User(Answer, frozen=True):
    """A user: a person of the tenant, with the progress of their enrolment."""

    id: Annotated[str, about("Your id for the person.")]
    created_at: Annotated[Moment, about(f"When the user was created, {DATE}.")]
    profiles: Annotated[tuple[Profile, ...], about("One for each kind of text and device.")]
    failed_attempts: Annotated[int, about("Failed attempts in a row to be this person.")]
    wait_s: Annotated[int, about("Seconds until the next attempt to be this person is allowed.")]
    takeover_chance_spent: Annotated[
        float,
        about(
            "The chance that at least one of the attempts that failed in the last 30 days would have been "
            "accepted if strangers had made all of them; apart from locked sessions, at most the setting "
            "`takeover_chance`."
        ),
    ] = 0.0


class UsersAnswer(Answer, frozen=True):
    """One page of users."""

    users: Annotated[tuple[User, ...], about("The users, the oldest first.")]
    next: Annotated[str | None, about("The cursor of the next page; null on the last.")]


class Quality(Answer, frozen=True):
    """The quality of a sample: how much of it can be used, and anything that weakens it."""

    keystrokes: Annotated[int, about("Keystrokes in the sample.")]
    known_keystrokes: Annotated[int, about("Keystrokes of keys that the population knows.")]
    clock_tick_ms: Annotated[float, about("The tick of the clock that timed it; 0 if it is not coarse.")]
    remarks: Annotated[tuple[str, ...], about("What weakens the sample, in words.")]


class Sample(Answer, frozen=True):
    """A sample that was stored, with its quality and the progress of the enrolment."""

    sample: Annotated[str, about("The sample's id.")]
    profile: Annotated[Profile, about("The enrolment that it belongs to, with this sample.")]
    quality: Annotated[Quality, about("How much of the sample can be used.")]


class Spoke(Answer, frozen=True):
    """A piece of evidence: one time of a key, and how strongly it speaks for or against a claim."""

    key: Annotated[str, about("The key, or the pair of keys.")]
    feature: Annotated[str, about("Which of the key's times.")]
    nats: Annotated[float, about("How strongly it spoke: its part of the llr, in nats.")]


class Evidence(Answer, frozen=True):
    """The evidence in a sample: how much of it counts, and which keys speak most strongly."""

    keystrokes: Annotated[int, about("Keystrokes in the sample.")]
    known_keystrokes: Annotated[int, about("Keystrokes of keys that the template knows.")]
    pairs: Annotated[int, about("Pairs of consecutive keys.")]
    known_pairs: Annotated[int, about("Pairs that the template knows.")]
    spoke_for: Annotated[tuple[Spoke, ...], about("What spoke most strongly for the claim.")] = ()
    spoke_against: Annotated[tuple[Spoke, ...], about("What spoke most strongly against it.")] = ()


TypedBy = Literal["yes", "no", "unsure"]
TYPED = 'Whether a hand typed it at all; "unsure" if the sample is too short to tell.'


class Verdict(Answer, frozen=True, kw_only=True):
    """The answer to a claim in the form that browsers get: the decision, without scores or evidence."""

    id: Annotated[str, about("The decision's id, by which your server can ask for it.")]
    claimed: Annotated[str, about("The id of the user whom the sample is claimed to be from.")]
    answer: Annotated[
        Literal["accept", "reject", "unsure"], about('"unsure" if the sample says too little to decide.')
    ]
    typed: Annotated[TypedBy, about(TYPED)] = "unsure"
    level: Annotated[Level, about("The security level that was asked for.")]
    judged_level: Annotated[
        Level, about("The level that was applied: a stricter one if failed attempts have left no other.")
    ]
    wait_s: Annotated[int, about("Seconds until the next attempt to be this user may be made.")]
    advice: Annotated[str, about("What to do now, in words; empty if there is nothing to do.")]
    receipt: Annotated[
        str, about("The signed decision, which your server can check without asking the service.")
    ]

    @property
    def accepted(self) -> bool:
        """Whether the answer is "accept"."""
        return self.answer == "accept"


class Decision(Verdict, frozen=True):
    """The answer to a claim, with scores and evidence. Scores are rounded, except for the service's pages."""

    llr: Annotated[float, about("Natural logarithm of the calibrated likelihood ratio, in steps of 0.5.")]
    false_match_rate: Annotated[
        float, about("The share of strangers who would score as high: 1, 2 or 5 times a power of ten.")
    ]
    false_match_rate_interval: Annotated[tuple[float, float], about("Its 95 % interval over people.")]
    evidence: Annotated[Evidence, about("What the decision rests on.")]
    reasons: Annotated[tuple[str, ...], about("Why, in words.")]
    target_false_match_rate: Annotated[
        float, about("The share of strangers to accept at the level that was applied.")
    ]
    updated: Annotated[bool, about("Whether the template was updated with this sample.")]


class DecisionRecord(Answer, frozen=True):
    """The record of a decision, which is kept for 30 days, without scores or timings."""

    id: Annotated[str, about("The decision's id.")]
    at: Annotated[Moment, about(f"When it was made, {DATE}.")]
    kind: Annotated[
        Literal["verify", "identify", "watch"],
        about('What was asked; "watch" for a session that was locked.'),
    ]
    user: Annotated[str | None, about("The id of the user; null if no user was identified.")]
    answer: Annotated[Literal["accept", "reject", "unsure"], about("What was decided.")]
    level: Annotated[Level, about("The security level that was asked for.")]
    judged_level: Annotated[Level, about("The level that was applied.")]
    text: Annotated[Text, about("What was typed.")]
    device: Annotated[Device, about("What it was typed on.")]
    actor: Annotated[str, about("What asked: `key`, `token` or `session`, with the id of the key behind it.")]

    @property
    def accepted(self) -> bool:
        """Whether the answer is "accept"."""
        return self.answer == "accept"


class ReceiptKey(Answer, frozen=True):
    """The public key with which a tenant's receipts are checked."""

    key: Annotated[str, about("The public key, Ed25519, in URL-safe base 64.")]


class Candidate(Answer, frozen=True):
    """A user who may have typed a sample."""

    user: Annotated[str, about("The user's id.")]
    probability: Annotated[float, about("The probability that this user typed the sample.")]
    llr: Annotated[float, about("Natural logarithm of the calibrated likelihood ratio.")]
    false_match_rate: Annotated[float, about("The share of strangers who would score as high.")]


class Identification(Answer, frozen=True):
    """The users who may have typed a sample, the most probable first. Scores are rounded as in a decision."""

    id: Annotated[str, about("The decision's id, by which your server can ask for it.")]
    receipt: Annotated[str, about("The signed decision: a receipt of the kind `identify`.")]
    candidates: Annotated[
        tuple[Candidate, ...],
        about("The most probable users; programs get only those who may have typed it, if there are any."),
    ]
    nobody: Annotated[bool, about("Whether the answer is that none of the users typed it.")]
    nobody_probability: Annotated[float, about("The probability that none of the enrolled users typed it.")]
    evidence: Annotated[Evidence, about("How much of the sample counts.")]
    reasons: Annotated[tuple[str, ...], about("Why, in words.")]
    typed: Annotated[TypedBy, about(TYPED)] = "unsure"


class Token(Answer, frozen=True):
    """A short-lived token that a browser presents instead of an API key, for one user and one purpose."""

    token: Annotated[str, about("Sent as Authorization: Bearer.")]
    purpose: Annotated[Purpose, about("What the browser may do.")]
    session: Annotated[str | None, about("The session that it is for; null unless it watches or unlocks.")]
    expires_at: Annotated[Moment, about(f"When it expires, {DATE}.")]
    uses: Annotated[
        int | None, about("How many samples may be sent with it; null if it watches or unlocks.")
    ] = None


class SessionAnswer(Answer, frozen=True):
    """A session of one of the service's own pages."""

    token: Annotated[str, about("Sent as Authorization: Bearer, from the service's own pages only.")]
    scopes: Annotated[tuple[str, ...], about("What the page may do.")]
    expires_at: Annotated[Moment, about(f"When the session ends, {DATE}.")]


class CurveAnswer(Answer, frozen=True):
    """The density of one time of two consecutive keys, for the user and for the population."""

    feature: Annotated[
        Literal["interval", "hold"],
        about('"interval": from the first press to the second; "hold": how long the first key is held.'),
    ]
    keys: Annotated[tuple[str, str], about("The two keys.")]
    times_ms: Annotated[tuple[float, ...], about("Times at which the densities are given.")]
    own: Annotated[tuple[float, ...], about("The user's density, per millisecond.")]
    everybody: Annotated[tuple[float, ...], about("The population's density, per millisecond.")]


class DensitiesAnswer(Answer, frozen=True):
    """The times of a user's most frequent keys, compared with those of the population."""

    curves: Annotated[tuple[CurveAnswer, ...], about("The curves to draw.")]


class Erased(Answer, frozen=True, kw_only=True):
    """The result of erasing a user."""

    erased: Annotated[bool, about("Always true.", extra_json_schema={"const": True})] = True
    population: Annotated[
        Literal["unchanged", "being learnt again without them"],
        about("What happens to the tenant's population, which may have been learnt from them."),
    ]
    pending: Annotated[
        tuple[Literal["log"], ...],
        about(
            "What is still to be done: `log` means that the database's log of changes holds the user's "
            "encrypted data and key until a reader has finished. The service tries again until it is done."
        ),
    ] = ()


class Webhook(Answer, frozen=True):
    """An address to which events are sent."""

    id: Annotated[str, about("The webhook's id.")]
    url: Annotated[str, about("The address.")]
    events: Annotated[tuple[Event, ...], about("The events that are sent.")]
    created_at: Annotated[Moment, about(f"When it was created, {DATE}.")]


class NewWebhook(Webhook, frozen=True):
    """A new webhook, with the secret that signs what is sent."""

    secret: Annotated[str, about("The secret that signs what is sent; shown this once.")]


class WebhooksAnswer(Answer, frozen=True):
    """All webhooks of a tenant."""

    webhooks: Annotated[tuple[Webhook, ...], about("The webhooks, the oldest first.")]


class PopulationAnswer(Answer, frozen=True):
    """One of the tenant's own populations: learnt from its people, or installed."""

    device: Annotated[Device, about("The kind of device.")]
    vocabulary: Annotated[str, about("`keys`, or the text of which only positions are sent.")]
    background: Annotated[str, about("SHA-256 of the population and its calibration.")]
    created_at: Annotated[Moment, about(f"When it was learnt or installed, {DATE}.")]
    learnt_here: Annotated[bool, about("Whether it was learnt from the tenant's own people.")]
    people: Annotated[int, about("The tenant's people whom it was learnt from.")]


class PopulationsAnswer(Answer, frozen=True):
    """The tenant's own populations. If there are none, the one that comes with keydyn is used."""

    populations: Annotated[tuple[PopulationAnswer, ...], about("The populations, the oldest first.")]


class HealthAnswer(Answer, frozen=True):
    """The answer of a service that is working."""

    status: Annotated[Literal["ok"], about("Always `ok`; other answers are problems.")]


class ProblemAnswer(Answer, frozen=True):
    """Any answer other than success (RFC 9457); some kinds have further fields."""

    type: Annotated[str, about("`urn:keydyn:problem:` and the kind, which is stable.")]
    title: Annotated[str, about("The kind of problem in words.")]
    status: Annotated[int, about("The HTTP status.")]
    detail: Annotated[str, about("What happened this time.")]
    instance: Annotated[str | None, about("`urn:keydyn:request:` and the request's id.")] = None
