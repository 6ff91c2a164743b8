"""Attempts to be a person: the delay before the next one, and the budget of failed attempts.

A stranger whose attempt is judged at a false-match rate is accepted with at most that probability. However
attempts depend on each other, the chance that one of several is accepted is at most the sum of their rates
(the union bound). Every attempt that is not accepted therefore spends its rate from a budget, the tenant's
`takeover_chance`, and an attempt whose rate no longer fits is not judged. An accepted attempt gives nothing
back: the service cannot know whether the failed attempts before it were the owner's or a stranger's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, get_args

from sqlalchemy import Connection, bindparam, exists, func, select, update

from keydyn.service.accounts import Tenant
from keydyn.service.jobs.webhooks import announce
from keydyn.service.people.context import Write
from keydyn.service.people.rows import PersonRow, Stale
from keydyn.service.problems import Problem
from keydyn.service.storage import counters
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.tables import counters as counter_rows
from keydyn.service.storage.tables import users
from keydyn.service.wall_clock import DAY, SECOND, whole_seconds
from keydyn.service.wire.both_ways import Level, Settings

# The number of failures in a row from which the next attempt is delayed; the first delay in milliseconds,
# which doubles with each failure; and the longest delay.
FREE_FAILURES, FIRST_DELAY, LONGEST_DELAY = 5, 30 * SECOND, 3600 * SECOND
# The levels, from the least strict to the strictest. Each may use the budget up to its share: if all could
# use the whole of it, a few failures at `standard` would leave the owner without any attempt for a month.
LEVELS: tuple[Level, ...] = get_args(Level)
STRICTEST = LEVELS[-1]
SHARES = {"low": 0.8, "standard": 0.8, "high": 1.0}
# Chances are counted in millionths, rounded up.
UNIT = 1_000_000
# The number of calendar days that 30 days can touch.
WINDOW = 31
# By default, a day's failed attempts may amount to one takeover per this many users.
USERS_PER_TAKEOVER = 100


class Spent(NamedTuple):
    """The cost of one day's failed attempts, in millionths, and the time from which it no longer counts."""

    expires_at: int
    amount: int


class Counts(NamedTuple):
    """A person's failures in a row, the time of the last one, and the cost of all failures that still count.

    `unusual` is set if today's failures at the whole tenant amount to more takeovers than a day may have.
    """

    failures: int
    failed_at: int
    spent: Sequence[Spent]
    unusual: bool = False

    def waiting_time(self, settings: Settings, now: int) -> int:
        """Milliseconds until the next attempt may be made."""
        delayed = waiting_time(self.failures, self.failed_at, now)
        return max(delayed, spent_until(self.spent, settings, now) - now)


def cost_of(rate: float) -> int:
    """The cost, in millionths, of a failed attempt that was judged at this rate."""
    return math.ceil(round(rate * UNIT, 6))


def fitting(asked: Level, settings: Settings, spent: int) -> Level | None:
    """The level at which an attempt is judged: the one asked for, or the next stricter one in the budget.

    None if not even the strictest level is within the budget; then no attempt may be made.
    """
    budget = round(settings.takeover_chance * UNIT)
    for level in LEVELS[LEVELS.index(asked) :]:
        if spent + cost_of(getattr(settings.levels, level)) <= SHARES[level] * budget:
            return level
    return None


def spent_until(spent: Sequence[Spent], settings: Settings, now: int) -> int:
    """When the budget allows an attempt: now, or once enough of what was spent no longer counts."""
    at, left = now, sum(one.amount for one in spent)
    for one in sorted(spent):
        if fitting(STRICTEST, settings, left) is not None:
            break
        at, left = max(now, one.expires_at), left - one.amount
    return at


def delay_after(failures: int) -> int:
    """Milliseconds to wait after a number of failures in a row."""
    longer = min(FIRST_DELAY << min(max(failures - FREE_FAILURES, 0), 20), LONGEST_DELAY)
    return longer if failures >= FREE_FAILURES else 0


def waiting_time(failures: int, failed_at: int, now: int) -> int:
    """Milliseconds still to wait, at most the delay (see `clock_set_back`)."""
    return min(max(0, delay_after(failures) - max(0, now - failed_at)), LONGEST_DELAY)


def counts_of(
    connection: Connection, tenant: Tenant, person_id: str, now: int, *, lock: bool = False
) -> Counts:
    """Read a person's counts; with `lock`, no one else can change them until the change is committed."""
    if lock:
        # In a statement of its own: otherwise PostgreSQL would read the counts as they were before the wait.
        _LOCK.first(connection, user=person_id)
    row = _COUNTS.first(connection, tenant=tenant.id, today=_day(now), user=person_id, now=now)
    if row is None:
        # Erased meanwhile.
        raise Stale
    # Most people have not failed at all, which saves this query.
    spent = [Spent(*each) for each in _SPENT.all(connection, user=person_id, now=now)] if row.spent else []
    return Counts(row.failures, row.failed_at, spent, _is_unusual(connection, tenant, row.day or 0))


def allowed_level(tenant: Tenant, counts: Counts, asked: Level, now: int) -> Level:
    """The level at which the next attempt is judged; raises a `Problem` if it must wait."""
    delayed = waiting_time(counts.failures, counts.failed_at, now)
    if delayed > 0:
        seconds = whole_seconds(delayed)
        detail = f"{counts.failures} attempts in a row failed; the next may be made in {seconds} seconds."
        raise Problem(429, "too-many-attempts", "Too many failed attempts", detail, retry_after=seconds)
    level = fitting(asked, tenant.settings, sum(one.amount for one in counts.spent))
    if level is None:
        seconds = whole_seconds(max(spent_until(counts.spent, tenant.settings, now) - now, SECOND))
        detail = (
            f"Failed attempts of the last 30 days have used up what the settings allow; the next may be made "
            f"in {seconds} seconds. Ask for another factor."
        )
        title = "No attempt is left for now"
        raise Problem(429, "attempts-spent", title, detail, retry_after=seconds)
    return STRICTEST if counts.unusual else level


def clock_set_back(connection: Connection, person: PersonRow, now: int) -> None:
    """Let a person's delay begin now if their last failure lies in the future, so that it ends in time."""
    later = users.c.id == person.id, users.c.failed_at > now
    connection.execute(update(users).where(*later).values(failed_at=now))


class Attempt(NamedTuple):
    """An attempt: the level that was asked for, the one that was applied, and whether it was accepted."""

    asked: Level
    judged: Level
    accepted: bool


def count_attempt(connection: Connection, tenant: Tenant, person: PersonRow, made: Attempt, now: int) -> int:
    """Count an attempt, in the change that stores its outcome; return the milliseconds until the next one.

    Raises a `Problem` if attempts made at the same time have used up the budget, and `Stale` if they have
    left only a stricter level. In both cases the outcome is withheld.
    """
    counts = counts_of(connection, tenant, person.id, now, lock=True)
    level = allowed_level(tenant, counts, made.asked, now)
    if LEVELS.index(level) > LEVELS.index(made.judged):
        raise Stale
    if not made.accepted:
        return _count_failure(connection, tenant, person.id, counts, made.judged, now)
    if counts.failures:
        forgive(connection, person.id)
    return 0


def count_lock(connection: Connection, tenant: Tenant, person_id: str, now: int) -> None:
    """Count a locked session as a failed attempt, at the rate of the strictest level.

    A session has no false-match rate of its own. At this rate, false lock-outs of people who type for hours
    do not use up their budget.
    """
    counts = counts_of(connection, tenant, person_id, now, lock=True)
    _count_failure(connection, tenant, person_id, counts, STRICTEST, now)


def forgive(connection: Connection, person_id: str, *, budget: bool = False) -> None:
    """End a person's delay; with `budget`, also forget the cost of failed attempts.

    Forgetting the cost weakens the promise: over a period that includes the reset, strangers may have up to
    twice the chance.
    """
    _COUNT.run(connection, user=person_id, failures=0, failed_at=0)
    if budget:
        connection.execute(counter_rows.delete().where(counter_rows.c.user_id == person_id))


def _count_failure(
    connection: Connection, tenant: Tenant, person_id: str, counts: Counts, level: Level, now: int
) -> int:
    failures, cost = counts.failures + 1, cost_of(getattr(tenant.settings.levels, level))
    _COUNT.run(connection, user=person_id, failures=failures, failed_at=now)
    expires = (now // DAY + WINDOW) * DAY
    counters.add(connection, tenant.id, f"{_day(now)}/{person_id}", cost, expires, person_id)
    day = counters.add(connection, tenant.id, _day(now), cost, now + DAY)
    if _is_unusual(connection, tenant, day):
        _tell(connection, tenant, now)
    after = Counts(failures, now, [*counts.spent, Spent(expires, cost)])
    return after.waiting_time(tenant.settings, now)


def _day(now: int) -> str:
    return f"attempts/{now // DAY}"


def _is_unusual(connection: Connection, tenant: Tenant, spent: int) -> bool:
    """Whether a day's failed attempts at a tenant amount to more takeovers than are allowed."""
    most = tenant.settings.takeovers_per_day
    # People are counted only where their number matters.
    if spent <= (UNIT if most is None else most * UNIT):
        return False
    if most is not None:
        return True
    people = connection.execute(select(func.count()).where(users.c.tenant_id == tenant.id)).scalar_one()
    return spent > people * UNIT // USERS_PER_TAKEOVER


def _tell(connection: Connection, tenant: Tenant, now: int) -> None:
    """Report, once per day, that failed attempts are unusually many."""
    if counters.add(connection, tenant.id, f"unusual/{now // DAY}", 1, now + DAY) == 1:
        Write(tenant, "service").note(connection, now, "attempts.unusual")
        announce(connection, tenant, "attempts.unusual", {"level": STRICTEST}, now=now)


_ONE = users.c.id == bindparam("user")
_LOCK = Prepared(select(users.c.id).where(_ONE).with_for_update())
_OWN = counter_rows.c.user_id == bindparam("user"), counter_rows.c.expires_at > bindparam("now")
_TODAY = counter_rows.c.tenant_id == bindparam("tenant"), counter_rows.c.name == bindparam("today")
_COUNTS = Prepared(
    select(
        users.c.failures,
        users.c.failed_at,
        select(counter_rows.c.amount).where(*_TODAY).scalar_subquery().label("day"),
        exists().where(*_OWN).label("spent"),
    ).where(_ONE)
)
_COUNT = Prepared(update(users).where(_ONE), "failures", "failed_at")
_SPENT = Prepared(select(counter_rows.c.expires_at, counter_rows.c.amount).where(*_OWN))
