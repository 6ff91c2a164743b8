"""Verification: judging a claim with `keydyn.decisions`, and storing what follows from the answer."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace

from msgspec import structs
from sqlalchemy import Connection, bindparam, update

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.decision import Decision, Evidence
from keydyn.decisions.enrolled import DRIFTED
from keydyn.decisions.folder.enrolled_bytes import template_bytes
from keydyn.decisions.liveness import copies
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.keystrokes.samples import Samples
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.webhooks import announce
from keydyn.service.people.background.backgrounds import background_for, background_of
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.context import Context, Known, Remembered, Write
from keydyn.service.people.keystroke_payload import TypedSample, samples_of
from keydyn.service.people.recognition.attempts import (
    Attempt,
    Counts,
    allowed_level,
    clock_set_back,
    count_attempt,
    counts_of,
)
from keydyn.service.people.recognition.decision_rows import ADVICE, Answered, Decided, rounded
from keydyn.service.people.rows import PersonRow, ProfileRow, Stale, person_and_profile
from keydyn.service.people.stored_templates import (
    count_remembered,
    enrolled_from,
    fit,
    remember,
    secret_of,
    settled,
    verifier_for,
)
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import profiles
from keydyn.service.wall_clock import whole_seconds
from keydyn.service.wire import answers
from keydyn.service.wire.both_ways import Level

# The size of an infinite llr in an answer, because JSON has no infinity.
LARGEST_LLR = 1e300


@dataclass(frozen=True)
class Subject:
    """An enrolled person, with all the data that a claim of their identity is judged by."""

    person: PersonRow
    profile: ProfileRow
    background: Background
    known: Known
    counts: Counts


# Changes of a profile that is still in the version it was read in: a new version only, because a sample is
# remembered, or an updated template too.
_SAME_VERSION = update(profiles).where(
    profiles.c.id == bindparam("profile"), profiles.c.version == bindparam("known")
)
_NEW_VERSION = Prepared(_SAME_VERSION, "version")
_UPDATED_TEMPLATE = Prepared(_SAME_VERSION, "version", "template", "drift", "drift_reported_at")


def subject_of(context: Context, place: TenantPlace, name: str) -> Subject:
    """Read a person as enrolled now; stored samples that the template lacks are learnt first."""
    tenant, text, device = place

    def attempt() -> Subject:
        with context.database.reading() as connection:
            person, profile = person_and_profile(connection, context, tenant, name, (text, device))
            if profile is not None and profile.complete_at is not None:
                own = background_of(connection, context, tenant, profile)
                if own is not None:
                    known = enrolled_from(connection, context, person, profile, own)
                    counts = counts_of(connection, tenant, person.id, context.clock())
                    return Subject(person, profile, own, known, counts)
            background = background_for(connection, context, place)
            if profile is None or profile.complete_at is None:
                raise not_enrolled(0 if profile is None else profile.samples, tenant)
        fit(context, tenant, person, profile, background)
        return attempt()

    return settled(attempt)


def not_enrolled(samples: int, tenant: Tenant) -> Problem:
    """The problem that reports that more samples of a person are needed."""
    needed = tenant.settings.samples_needed
    detail = f"{samples} of {needed} samples of this text on this kind of device are enrolled."
    title = "Enrolment is not complete"
    return Problem(409, "not-enrolled", title, detail, samples=samples, samples_needed=needed)


def verify(context: Context, write: Write, name: str, typed: TypedSample, level: Level) -> answers.Verdict:
    """Decide whether a sample was typed by a person, and store the outcome.

    The sample is judged at a stricter level than asked for if failed attempts have left no other. The answer
    is a `Decision`, with scores, unless a browser asks.
    """
    sample = samples_of([typed.typed], typed.text)
    place = TenantPlace(write.tenant, typed.text, typed.device)

    def attempt() -> answers.Verdict:
        subject, now = subject_of(context, place, name), context.clock()
        if now < subject.counts.failed_at:
            context.database.write(lambda c: clock_set_back(c, subject.person, now))
        judged = allowed_level(write.tenant, subject.counts, level, now)
        return _decided(context, write, subject, sample, level, judged)

    return settled(attempt)


def _decided(
    context: Context, write: Write, subject: Subject, sample: Samples, asked: Level, level: Level
) -> answers.Verdict:
    """Decide at the allowed `level`, where `asked` is the caller's, and store the outcome in one change."""
    tenant, person, profile = write.tenant, subject.person, subject.profile
    verifier = verifier_for(tenant, subject.background, {person.id: subject.known.enrolled}, level)
    decision = verifier.verify(person.id, sample)
    follows = verifier.updated(person.id, sample, decision) if tenant.settings.updating else None
    now, after, known = context.clock(), subject.known.enrolled, subject.known.remembered
    seen = sealed = None
    if follows is not None:
        # The service does not undo updates, so that the previous template need not be kept.
        after = replace(follows, previous=None)
        seen = after.fingerprints.latest()
        sealed = person.key.seal(template_bytes(after), f"profiles/{profile.id}/template")
    elif decision.accepted:
        seen = Fingerprints.of(sample, secret_of(tenant))
        after = after.remembering(seen)
    drift = after.drift if sealed is not None else 0.0
    drifted = drift >= DRIFTED and profile.drift_reported_at is None
    answer: Answered = decision.answer  # type: ignore[assignment]
    kept = Decided(secrets.token_hex(16), "verify", now, answer, asked, level, profile.text, profile.device)
    verdict = answers.Verdict(
        id=kept.id,
        claimed=person.name,
        answer=answer,
        typed=decision.typed.answer,
        level=asked,
        judged_level=level,
        wait_s=0,
        advice=ADVICE[answer],
        receipt=kept.receipt(tenant, person.name),
    )
    if write.told != "answer":
        full = _with_scores(verdict, decision, verifier.at.false_match, sealed is not None)
        verdict = full if write.told == "everything" else rounded(full)

    def change(connection: Connection) -> tuple[answers.Verdict, int]:
        made = Attempt(asked, level, decision.accepted)
        wait, number = count_attempt(connection, tenant, person, made, now), 0
        if seen is not None:
            # If two copies are sent at the same time, the second is decided again and recognised as a copy.
            count_remembered(connection, person)
            version = {"profile": profile.id, "known": profile.version, "version": profile.version + 1}
            if sealed is None:
                changed = _NEW_VERSION.run(connection, **version)
            else:
                reported = now if drifted else profile.drift_reported_at
                followed = {"template": sealed, "drift": drift, "drift_reported_at": reported}
                changed = _UPDATED_TEMPLATE.run(connection, **version, **followed)
            if changed != 1:
                raise Stale
            number = remember(connection, person, profile.id, seen, known.rows, now)
            if drifted:
                body = {"user": person.name, "text": str(profile.text), "device": profile.device}
                announce(connection, tenant, "template.drifted", body, now=now, user_id=person.id)
        kept.keep(connection, write, person.id)
        write.note(connection, now, "verified", person.key, answer=answer, level=asked, judged=level)
        done = structs.replace(verdict, wait_s=whole_seconds(wait))
        write.finish(connection, done, person.id)
        return done, number

    done, number = context.database.write(change)
    if seen is not None:
        context.people.put(profile.id, profile.version + 1, replace(after, fingerprints=Fingerprints.none()))
        rows = min(known.rows + 1, copies.MOST_SAMPLES)
        latest = Remembered(after.fingerprints, rows, number)
        context.remembered.put(person.id, person.remembered + 1, latest)
    return done


def _with_scores(
    verdict: answers.Verdict, decision: Decision, target: float, updated: bool
) -> answers.Decision:
    spoke = (
        tuple(answers.Spoke(one.key, one.feature, one.nats) for one in those)
        for those in (decision.spoke_for, decision.spoke_against)
    )
    return answers.Decision(
        **structs.asdict(verdict),
        llr=finite(decision.llr),
        false_match_rate=decision.false_match_rate,
        false_match_rate_interval=decision.interval,
        evidence=evidence_answer(decision.evidence, *spoke),
        reasons=decision.reasons,
        target_false_match_rate=target,
        updated=updated,
    )


def evidence_answer(
    counts: Evidence, spoke_for: tuple[answers.Spoke, ...] = (), spoke_against: tuple[answers.Spoke, ...] = ()
) -> answers.Evidence:
    """The evidence of a decision, in the form of an answer."""
    return answers.Evidence(
        counts.keystrokes, counts.known, counts.pairs, counts.familiar, spoke_for, spoke_against
    )


def finite(llr: float) -> float:
    """An llr in a form that JSON allows: infinity becomes a large finite number."""
    return llr if math.isfinite(llr) else math.copysign(LARGEST_LLR, llr)
