"""Loading the templates of many people at once, reading only those that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select

from keydyn.decisions.calibration.background import Background
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.enrolled_bytes import enrolled_of
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.service.people.context import Context
from keydyn.service.storage.tables import profiles, users

# The largest number of templates that one query reads.
AT_A_TIME = 500


def templates_of(
    connection: Connection, context: Context, background: Background, versions: Mapping[str, tuple[str, int]]
) -> dict[str, Enrolled]:
    """The templates of people by their ids, in the order of `versions`, without fingerprints.

    `versions` maps each person's id to their profile's id and version, as this connection sees them. The
    templates must have been learnt with `background`.
    """
    found = {user: context.people.get(*profile) for user, profile in versions.items()}
    missing, nothing = [versions[user][0] for user, one in found.items() if one is None], Fingerprints.none()
    for begin in range(0, len(missing), AT_A_TIME):
        some = connection.execute(
            select(profiles.c.id, profiles.c.version, profiles.c.template, users.c.id, users.c.wrapped_key)
            .join(users, users.c.id == profiles.c.user_id)
            .where(profiles.c.id.in_(missing[begin : begin + AT_A_TIME]))
        )
        for profile, version, sealed, user, wrapped in some:
            key = context.keys.unwrap(wrapped, f"users/{user}")
            template = key.open(sealed, f"profiles/{profile}/template")
            one = enrolled_of(template, background.pattern, nothing)
            context.people.put(profile, version, one)
            found[user] = one
    return {user: one for user, one in found.items() if one is not None}
