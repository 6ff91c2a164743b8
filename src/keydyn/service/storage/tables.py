"""The tables. Times are whole milliseconds since 1970, UTC; what is personal is sealed (`sealing`).

Every row that belongs to a person refers to the person's row, and is deleted with it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)
# SQLite numbers rows by itself only where the type is INTEGER.
Number = BigInteger().with_variant(Integer, "sqlite")


def _of_tenant() -> Column[str]:
    return Column("tenant_id", String(32), ForeignKey("tenants.id", ondelete="CASCADE"), nullable=False)


def _of_user(nullable: bool = False) -> Column[str]:
    return Column("user_id", String(32), ForeignKey("users.id", ondelete="CASCADE"), nullable=nullable)


def _of_profile() -> Column[str]:
    return Column("profile_id", String(32), ForeignKey("profiles.id", ondelete="CASCADE"), nullable=False)


# The master keys that have wrapped something, each with a known text, so that a wrong key is noticed at once.
# Triggers refuse data keys that were wrapped with a retired one.
master_keys = Table(
    "master_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("proof", LargeBinary, nullable=False),
    Column("retired", Boolean, nullable=False),
)

tenants = Table(
    "tenants",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("settings", Text, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False),
    # The end of the tenant's audit log.
    Column("audit_number", BigInteger, nullable=False),
    Column("audit_hash", LargeBinary, nullable=False),
    # When the key was replaced; the one before it, until nothing is sealed with that one any more; and the
    # first one, which still keys fingerprints. Both are sealed with the key in use.
    Column("key_since", BigInteger),
    Column("previous_key", LargeBinary),
    Column("lasting_key", LargeBinary),
    # How often people of the tenant were erased: processes that remember people look at it.
    Column("erasures", BigInteger, nullable=False, server_default="0"),
    # Shows that the row was written with the master key (`authentic`).
    Column("mac", LargeBinary),
)

# Keys of programs; links that open a page, once; and the sessions of pages that keys and links have opened.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_tenant(),
    Column("name", String(64), nullable=False),
    Column("scopes", String(64), nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    # "key", "link" or "session"; when a link or session ends; and the key or link that opened a session.
    Column("kind", String(16), nullable=False, server_default="key"),
    Column("expires_at", BigInteger),
    Column("made_with", String(32)),
    # Shows that the row was written with the master key (`authentic`); missing if it has been revoked.
    Column("mac", LargeBinary),
)

# `name` is what the tenant calls the person, `id` what the other tables do.
users = Table(
    "users",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_tenant(),
    Column("name", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False),
    # Attempts in a row that were not accepted, and when the last one was.
    Column("failures", Integer, nullable=False, default=0),
    Column("failed_at", BigInteger, nullable=False, default=0),
    # Samples whose fingerprints were ever kept; it rises with each.
    Column("remembered", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("tenant_id", "name"),
)

# One per person, kind of text and kind of device. `version` rises with every change.
profiles = Table(
    "profiles",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_user(),
    Column("text", String(80), nullable=False),
    Column("device", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    # Enrolment samples that were accepted, expired ones too, and how many of them the template knows.
    Column("samples", Integer, nullable=False),
    Column("keystrokes", Integer, nullable=False),
    # Of these, the keystrokes of keys that the population knows; and the coarsest clock, milliseconds.
    Column("known_keystrokes", Integer, nullable=False),
    Column("clock_tick", Float, nullable=False),
    Column("fitted_samples", Integer, nullable=False),
    Column("fitted_at", BigInteger),
    Column("complete_at", BigInteger),
    # How far the template has gone from its enrolment, and when that was reported.
    Column("drift", Float, nullable=False),
    Column("drift_reported_at", BigInteger),
    # The population that the template rests on (`Background.sha256`), and the template.
    Column("background", String(64)),
    Column("template", LargeBinary),
    UniqueConstraint("user_id", "text", "device"),
)

samples = Table(
    "samples",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_profile(),
    Column("number", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("keystrokes", Integer, nullable=False),
    Column("contents", LargeBinary, nullable=False),
    UniqueConstraint("profile_id", "number"),
)

fingerprints = Table(
    "fingerprints",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _of_profile(),
    Column("created_at", BigInteger, nullable=False),
    Column("contents", LargeBinary, nullable=False),
    Index("ix_fingerprints_profile_id", "profile_id", "number"),
)

# The tenant's own populations: one in use for each kind of device and vocabulary, and earlier ones as long as
# templates rest on them.
populations = Table(
    "populations",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_tenant(),
    Column("device", String(16), nullable=False),
    Column("vocabulary", String(80), nullable=False),
    Column("background", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Learnt from people of the tenant, or brought in a file.
    Column("learnt_here", Boolean, nullable=False),
    Column("contents", LargeBinary, nullable=False),
    # When another took its place, or it was removed.
    Column("replaced_at", BigInteger),
)
Index(
    "uq_populations_in_use",
    *(populations.c.tenant_id, populations.c.device, populations.c.vocabulary),
    unique=True,
    sqlite_where=populations.c.replaced_at.is_(None),
    postgresql_where=populations.c.replaced_at.is_(None),
)

# Whom a population was learnt from, and their templates if they are in its cohort.
members = Table(
    "members",
    metadata,
    Column("population_id", String(32), ForeignKey("populations.id", ondelete="CASCADE"), nullable=False),
    _of_user(),
    Column("template", LargeBinary),
    PrimaryKeyConstraint("population_id", "user_id"),
    Index("ix_members_user_id", "user_id"),
)

# Scores of a profile's samples in another person's name. They go with either of the two.
comparisons = Table(
    "comparisons",
    metadata,
    _of_profile(),
    Column("claimed_id", String(32), ForeignKey("profiles.id", ondelete="CASCADE"), nullable=False),
    # What both templates rest on.
    Column("background", String(64), nullable=False),
    Column("contents", LargeBinary, nullable=False),
    PrimaryKeyConstraint("profile_id", "claimed_id"),
    Index("ix_comparisons_claimed_id", "claimed_id"),
)

# What comparisons say of a calibration that was learnt elsewhere, for people who type one text on one kind of
# device. `version` rises whenever decisions have to follow.
own_places = Table(
    "own_places",
    metadata,
    _of_tenant(),
    Column("device", String(16), nullable=False),
    Column("text", String(80), nullable=False),
    Column("version", BigInteger, nullable=False),
    # What was calibrated elsewhere; empty if nothing is known.
    Column("background", String(64), nullable=False),
    # How many people were in the cohort; and an `OwnPlace`.
    Column("cohort", Integer, nullable=False),
    Column("people", Integer, nullable=False),
    Column("comparisons", Integer, nullable=False),
    Column("shift", Float, nullable=False),
    Column("unsure", Float, nullable=False),
    PrimaryKeyConstraint("tenant_id", "device", "text"),
)

# Numbers that rise until their row expires: what failed attempts have cost a person and a tenant on one day,
# how many samples a key has identified on one day, and how often a token was used. Of these, only the costs
# of a person's own attempts belong to the person.
counters = Table(
    "counters",
    metadata,
    _of_tenant(),
    Column("name", String(80), nullable=False),
    _of_user(nullable=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant_id", "name"),
    Index("ix_counters_user_id", "user_id"),
)

# What was decided about whom, for servers that ask; `user_id` is missing if the answer names nobody.
decisions = Table(
    "decisions",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_tenant(),
    _of_user(nullable=True),
    Column("created_at", BigInteger, nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("answer", String(16), nullable=False),
    # The level that was asked for, and the one that was applied.
    Column("level", String(16), nullable=False),
    Column("judged_level", String(16), nullable=False),
    Column("text", String(80), nullable=False),
    Column("device", String(16), nullable=False),
    Column("actor", String(64), nullable=False),
    Index("ix_decisions_user_id", "user_id"),
)

# `epoch` rises when a session goes to another connection: the one that held it can no longer write.
watch_sessions = Table(
    "watch_sessions",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_profile(),
    Column("epoch", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("locked_at", BigInteger),
    # How often it was locked: an unlocking is for one of these locks.
    Column("locks", Integer, nullable=False, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False, index=True),
    Column("background", String(64), nullable=False),
    Column("state", LargeBinary),
    Index("ix_watch_sessions_profile_id", "profile_id"),
)

# Answers to writes, so that the same request sent again has the same answer and no second effect.
idempotency = Table(
    "idempotency",
    metadata,
    _of_tenant(),
    Column("key", String(200), nullable=False),
    _of_user(nullable=True),
    Column("request", LargeBinary, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False, index=True),
    PrimaryKeyConstraint("tenant_id", "key"),
    Index("ix_idempotency_user_id", "user_id"),
)

# Append-only: triggers refuse changes. Each row's hash covers the row and the hash before it.
audit = Table(
    "audit",
    metadata,
    Column("tenant_id", String(32), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", String(64), nullable=False),
    Column("details", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant_id", "number"),
    # With the details, so that decisions are counted without a look at the rows.
    Index("ix_audit_tenant_id", "tenant_id", "action", "at", "details"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(32), primary_key=True),
    _of_tenant(),
    Column("url", String(2000), nullable=False),
    Column("events", String(200), nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# Work to be done off the request path: deliveries of webhooks, templates, populations. A worker that takes
# one leases it; if the worker dies, the lease ends and another takes it.
jobs = Table(
    "jobs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    _of_tenant(),
    _of_user(nullable=True),
    Column("kind", String(32), nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("due_at", BigInteger, nullable=False),
    Column("leased_until", BigInteger, nullable=False, default=0),
    Index("ix_jobs_due_at", "due_at"),
    Index("ix_jobs_user_id", "user_id"),
)
