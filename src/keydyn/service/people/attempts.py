"""Failed attempts to be a person: a growing delay, after NIST SP 800-63B."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from keydyn.service.clock import SECOND
from keydyn.service.people.rows import Person
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import users

# Failures in a row that cost nothing; the delay after the next, which doubles each time, and its limit, in
# milliseconds; and the number after which an administrator has to step in.
FREE_FAILURES, FIRST_DELAY, LONGEST_DELAY, MOST_FAILURES = 5, 30 * SECOND, 3600 * SECOND, 100


def delay_after(failures: int) -> int:
    """Milliseconds to wait after a number of failures in a row."""
    longer = min(FIRST_DELAY << min(max(failures - FREE_FAILURES, 0), 20), LONGEST_DELAY)
    return longer if failures >= FREE_FAILURES else 0


def waiting(failures: int, failed_at: int, now: int) -> int:
    """Milliseconds still to wait, at most the delay (see `clock_set_back`)."""
    return min(max(0, delay_after(failures) - max(0, now - failed_at)), LONGEST_DELAY)


def check_allowed(person: Person, now: int) -> None:
    """A `Problem` if the next attempt must wait."""
    _refuse(person.failures, person.failed_at, now)


def clock_set_back(connection: Connection, person: Person, now: int) -> None:
    """Let the delay begin now if the last failure lies in the future: it then ends after its own length."""
    later = users.c.id == person.id, users.c.failed_at > now
    connection.execute(update(users).where(*later).values(failed_at=now))


def count(connection: Connection, person: Person, accepted: bool, now: int) -> None:
    """Count an attempt, in the change that stores its outcome.

    A `Problem` if others, made at the same time, have used up the attempts: then the outcome is withheld.
    """
    row = connection.execute(_COUNTS, {"user": person.id}).one()
    _refuse(row.failures, row.failed_at, now)
    if accepted and row.failures == 0:
        return
    failures = 0 if accepted else row.failures + 1
    connection.execute(_COUNT, {"user": person.id, "failures": failures, "failed_at": now})


_ONE = users.c.id == bindparam("user")
_COUNTS = select(users.c.failures, users.c.failed_at).where(_ONE).with_for_update()
_COUNT = update(users).where(_ONE)


def _refuse(failures: int, failed_at: int, now: int) -> None:
    if failures >= MOST_FAILURES:
        detail = f"{failures} attempts in a row failed; an administrator must unblock the user."
        raise Problem(403, "blocked", "Too many failed attempts", detail)
    left = waiting(failures, failed_at, now)
    if left > 0:
        seconds = -(-left // SECOND)
        detail = f"{failures} attempts in a row failed; the next may be made in {seconds} seconds."
        raise Problem(429, "too-many-attempts", "Too many failed attempts", detail, retry_after=seconds)
