"""What answers about a tenant's activity, error rates and audit log look like."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from keydyn.service.http.models import Device, PopulationAnswer, Strict, TextKind

By = Literal["hour", "day"]


class StandingAnswer(BaseModel):
    """How things stand now."""

    tenant: str
    now: int = Field(description="The service's clock, milliseconds since 1970.")
    version: str
    people: int
    enrolled: int = Field(description="People whose enrolment in some text is complete.")
    delayed: int = Field(description="People with so many failed attempts in a row that the next must wait.")
    blocked: int = Field(description="People with so many that an administrator must unblock them.")
    drifted: int = Field(description="People whose template has drifted so far that they should enrol again.")
    watched: int = Field(description="Watched sessions that were active in the last five minutes.")
    locked: int = Field(description="Watched sessions that are locked.")
    jobs: dict[str, int] = Field(description="Queued work, by kind.")


class AnswersCount(BaseModel):
    """How often each answer was given."""

    accept: int = 0
    reject: int = 0
    unsure: int = 0


class LevelsCount(BaseModel):
    """The same by security level."""

    low: AnswersCount = AnswersCount()
    standard: AnswersCount = AnswersCount()
    high: AnswersCount = AnswersCount()


class PeriodAnswer(BaseModel):
    """What happened in an hour or a day."""

    at: int = Field(description="When it began.")
    verified: LevelsCount
    identified: int
    nobody: int = Field(description="How many of those identified were from nobody enrolled.")
    sessions: int = Field(description="Watched sessions that were opened.")
    locked: int = Field(description="How often one was locked.")
    samples: int = Field(description="Samples that were enrolled.")
    enrolled: int = Field(description="Enrolments that became complete.")


class DecisionsAnswer(BaseModel):
    """What happened over time. Who was right is not known: no share of these is an error rate."""

    since: int
    until: int = Field(description="The end of the last period.")
    by: By
    periods: list[PeriodAnswer]


class ErrorRatesBody(Strict):
    """Which samples to measure with."""

    text: TextKind = TextKind(kind="free", name=None)
    device: Device = "keyboard"


class RateAnswer(BaseModel):
    """A share; `low` and `high` are its 95 % interval over people, null where there is none."""

    value: float
    low: float | None
    high: float | None


class StatedRatesAnswer(BaseModel):
    """What is said of samples with so many keystrokes."""

    keystrokes: int
    accepted_strangers: RateAnswer | None = Field(
        description="The share of strangers accepted; null if the target is smaller than the calibration can "
        "state, so that nobody is accepted."
    )
    refused_genuine: float = Field(description="The share of genuine samples that are not accepted.")


class StatedLevelAnswer(BaseModel):
    """What is said of one level."""

    target_false_match_rate: float
    rates: list[StatedRatesAnswer]


class StatedAnswer(BaseModel):
    """What the calibration in use says about decisions, before anybody here has typed."""

    population: PopulationAnswer | None = Field(description="Null for the one that comes with keydyn.")
    people: int = Field(description="How many people the calibration was learnt from.")
    low: StatedLevelAnswer
    standard: StatedLevelAnswer
    high: StatedLevelAnswer
    hours: float = Field(description="Hours of genuine typing from which lock-outs were measured.")
    lockouts_per_hour: float = Field(description="The target in the settings.")
    lockouts_supported: float = Field(description="The lowest rate of lock-outs that those hours support.")


class CountedRateAnswer(RateAnswer):
    """A share that was counted."""

    trials: int = Field(description="Samples that were tested.")
    below: float | None = Field(
        description="Where nothing was counted: the rate is below this, with 95 % confidence (rule of three)."
    )


class CountedRatesAnswer(BaseModel):
    """What was counted after so many keystrokes; null where no sample is so long."""

    keystrokes: int
    accepted_strangers: CountedRateAnswer | None
    refused_genuine: CountedRateAnswer | None


class CountedAnswer(BaseModel):
    """What became of claims among the tenant's own people, each enrolled without the sample that asks."""

    people: int
    samples: int
    low: list[CountedRatesAnswer]
    standard: list[CountedRatesAnswer]
    high: list[CountedRatesAnswer]


class AuditEntry(BaseModel):
    """What was done, when, by whom, and about whom; people are named by pseudonyms."""

    number: int
    at: int
    actor: str
    action: str
    subject: str
    details: dict[str, Any]
    hash: str


class AuditAnswer(BaseModel):
    """One page of the audit log."""

    entries: list[AuditEntry]
    next: str | None = Field(description="The cursor of the next page; null on the last.")


class AuditCheckAnswer(BaseModel):
    """Whether the log is whole, as far as it was checked."""

    whole: bool
    checked: int = Field(description="The number of the last entry that is intact.")
    end: str = Field(description="Its hash: keep a copy elsewhere and compare it next time.")
    problem: str
    next: str | None = Field(description="The cursor of the next part; null if everything was checked.")
