"""What the service knows, as answers."""

from __future__ import annotations

import math
from typing import Any

from keydyn.decisions import Identification
from keydyn.decisions.decision import as_json
from keydyn.decisions.enrolment import EnrolmentQuality
from keydyn.population.features import INTERVAL
from keydyn.service.accounts import Tenant
from keydyn.service.clock import SECOND
from keydyn.service.http.models import (
    CandidateAnswer,
    CurveAnswer,
    DensitiesAnswer,
    EvidenceAnswer,
    IdentificationAnswer,
    PopulationAnswer,
    ProfileAnswer,
    QualityAnswer,
    SampleAnswer,
    TextKind,
    UserAnswer,
    WebhookAnswer,
)
from keydyn.service.jobs.webhooks import Webhook
from keydyn.service.people.attempts import waiting
from keydyn.service.people.densities import Curve
from keydyn.service.people.enrolment import Enrolment
from keydyn.service.people.identification import Identified
from keydyn.service.people.populations import Population
from keydyn.service.people.registry import Overview
from keydyn.service.people.rows import Profile
from keydyn.service.people.verification import Verified

LARGEST = 1e300


def profile_answer(profile: Profile, tenant: Tenant, now: int) -> ProfileAnswer:
    """How far an enrolment has come."""
    age = None if profile.fitted_at is None else max(0, now - profile.fitted_at) / SECOND
    return ProfileAnswer(
        text=TextKind(kind=profile.text.kind, name=profile.text.name or None),
        device=profile.device,
        samples=profile.samples,
        samples_needed=tenant.settings.samples_needed,
        keystrokes=profile.keystrokes,
        known_keystrokes=profile.known_keystrokes,
        clock_tick_ms=profile.clock_tick,
        complete=profile.complete_at is not None,
        template_at=profile.fitted_at,
        template_age_s=age,
        drift=profile.drift,
    )


def user_answer(found: Overview, tenant: Tenant, now: int) -> UserAnswer:
    """Somebody."""
    person = found.person
    return UserAnswer(
        id=person.name,
        created_at=person.created_at,
        profiles=[profile_answer(profile, tenant, now) for profile in found.profiles],
        failed_attempts=person.failures,
        wait_s=-(-waiting(person.failures, person.failed_at, now) // SECOND),
    )


def sample_answer(done: Enrolment, tenant: Tenant, now: int) -> SampleAnswer:
    """A sample that was stored."""
    return SampleAnswer(
        sample=done.sample_id,
        profile=profile_answer(done.profile, tenant, now),
        quality=quality_answer(done.quality),
    )


def quality_answer(quality: EnrolmentQuality) -> QualityAnswer:
    """What there is of a sample."""
    return QualityAnswer(
        keystrokes=quality.keystrokes,
        known_keystrokes=quality.known,
        clock_tick_ms=quality.tick,
        remarks=list(quality.remarks),
    )


def decision_answer(done: Verified) -> dict[str, Any]:
    """A decision, whole."""
    found = as_json(done.decision)
    found["llr"] = finite(found["llr"])
    return {
        "id": done.id,
        **found,
        "claimed": done.person.name,
        "level": done.level,
        "target_false_match_rate": done.target,
        "updated": done.updated,
    }


def identification_answer(done: Identified, most: int) -> IdentificationAnswer:
    """Who typed a sample."""
    found: Identification = done.found
    counts = found.evidence
    return IdentificationAnswer(
        candidates=[
            CandidateAnswer(
                user=done.names[one.user],
                probability=one.probability,
                llr=finite(one.llr),
                false_match_rate=one.false_match_rate,
            )
            for one in found.candidates[:most]
        ],
        nobody=found.nobody,
        nobody_probability=found.nobody_probability,
        evidence=EvidenceAnswer(
            keystrokes=counts.keystrokes,
            known_keystrokes=counts.known,
            pairs=counts.pairs,
            known_pairs=counts.familiar,
        ),
        reasons=list(found.reasons),
    )


def densities_answer(curves: list[Curve]) -> DensitiesAnswer:
    """Densities, to be drawn."""
    return DensitiesAnswer(
        curves=[
            CurveAnswer(
                feature="interval" if one.time.feature == INTERVAL else "hold",
                keys=(one.time.first, one.time.second),
                times_ms=one.at.tolist(),
                own=one.own.tolist(),
                everybody=one.everybody.tolist(),
            )
            for one in curves
        ]
    )


def webhook_answer(webhook: Webhook) -> WebhookAnswer:
    """Where events are sent."""
    return WebhookAnswer(
        id=webhook.id,
        url=webhook.url,
        events=list(webhook.events),
        created_at=webhook.created_at,
    )


def population_answer(population: Population) -> PopulationAnswer:
    """One of the tenant's own."""
    return PopulationAnswer.model_validate(vars(population))


def finite(value: float) -> float:
    """JSON has no infinity: what is certain is very large."""
    return value if math.isfinite(value) else math.copysign(LARGEST, value)
