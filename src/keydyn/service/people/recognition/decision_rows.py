"""Decisions as they are stored and signed, and the rounding of their scores for callers.

Scores are oracles. With exact scores, a program that sends one sample after the other would find out what to
change next; with steps of half a nat it has to guess which of many small changes helped. Browsers, which
strangers use, get the answer alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from msgspec import structs
from sqlalchemy import Connection, insert, select

from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Write
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import decisions, users
from keydyn.service.wire import answers
from keydyn.service.wire.both_ways import Device, Level, Moment, Text
from keydyn.service.wire.receipts import Receipt, url_safe

Kind = Literal["verify", "identify", "watch"]
Answered = Literal["accept", "reject", "unsure"]
# The steps to which log-likelihood ratios, in nats, and probabilities are rounded for programs.
LLR_STEP, PROBABILITY_STEP = 0.5, 0.05
# Rates are rounded to one of these digits times a power of ten. The first and last digits are for rates close
# to a power of ten, where the logarithm may be off by one.
DIGITS = (0.5, 1.0, 2.0, 5.0, 10.0)
# Advice that a page can show to the person who types.
ADVICE = {
    "accept": "",
    "reject": "Use another factor.",
    "unsure": "Type more and try again, or use another factor.",
}


@dataclass(frozen=True)
class Decided:
    """A decision to store; `level` is the one that was asked for, `judged_level` the one applied."""

    id: str
    kind: Kind
    created_at: int
    answer: Answered
    level: Level
    judged_level: Level
    text: Text
    device: Device

    def keep(self, connection: Connection, write: Write, user_id: str | None) -> None:
        """Store the decision, within the change that is its outcome."""
        row = {**vars(self), "text": str(self.text), "tenant_id": write.tenant.id, "user_id": user_id}
        _INSERT.run(connection, **row, actor=write.actor)

    def receipt(self, tenant: Tenant, user: str | None) -> str:
        """The signed receipt that a page hands to its server; a `ValueError` for a lock, which has none."""
        if self.kind == "watch":
            raise ValueError("a lock has no receipt")
        about = Moment.at(self.created_at), self.kind, user, self.answer
        receipt = Receipt(self.id, tenant.id, *about, self.judged_level, str(self.text), self.device)
        claims = receipt.claims()
        return f"{claims}.{url_safe(tenant.signing_key.sign(claims.encode()))}"


def find_decision(connection: Connection, tenant: Tenant, decision_id: str) -> answers.DecisionRecord:
    """Find a decision of this tenant; raise a `Problem` if there is none with this id, or it has expired."""
    row = connection.execute(
        select(decisions, users.c.name.label("user"))
        .outerjoin(users, users.c.id == decisions.c.user_id)
        .where(decisions.c.id == decision_id, decisions.c.tenant_id == tenant.id)
    ).first()
    if row is None:
        detail = "It was made by another tenant, or longer than 30 days ago, or the user was erased."
        raise Problem(404, "no-such-decision", "There is no such decision", detail)
    return answers.DecisionRecord(
        id=row.id,
        at=Moment.at(row.created_at),
        kind=row.kind,
        user=row.user,
        answer=row.answer,
        level=row.level,
        judged_level=row.judged_level,
        text=Text.parse(row.text),
        device=row.device,
        actor=row.actor,
    )


def rounded(decision: answers.Decision) -> answers.Decision:
    """Round a decision's scores to the steps that programs see."""
    low, high = decision.false_match_rate_interval
    return structs.replace(
        decision,
        llr=stepped(decision.llr, LLR_STEP),
        false_match_rate=coarse_rate(decision.false_match_rate),
        false_match_rate_interval=(coarse_rate(low, up=False), coarse_rate(high)),
        evidence=_evidence(decision.evidence),
    )


def rounded_candidates(found: answers.Identification) -> answers.Identification:
    """Reduce an identification to what programs see.

    If no one is recognised, no one is named: the name of the person whose typing is most like a stranger's
    would say whom this stranger could pass for. Otherwise, candidates whose probability rounds to 0 are left
    out.
    """
    candidates = (
        answers.Candidate(
            one.user,
            stepped(one.probability, PROBABILITY_STEP),
            stepped(one.llr, LLR_STEP),
            coarse_rate(one.false_match_rate),
        )
        for one in found.candidates
    )
    return structs.replace(
        found,
        candidates=() if found.nobody else tuple(one for one in candidates if one.probability > 0.0),
        nobody_probability=stepped(found.nobody_probability, PROBABILITY_STEP),
    )


def stepped(value: float, step: float) -> float:
    """The nearest multiple of a step."""
    return round(round(value / step) * step, 10) + 0.0


def coarse_rate(rate: float, *, up: bool = True) -> float:
    """Round a rate up, or with `up=False` down, to 1, 2 or 5 times a power of ten."""
    if rate <= 0.0:
        return 0.0
    power = math.floor(math.log10(rate))
    steps = [float(f"{digit}e{power}") for digit in DIGITS]
    if up:
        return min(1.0, next(step for step in steps if step >= rate))
    return next(step for step in reversed(steps) if step <= rate)


def _evidence(evidence: answers.Evidence) -> answers.Evidence:
    def coarse(those: tuple[answers.Spoke, ...]) -> tuple[answers.Spoke, ...]:
        return tuple(answers.Spoke(one.key, one.feature, stepped(one.nats, LLR_STEP)) for one in those)

    return structs.replace(
        evidence, spoke_for=coarse(evidence.spoke_for), spoke_against=coarse(evidence.spoke_against)
    )


_INSERT = Prepared(insert(decisions), *(column.name for column in decisions.c))
