"""Verification and identification: the answers of `keydyn.decisions`, and what they change."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace

from msgspec import structs
from sqlalchemy import Connection, bindparam, update

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.decision import Decision as Judged
from keydyn.decisions.decision import Evidence as Judgeable
from keydyn.decisions.enrolled import DRIFTED, Enrolled
from keydyn.decisions.folder.enrolled_bytes import template_bytes
from keydyn.decisions.judging import together
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.keystrokes.samples import Samples
from keydyn.service.accounts import Tenant
from keydyn.service.jobs.webhooks import announce
from keydyn.service.people.attempts import (
    Attempt,
    Counts,
    allowed_level,
    clock_set_back,
    count_attempt,
    counts_of,
)
from keydyn.service.people.backgrounds import background_for, background_of, background_with
from keydyn.service.people.context import Context, Known, Remembered, Write
from keydyn.service.people.decision_rows import Answered, Decided
from keydyn.service.people.keystroke_payload import TypedSample, samples_of
from keydyn.service.people.own_people import Place
from keydyn.service.people.rows import (
    PersonRow,
    ProfileRow,
    Stale,
    everybody,
    person_named,
    person_row,
    profile_of,
    profile_row,
)
from keydyn.service.people.stored_templates import (
    count_remembered,
    enrolled_from,
    fit,
    known_already,
    remember,
    secret_of,
    settled,
    verifier_for,
)
from keydyn.service.people.told import ADVICE, rounded, rounded_candidates
from keydyn.service.problems import Problem
from keydyn.service.storage import counters
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import profiles
from keydyn.service.wall_clock import DAY, SECOND
from keydyn.service.wire.answers import Candidate, Decision, Evidence, Identification, Spoke, Verdict
from keydyn.service.wire.both_ways import Device, Level, Text

# JSON has no infinity: a certain answer has an llr of this size.
LARGEST_LLR = 1e300
# People who are compared with one sample at most; with more, a claim can still be verified.
MOST_PEOPLE = 20_000


@dataclass(frozen=True)
class Subject:
    """A person who is enrolled, and what claims to be them are judged by."""

    person: PersonRow
    profile: ProfileRow
    background: Background
    known: Known
    counts: Counts


_OWN = update(profiles).where(profiles.c.id == bindparam("profile"), profiles.c.version == bindparam("known"))
_SEEN = Prepared(_OWN, "version")
_FOLLOWED = Prepared(_OWN, "version", "template", "drift", "drift_reported_at")


def subject_of(context: Context, tenant: Tenant, name: str, text: Text, device: Device) -> Subject:
    """A person as enrolled now; samples that were acknowledged are learnt from first."""

    def attempt() -> Subject:
        with context.database.reading() as connection:
            person = person_named(connection, context, tenant, name)
            profile = profile_of(connection, person, text, device)
            if profile is not None and profile.complete_at is not None:
                beside = background_of(connection, context, tenant, profile)
                if beside is not None:
                    one = enrolled_from(connection, context, person, profile, beside)
                    counts = counts_of(connection, tenant, person.id, context.clock())
                    return Subject(person, profile, beside, one, counts)
            background = background_for(connection, context, tenant, text, device)
            if profile is None or profile.complete_at is None:
                raise not_enrolled(0 if profile is None else profile.samples, tenant)
        fit(context, tenant, person, profile, background)
        return attempt()

    return settled(attempt)


def not_enrolled(samples: int, tenant: Tenant) -> Problem:
    """The problem of a person from whom more samples are needed."""
    needed = tenant.settings.samples_needed
    detail = f"{samples} of {needed} samples of this text on this kind of device are enrolled."
    title = "Enrolment is not complete"
    return Problem(409, "not-enrolled", title, detail, samples=samples, samples_needed=needed)


def verify(context: Context, write: Write, name: str, typed: TypedSample, level: Level) -> Verdict:
    """Decide whether a sample was typed by a person, and store what follows from it.

    It is judged at a stricter level than asked for if failed attempts have left no other. The answer has
    scores, and so is a `Decision`, unless a browser asks.
    """
    sample = samples_of([typed.typed], typed.text)

    def attempt() -> Verdict:
        subject, now = subject_of(context, write.tenant, name, typed.text, typed.device), context.clock()
        if now < subject.counts.failed_at:
            context.database.write(lambda c: clock_set_back(c, subject.person, now))
            raise Stale
        judged = allowed_level(write.tenant, subject.counts, level, now)
        return _decided(context, write, subject, sample, level, judged)

    return settled(attempt)


def _decided(
    context: Context, write: Write, subject: Subject, sample: Samples, asked: Level, level: Level
) -> Verdict:
    tenant, person, profile = write.tenant, subject.person, subject.profile
    verifier = verifier_for(tenant, subject.background, {person.id: subject.known.enrolled}, level)
    decision = verifier.verify(person.id, sample)
    follows = verifier.updated(person.id, sample, decision) if tenant.settings.updating else None
    now, after = context.clock(), subject.known.enrolled
    seen = sealed = None
    if follows is not None:
        # Updates are not undone here: the template before this one is not kept.
        after = replace(follows, previous=None)
        seen = after.fingerprints.latest()
        sealed = person.key.seal(template_bytes(after), f"profiles/{profile.id}/template")
    elif decision.accepted:
        seen = Fingerprints.of(sample, secret_of(tenant))
    drift = after.drift if sealed is not None else 0.0
    drifted = drift >= DRIFTED and profile.drift_reported_at is None
    answer: Answered = decision.answer  # type: ignore[assignment]
    kept = Decided(secrets.token_hex(16), "verify", now, answer, asked, level, profile.text, profile.device)
    verdict = Verdict(
        id=kept.id,
        claimed=person.name,
        answer=answer,
        level=asked,
        judged_level=level,
        wait_s=0,
        advice=ADVICE[answer],
        receipt=kept.receipt(tenant, person.name),
    )
    if write.told != "answer":
        full = _with_scores(verdict, decision, verifier.at.false_match, sealed is not None)
        verdict = full if write.told == "everything" else rounded(full)

    def change(connection: Connection) -> tuple[Verdict, Remembered | None]:
        made = Attempt(asked, level, decision.accepted)
        wait = count_attempt(connection, tenant, person, made, now)
        known = None
        if seen is not None:
            # Of two copies sent at the same time, the second is decided again and finds the first.
            count_remembered(connection, person)
            version = {"profile": profile.id, "known": profile.version, "version": profile.version + 1}
            if sealed is None:
                changed = _SEEN.run(connection, **version)
            else:
                reported = now if drifted else profile.drift_reported_at
                followed = {"template": sealed, "drift": drift, "drift_reported_at": reported}
                changed = _FOLLOWED.run(connection, **version, **followed)
            if changed != 1:
                raise Stale
            known = remember(connection, person, profile.id, seen, subject.known.remembered, now)
            if drifted:
                body = {"user": person.name, "text": str(profile.text), "device": profile.device}
                announce(connection, tenant, "template.drifted", body, now=now, user_id=person.id)
        kept.keep(connection, write, person.id)
        write.note(connection, now, "verified", person.key, answer=answer, level=asked, judged=level)
        done = structs.replace(verdict, wait_s=-(-wait // SECOND))
        write.finish(connection, done, person.id)
        return done, known

    done, known = context.database.write(change)
    if known is not None:
        context.people.put(profile.id, profile.version + 1, replace(after, fingerprints=Fingerprints.none()))
        context.remembered.put(person.id, person.remembered + 1, known)
    return done


def _with_scores(verdict: Verdict, decision: Judged, target: float, updated: bool) -> Decision:
    spoke = (
        tuple(Spoke(one.key, one.feature, one.nats) for one in those)
        for those in (decision.spoke_for, decision.spoke_against)
    )
    return Decision(
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
    counts: Judgeable, spoke_for: tuple[Spoke, ...] = (), spoke_against: tuple[Spoke, ...] = ()
) -> Evidence:
    """What a decision rests on, as it is answered."""
    return Evidence(counts.keystrokes, counts.known, counts.pairs, counts.familiar, spoke_for, spoke_against)


def finite(llr: float) -> float:
    """An llr as JSON can have it."""
    return llr if math.isfinite(llr) else math.copysign(LARGEST_LLR, llr)


def identify(context: Context, write: Write, typed: TypedSample, level: Level, most: int) -> Identification:
    """Rank everybody whose enrolment in this kind of text is complete.

    What one key may identify in a day is limited: each answer says something about everybody.
    """
    tenant, now = write.tenant, context.clock()
    sample = samples_of([typed.typed], typed.text)
    with context.database.reading() as connection:
        _check_identified(tenant, counters.amount(connection, tenant.id, _identified(write, now)) + 1, now)
    groups, names = settled(lambda: _everybody(context, tenant, typed.text, typed.device))
    if not groups:
        detail = "Nobody's enrolment in this kind of text is complete."
        raise Problem(409, "nobody-enrolled", "Nobody is enrolled", detail)
    parts = [verifier_for(tenant, beside, people, level).identify(sample) for beside, people in groups]
    found = together(parts)
    asked = (level, level, typed.text, typed.device)
    kept = Decided(secrets.token_hex(16), "identify", now, "reject" if found.nobody else "accept", *asked)
    first = None if found.nobody else found.candidates[0].user

    def change(connection: Connection) -> None:
        today = counters.add(connection, tenant.id, _identified(write, now), 1, now + DAY)
        _check_identified(tenant, today, now)
        kept.keep(connection, write, first)
        write.note(connection, now, "identified", nobody=found.nobody)

    # Again if the person was erased meanwhile.
    settled(lambda: context.database.write(change))
    answer = Identification(
        id=kept.id,
        receipt=kept.receipt(tenant, None if first is None else names[first]),
        candidates=tuple(
            Candidate(names[one.user], one.probability, finite(one.llr), one.false_match_rate)
            for one in found.candidates[:most]
        ),
        nobody=found.nobody,
        nobody_probability=found.nobody_probability,
        evidence=evidence_answer(found.evidence),
        reasons=tuple(found.reasons),
    )
    return answer if write.told == "everything" else rounded_candidates(answer)


def _identified(write: Write, now: int) -> str:
    """The counter of what one key has identified in a day."""
    return f"identified/{write.actor}/{now // DAY}"


def _check_identified(tenant: Tenant, number: int, now: int) -> None:
    most = tenant.settings.identifications_per_day
    if number > most:
        seconds = -(-(DAY - now % DAY) // SECOND)
        detail = f"{most} samples may be identified per key and day; the next in {seconds} seconds."
        raise Problem(
            429, "identifications-spent", "No identification is left today", detail, retry_after=seconds
        )


def _everybody(
    context: Context, tenant: Tenant, text: Text, device: Device
) -> tuple[list[tuple[Background, dict[str, Enrolled]]], dict[str, str]]:
    """Everybody at one moment, by what they are judged beside, and their names.

    If templates have to be learnt first, they are, and `Stale` is raised.
    """
    groups: dict[str | None, tuple[Background | None, dict[str, Enrolled]]] = {}
    names: dict[str, str] = {}
    behind: list[tuple[PersonRow, ProfileRow]] = []
    place = Place(tenant, text, device)
    with context.database.reading() as connection:
        rows = connection.execute(everybody(tenant, device, text).limit(MOST_PEOPLE + 1)).all()
        if len(rows) > MOST_PEOPLE:
            detail = f"Up to {MOST_PEOPLE:,} people are compared with one sample; verify a claim instead."
            raise Problem(409, "too-many-people", "Too many people to identify among", detail)
        for row in rows:
            profile = profile_row(row)
            names[row.user_id] = row.user_name
            made_with = profile.background
            if made_with not in groups:
                groups[made_with] = background_with(connection, context, place, made_with), {}
            beside, people = groups[made_with]
            if beside is None or not profile.is_fitted(beside):
                behind.append((person_row(context, row, "user_"), profile))
                continue
            one = known_already(context, profile, row.user_id, row.user_remembered)
            if one is None:
                person = person_row(context, row, "user_")
                one = enrolled_from(connection, context, person, profile, beside)
            people[row.user_id] = one.enrolled
        found = [(beside, people) for beside, people in groups.values() if beside is not None and people]
        background = background_with(connection, context, place)
        if background is None and not found:
            background = background_for(connection, context, tenant, text, device)
    if behind and background is not None:
        for person, profile in behind:
            fit(context, tenant, person, profile, background)
        raise Stale
    return found, names
