"""The tables of the database. Times are milliseconds since 1970, UTC; personal data is sealed (`sealing`).

Every row that belongs to a person refers to the person's row, and is deleted with it.
"""

from __future__ import annotations

from sqlalchemy import Index, MetaData, Table, UniqueConstraint
from sqlalchemy.schema import SchemaItem

from keydyn.service.storage.column_notation import columns

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def _table(name: str, *parts: str | SchemaItem) -> Table:
    """Make a table from columns, in the notation of `columns`, and from constraints and indexes."""
    items = [columns(part) if isinstance(part, str) else [part] for part in parts]
    return Table(name, metadata, *(item for several in items for item in several))


def _index(*names: str) -> Index:
    """An index that is named after its first column."""
    return Index(None, *names)


# The master keys that have ever been in use, each with a known text that it sealed, so that a wrong key is
# noticed at once. Triggers refuse data keys that are wrapped with a retired one.
master_keys = _table("master_keys", "id*:16 proof:bytes retired:bool")

tenants = _table(
    "tenants",
    "id*:32 name:64 created_at:big settings:text wrapped_key:bytes",
    # The end of the tenant's audit log.
    "audit_number:big audit_hash:bytes",
    # When the key was replaced; the previous key, until nothing is sealed with it any more; and the first
    # key, which still keys fingerprints. Both keys are sealed with the one in use.
    "key_since:big? previous_key:bytes? lasting_key:bytes?",
    # The number of erasures of the tenant's people, by which processes notice that they must forget someone.
    "erasures:big=0",
    # The code that shows that the row was written with the master key (`authentic`).
    "mac:bytes?",
    UniqueConstraint("name"),
)

# API keys of programs; links that open a page, once; and the sessions of pages that keys and links opened.
api_keys = _table(
    "api_keys",
    "id*:32 tenant_id:32>tenants name:64 scopes:64 hash:bytes created_at:big revoked_at:big?",
    # "key", "link" or "session"; when a link or session expires; and the key or link that opened a session.
    "kind:16=key expires_at:big? made_with:32?",
    # The code that shows that the row was written with the master key; missing if the row has been revoked.
    "mac:bytes?",
)

# `name` is the tenant's id for the person; `id` is the one that the other tables use.
users = _table(
    "users",
    "id*:32 tenant_id:32>tenants name:128 created_at:big wrapped_key:bytes",
    # Attempts in a row that were not accepted, and when the last one was.
    "failures:int=0 failed_at:big=0",
    # The number of samples whose fingerprints were ever stored, including those since deleted.
    "remembered:big=0",
    UniqueConstraint("tenant_id", "name"),
)

# One per person, kind of text and kind of device. `version` rises with every change.
profiles = _table(
    "profiles",
    "id*:32 user_id:32>users text:80 device:16 created_at:big version:big",
    # The number of samples enrolled, including expired ones, and of their keystrokes; of these, the number
    # whose keys the population knows; and the tick of the coarsest clock, in milliseconds.
    "samples:int keystrokes:int known_keystrokes:int clock_tick:float",
    # The number of samples that the template was learnt from, and when; and when enrolment became complete.
    "fitted_samples:int fitted_at:big? complete_at:big?",
    # How far the template has drifted since enrolment, and when that was reported.
    "drift:float drift_reported_at:big?",
    # The population that the template rests on (`Background.sha256`), and the template.
    "background:64? template:bytes?",
    UniqueConstraint("user_id", "text", "device"),
)

samples = _table(
    "samples",
    "id*:32 profile_id:32>profiles number:int created_at:big expires_at:big keystrokes:int contents:bytes",
    UniqueConstraint("profile_id", "number"),
    _index("expires_at"),
)

fingerprints = _table(
    "fingerprints",
    "number*:counter profile_id:32>profiles created_at:big contents:bytes",
    _index("profile_id", "number"),
)

# The tenant's own populations: one in use for each kind of device and vocabulary, and earlier ones for as
# long as templates rest on them.
populations = _table(
    "populations",
    "id*:32 tenant_id:32>tenants device:16 vocabulary:80 background:64 created_at:big",
    # Whether it was learnt from the tenant's people, rather than installed; and when it was replaced.
    "learnt_here:bool contents:bytes replaced_at:big?",
)
Index(
    "uq_populations_in_use",
    *(populations.c.tenant_id, populations.c.device, populations.c.vocabulary),
    unique=True,
    sqlite_where=populations.c.replaced_at.is_(None),
    postgresql_where=populations.c.replaced_at.is_(None),
)

# The people whom a population was learnt from, and their templates if they are in its cohort.
members = _table(
    "members", "population_id*:32>populations user_id*:32>users template:bytes?", _index("user_id")
)

# Scores of a profile's samples when claimed to be another person's, and the background of both templates. A
# row is deleted with either profile.
comparisons = _table(
    "comparisons",
    "profile_id*:32>profiles claimed_id*:32>profiles background:64 contents:bytes",
    _index("claimed_id"),
)

# The adjustment of a calibration that follows from comparisons, for people who type one text on one kind of
# device. `version` rises whenever decisions must take a change into account.
own_places = _table(
    "own_places",
    "tenant_id*:32>tenants device*:16 text*:80 version:big",
    # The background that is adjusted; empty if there is no adjustment.
    "background:64",
    # The number of people in the cohort; and the fields of an `OwnPlace`.
    "cohort:int people:int comparisons:int shift:float unsure:float",
)

# Counters that rise until they expire: the cost of failed attempts per day, for a person and for a tenant;
# the number of samples that a key has identified per day; and the number of uses of a token. Of these, only
# the cost for a person belongs to the person.
counters = _table(
    "counters",
    "tenant_id*:32>tenants name*:80 user_id:32?>users expires_at:big amount:big",
    *(_index("user_id"), _index("expires_at")),
)

# Decisions, for servers that ask for them; `user_id` is missing if the answer names no one. `level` was asked
# for, and `judged_level` applied.
decisions = _table(
    "decisions",
    "id*:32 tenant_id:32>tenants user_id:32?>users created_at:big kind:16 answer:16 level:16 judged_level:16",
    "text:80 device:16 actor:64",
    *(_index("user_id"), _index("created_at")),
)

# `epoch` rises when another connection takes a session over, so that the earlier one can no longer write.
# `locks` counts how often a session was locked; a token to unlock is for one of these locks.
watch_sessions = _table(
    "watch_sessions",
    "id*:32 profile_id:32>profiles epoch:big sequence:big locked_at:big? locks:int=0 created_at:big",
    "seen_at:big background:64 state:bytes?",
    *(_index("profile_id"), _index("seen_at")),
)

# Answers to writes, so that a request that is sent again gets the same answer and has no second effect.
idempotency = _table(
    "idempotency",
    "tenant_id*:32>tenants key*:200 user_id:32?>users request:bytes status:int answer:bytes created_at:big",
    *(_index("user_id"), _index("created_at")),
)

# Append-only: triggers refuse changes. Each row's hash covers the row and the hash before it. The index
# includes the details, so that decisions can be counted from the index alone.
audit = _table(
    "audit",
    "tenant_id*:32 number*:big at:big actor:64 action:64 subject:64 details:text hash:bytes",
    _index("tenant_id", "action", "at", "details"),
)

webhooks = _table("webhooks", "id*:32 tenant_id:32>tenants url:2000 events:200 secret:bytes created_at:big")

# Work to do off the request path: delivering webhooks, learning templates and populations. A worker leases a
# job; if the worker dies, the lease ends and another one takes the job.
jobs = _table(
    "jobs",
    "number*:counter tenant_id:32>tenants user_id:32?>users kind:32 payload:bytes attempts:int=0 due_at:big",
    "leased_until:big=0",
    *(_index("due_at"), _index("user_id")),
)
