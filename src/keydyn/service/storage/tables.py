"""The tables. Times are whole milliseconds since 1970, UTC; what is personal is sealed (`sealing`).

Every row that belongs to a person refers to the person's row, and is deleted with it.
"""

from __future__ import annotations

from sqlalchemy import Index, MetaData, Table, UniqueConstraint
from sqlalchemy.schema import SchemaItem

from keydyn.service.storage.columns import columns

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def _table(name: str, *parts: str | SchemaItem) -> Table:
    """A table of columns, several in a text, and of constraints and indexes."""
    items = [columns(part) if isinstance(part, str) else [part] for part in parts]
    return Table(name, metadata, *(item for several in items for item in several))


def _index(*names: str) -> Index:
    """An index that is named after its first column."""
    return Index(None, *names)


# The master keys that have wrapped something, each with a known text, so that a wrong key is noticed at once.
# Triggers refuse data keys that were wrapped with a retired one.
master_keys = _table("master_keys", "id*:16 proof:bytes retired:bool")

tenants = _table(
    "tenants",
    "id*:32 name:64 created_at:big settings:text wrapped_key:bytes",
    # The end of the tenant's audit log.
    "audit_number:big audit_hash:bytes",
    # When the key was replaced; the one before it, until nothing is sealed with that one any more; and the
    # first one, which still keys fingerprints. Both are sealed with the key in use.
    "key_since:big? previous_key:bytes? lasting_key:bytes?",
    # How often people of the tenant were erased: processes that remember people look at it.
    "erasures:big=0",
    # Shows that the row was written with the master key (`authentic`).
    "mac:bytes?",
    UniqueConstraint("name"),
)

# Keys of programs; links that open a page, once; and the sessions of pages that keys and links have opened.
api_keys = _table(
    "api_keys",
    "id*:32 tenant_id:32>tenants name:64 scopes:64 hash:bytes created_at:big revoked_at:big?",
    # "key", "link" or "session"; when a link or session ends; and the key or link that opened a session.
    "kind:16=key expires_at:big? made_with:32?",
    # Shows that the row was written with the master key (`authentic`); missing if it has been revoked.
    "mac:bytes?",
)

# `name` is what the tenant calls the person, `id` what the other tables do.
users = _table(
    "users",
    "id*:32 tenant_id:32>tenants name:128 created_at:big wrapped_key:bytes",
    # Attempts in a row that were not accepted, and when the last one was.
    "failures:int=0 failed_at:big=0",
    # Samples whose fingerprints were ever kept; it rises with each.
    "remembered:big=0",
    UniqueConstraint("tenant_id", "name"),
)

# One per person, kind of text and kind of device. `version` rises with every change.
profiles = _table(
    "profiles",
    "id*:32 user_id:32>users text:80 device:16 created_at:big version:big",
    # Enrolment samples that were accepted, expired ones too, and their keystrokes; of these, those of keys
    # that the population knows; and the coarsest clock, milliseconds.
    "samples:int keystrokes:int known_keystrokes:int clock_tick:float",
    # How many samples the template knows, and since when; and when enrolment became complete.
    "fitted_samples:int fitted_at:big? complete_at:big?",
    # How far the template has gone from its enrolment, and when that was reported.
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

# The tenant's own populations: one in use for each kind of device and vocabulary, and earlier ones as long as
# templates rest on them.
populations = _table(
    "populations",
    "id*:32 tenant_id:32>tenants device:16 vocabulary:80 background:64 created_at:big",
    # Whether it was learnt from people of the tenant, not brought in a file; and when it was replaced.
    "learnt_here:bool contents:bytes replaced_at:big?",
)
Index(
    "uq_populations_in_use",
    *(populations.c.tenant_id, populations.c.device, populations.c.vocabulary),
    unique=True,
    sqlite_where=populations.c.replaced_at.is_(None),
    postgresql_where=populations.c.replaced_at.is_(None),
)

# Whom a population was learnt from, and their templates if they are in its cohort.
members = _table(
    "members", "population_id*:32>populations user_id*:32>users template:bytes?", _index("user_id")
)

# Scores of a profile's samples in another person's name, and what both templates rest on. They go with either
# of the two.
comparisons = _table(
    "comparisons",
    "profile_id*:32>profiles claimed_id*:32>profiles background:64 contents:bytes",
    _index("claimed_id"),
)

# What comparisons say of a calibration that was learnt elsewhere, for people who type one text on one kind of
# device. `version` rises whenever decisions have to follow.
own_places = _table(
    "own_places",
    "tenant_id*:32>tenants device*:16 text*:80 version:big",
    # What was calibrated elsewhere; empty if nothing is known.
    "background:64",
    # How many people were in the cohort; and an `OwnPlace`.
    "cohort:int people:int comparisons:int shift:float unsure:float",
)

# Numbers that rise until their row expires: what failed attempts have cost a person and a tenant on one day,
# how many samples a key has identified on one day, and how often a token was used. Of these, only the costs
# of a person's own attempts belong to the person.
counters = _table(
    "counters",
    "tenant_id*:32>tenants name*:80 user_id:32?>users expires_at:big amount:big",
    *(_index("user_id"), _index("expires_at")),
)

# What was decided about whom, for servers that ask; `user_id` is missing if the answer names nobody. `level`
# was asked for, and `judged_level` applied.
decisions = _table(
    "decisions",
    "id*:32 tenant_id:32>tenants user_id:32?>users created_at:big kind:16 answer:16 level:16 judged_level:16",
    "text:80 device:16 actor:64",
    *(_index("user_id"), _index("created_at")),
)

# `epoch` rises when a session goes to another connection: the one that held it can no longer write. `locks`
# says how often it was locked: an unlocking is for one of these locks.
watch_sessions = _table(
    "watch_sessions",
    "id*:32 profile_id:32>profiles epoch:big sequence:big locked_at:big? locks:int=0 created_at:big",
    "seen_at:big background:64 state:bytes?",
    *(_index("profile_id"), _index("seen_at")),
)

# Answers to writes, so that the same request sent again has the same answer and no second effect.
idempotency = _table(
    "idempotency",
    "tenant_id*:32>tenants key*:200 user_id:32?>users request:bytes status:int answer:bytes created_at:big",
    *(_index("user_id"), _index("created_at")),
)

# Append-only: triggers refuse changes. Each row's hash covers the row and the hash before it. The index has
# the details, so that decisions are counted without a look at the rows.
audit = _table(
    "audit",
    "tenant_id*:32 number*:big at:big actor:64 action:64 subject:64 details:text hash:bytes",
    _index("tenant_id", "action", "at", "details"),
)

webhooks = _table("webhooks", "id*:32 tenant_id:32>tenants url:2000 events:200 secret:bytes created_at:big")

# Work to be done off the request path: deliveries of webhooks, templates, populations. A worker that takes
# one leases it; if the worker dies, the lease ends and another takes it.
jobs = _table(
    "jobs",
    "number*:counter tenant_id:32>tenants user_id:32?>users kind:32 payload:bytes attempts:int=0 due_at:big",
    "leased_until:big=0",
    *(_index("due_at"), _index("user_id")),
)
