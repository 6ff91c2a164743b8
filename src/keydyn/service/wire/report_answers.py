"""Answers about a tenant's activity, error rates and audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from keydyn.service.wire.answers import DATE, Answer, PopulationAnswer
from keydyn.service.wire.both_ways import about

By = Literal["hour", "day"]


class StandingAnswer(Answer, frozen=True):
    """The current state of a tenant."""

    tenant: Annotated[str, about("The tenant's name.")]
    now: Annotated[int, about(f"The service's clock, {DATE}.")]
    version: Annotated[str, about("The version of keydyn.")]
    people: Annotated[int, about("People who are users of the tenant.")]
    enrolled: Annotated[int, about("People whose enrolment in some text is complete.")]
    delayed: Annotated[int, about("People whose failed attempts in a row make the next one wait.")]
    blocked: Annotated[
        int, about("People for whom failed attempts of the last 30 days have left no attempt for now.")
    ]
    drifted: Annotated[int, about("People whose template has drifted so far that they should enrol again.")]
    watched: Annotated[int, about("Watched sessions that were active in the last five minutes.")]
    locked: Annotated[int, about("Watched sessions that are locked.")]
    jobs: Annotated[dict[str, int], about("Queued work, by kind.")]


class AnswersCount(Answer, frozen=True):
    """How often each answer was given."""

    accept: Annotated[int, about("Claims accepted.")] = 0
    reject: Annotated[int, about("Claims rejected.")] = 0
    unsure: Annotated[int, about("Claims that could not be decided.")] = 0


class LevelsCount(Answer, frozen=True):
    """How often each answer was given, by security level."""

    low: Annotated[AnswersCount, about("At the level `low`.")] = AnswersCount()
    standard: Annotated[AnswersCount, about("At the level `standard`.")] = AnswersCount()
    high: Annotated[AnswersCount, about("At the level `high`.")] = AnswersCount()


class PeriodAnswer(Answer, frozen=True):
    """The number of events of each kind in one hour or day."""

    at: Annotated[int, about(f"When it began, {DATE}.")]
    verified: Annotated[LevelsCount, about("Claims verified, by level and answer.")]
    identified: Annotated[int, about("Samples identified.")]
    nobody: Annotated[int, about("How many of these samples were typed by none of the people enrolled.")]
    sessions: Annotated[int, about("Watched sessions that were opened.")]
    locked: Annotated[int, about("How often one was locked.")]
    samples: Annotated[int, about("Samples that were enrolled.")]
    enrolled: Annotated[int, about("Enrolments that became complete.")]


class DecisionsAnswer(Answer, frozen=True):
    """Counts of events over time. No share is an error rate, as it is not known which answers were right."""

    since: Annotated[int, about(f"The beginning of the first period, {DATE}.")]
    until: Annotated[int, about("The end of the last period.")]
    by: Annotated[By, about("The length of a period.")]
    periods: Annotated[tuple[PeriodAnswer, ...], about("The periods, the earliest first.")]


class RateAnswer(Answer, frozen=True):
    """A share, with its 95 % interval over people."""

    value: Annotated[float, about("The share.")]
    low: Annotated[float | None, about("The lower end of the interval; null where there is none.")]
    high: Annotated[float | None, about("The upper end of the interval; null where there is none.")]


class StatedRatesAnswer(Answer, frozen=True):
    """Error rates for samples of one length, as the calibration states them."""

    keystrokes: Annotated[int, about("Keystrokes per sample.")]
    accepted_strangers: Annotated[
        RateAnswer | None,
        about(
            "The share of strangers accepted; null if the target is smaller than the calibration can state, "
            "so that no one is accepted."
        ),
    ]
    refused_genuine: Annotated[float, about("The share of genuine samples that are not accepted.")]


class StatedLevelAnswer(Answer, frozen=True):
    """Error rates at one security level, as the calibration states them."""

    target_false_match_rate: Annotated[float, about("The largest share of strangers to accept.")]
    rates: Annotated[tuple[StatedRatesAnswer, ...], about("The rates, by the length of a sample.")]


class CountedRateAnswer(RateAnswer, frozen=True):
    """A share that was found by counting samples."""

    trials: Annotated[int, about("Samples that were tested.")]
    below: Annotated[
        float | None,
        about("Where nothing was counted: the rate is below this, with 95 % confidence (rule of three)."),
    ]


class OwnPeopleAnswer(Answer, frozen=True):
    """The results of comparing samples that the tenant's people enrolled with the templates of others."""

    people: Annotated[int, about("People who were compared with each other.")]
    comparisons: Annotated[int, about("Samples, each in the name of one other person.")]
    low: Annotated[CountedRateAnswer, about("The share that the level `low` would accept.")]
    standard: Annotated[CountedRateAnswer, about("The share that the level `standard` would accept.")]
    high: Annotated[CountedRateAnswer, about("The share that the level `high` would accept.")]


class StatedAnswer(Answer, frozen=True):
    """Error rates of decisions, as the calibration in use states them."""

    population: Annotated[PopulationAnswer | None, about("Null for the one that comes with keydyn.")]
    people: Annotated[int, about("How many people the calibration was learnt from.")]
    low: Annotated[StatedLevelAnswer, about("At the level `low`.")]
    standard: Annotated[StatedLevelAnswer, about("At the level `standard`.")]
    high: Annotated[StatedLevelAnswer, about("At the level `high`.")]
    hours: Annotated[float, about("Hours of genuine typing from which lock-outs were measured.")]
    lockouts_per_hour: Annotated[float, about("The target in the settings.")]
    lockouts_supported: Annotated[float, about("The lowest rate of lock-outs that those hours support.")]
    own: Annotated[
        OwnPeopleAnswer | None,
        about(
            "Comparisons among the tenant's own people, which the rates rest on too; null where there are "
            "none, as with fewer than three people."
        ),
    ] = None


class CountedRatesAnswer(Answer, frozen=True):
    """Error rates counted after a number of keystrokes; null where no sample is that long."""

    keystrokes: Annotated[int, about("Keystrokes after which it was counted.")]
    accepted_strangers: Annotated[CountedRateAnswer | None, about("The share of strangers accepted.")]
    refused_genuine: Annotated[
        CountedRateAnswer | None, about("The share of genuine samples that were not accepted.")
    ]


class CountedAnswer(Answer, frozen=True):
    """Error rates counted among the tenant's own people; the tested sample is left out of the enrolment."""

    people: Annotated[int, about("People who were compared.")]
    samples: Annotated[int, about("Their samples.")]
    low: Annotated[tuple[CountedRatesAnswer, ...], about("At the level `low`.")]
    standard: Annotated[tuple[CountedRatesAnswer, ...], about("At the level `standard`.")]
    high: Annotated[tuple[CountedRatesAnswer, ...], about("At the level `high`.")]


class AuditEntry(Answer, frozen=True):
    """An entry of the audit log: an action, its time, its actor and the person concerned, by pseudonym."""

    number: Annotated[int, about("The entry's place in the log, from 1.")]
    at: Annotated[int, about(f"When it was done, {DATE}.")]
    actor: Annotated[str, about("Who did it: a key, token or session, the operator or the service.")]
    action: Annotated[str, about("What was done.")]
    subject: Annotated[str, about("The pseudonym of the person it was done to; empty if there is none.")]
    details: Annotated[dict[str, Any], about("More about the action.")]
    hash: Annotated[str, about("SHA-256 of the entry and the hash before it.")]


class AuditAnswer(Answer, frozen=True):
    """One page of the audit log."""

    entries: Annotated[tuple[AuditEntry, ...], about("The entries, the newest first.")]
    next: Annotated[str | None, about("The cursor of the next page; null on the last.")]


class AuditCheckAnswer(Answer, frozen=True):
    """The result of checking that the audit log, or a part of it, is intact."""

    whole: Annotated[bool, about("Whether no entry was changed or is missing.")]
    checked: Annotated[int, about("The number of the last entry that is intact.")]
    end: Annotated[str, about("Its hash: keep a copy elsewhere and compare it next time.")]
    problem: Annotated[str, about("What is wrong; empty if nothing is.")]
    next: Annotated[str | None, about("The cursor of the next part; null if everything was checked.")]
