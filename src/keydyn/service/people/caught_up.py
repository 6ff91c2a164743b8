"""Processes follow what others have done: they forget people who were erased, and report altered rows."""

from __future__ import annotations

from sqlalchemy import Connection, select

from keydyn.service.accounts import note_altered
from keydyn.service.people.context import Context
from keydyn.service.storage.tables import profiles, tenants

# How often a process looks, seconds, and how many ids one query names.
LOOKING_S, AT_A_TIME = 2.0, 500


class CaughtUp:
    """Called every few seconds in each process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._erasures: dict[str, int] = {}
        self._again: set[str] = set()

    def __call__(self) -> None:
        """Forget people who were erased since the last call, and note rows that were found to be altered."""
        context = self._context
        note_altered(context.database, context.keys, context.clock())
        with context.database.reading() as connection:
            rows = connection.execute(select(tenants.c.id, tenants.c.erasures))
            erasures = {row.id: row.erasures for row in rows}
            both = {**self._erasures, **erasures}
            changed = {one for one in both if self._erasures.get(one) != erasures.get(one)}
            # Once more the next time: a request that was under way may have remembered a person meanwhile.
            if changed or self._again:
                self._forget(connection, changed | self._again)
        for gone in set(context.keys.tenants) - set(erasures):
            context.keys.tenants.pop(gone, None)
        self._erasures, self._again = erasures, changed

    def _forget(self, connection: Connection, owners: set[str]) -> None:
        held = self._context.people.names()
        for begin in range(0, len(held), AT_A_TIME):
            some = held[begin : begin + AT_A_TIME]
            there = set(connection.execute(select(profiles.c.id).where(profiles.c.id.in_(some))).scalars())
            for name in some:
                if name not in there:
                    self._context.people.drop(name)
        # Cohorts and crowds have templates too. What is still needed is read again.
        self._context.backgrounds.drop_of(owners)
        self._context.crowds.drop_of(owners)
