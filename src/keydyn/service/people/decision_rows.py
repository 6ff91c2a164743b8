"""Decisions as they are kept, for servers that ask what was decided, and their receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, insert, select

from keydyn.service.accounts import Tenant
from keydyn.service.people.context import Write
from keydyn.service.problems import Problem
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import decisions, users
from keydyn.service.wire.answers import DecisionRecord
from keydyn.service.wire.both_ways import Device, Level, Moment, Text
from keydyn.service.wire.receipts import Receipt, url_safe

Kind = Literal["verify", "identify", "watch"]
Answered = Literal["accept", "reject", "unsure"]


@dataclass(frozen=True)
class Decided:
    """What was decided; `level` is what was asked for, and `judged_level` what was applied."""

    id: str
    kind: Kind
    created_at: int
    answer: Answered
    level: Level
    judged_level: Level
    text: Text
    device: Device

    def keep(self, connection: Connection, write: Write, user_id: str | None) -> None:
        """Store it, within the change that it is the outcome of."""
        row = {**vars(self), "text": str(self.text), "tenant_id": write.tenant.id, "user_id": user_id}
        _INSERT.run(connection, **row, actor=write.actor)

    def receipt(self, tenant: Tenant, user: str | None) -> str:
        """The decision as a page hands it to its server, signed; a lock has no receipt."""
        if self.kind == "watch":
            raise ValueError("a lock has no receipt")
        about = Moment.at(self.created_at), self.kind, user, self.answer
        receipt = Receipt(self.id, tenant.id, *about, self.judged_level, str(self.text), self.device)
        claims = receipt.claims()
        return f"{claims}.{url_safe(tenant.signing_key.sign(claims.encode()))}"


def find_decision(connection: Connection, tenant: Tenant, decision_id: str) -> DecisionRecord:
    """A decision of this tenant; a `Problem` if there is none of this id, or it has expired."""
    row = connection.execute(
        select(decisions, users.c.name.label("user"))
        .outerjoin(users, users.c.id == decisions.c.user_id)
        .where(decisions.c.id == decision_id, decisions.c.tenant_id == tenant.id)
    ).first()
    if row is None:
        detail = "It was made by another tenant, or longer than 30 days ago, or the user was erased."
        raise Problem(404, "no-such-decision", "There is no such decision", detail)
    return DecisionRecord(
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


_INSERT = Prepared(insert(decisions), *(column.name for column in decisions.c))
