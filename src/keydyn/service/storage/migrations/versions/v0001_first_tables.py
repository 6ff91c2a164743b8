"""The first tables, and triggers that keep the audit log append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# What refuses to change or remove a row of the audit log, and to wrap a key with a retired master key.
TRIGGERS = {
    "sqlite": [
        *(
            f"""CREATE TRIGGER audit_no_{event.lower()} BEFORE {event} ON audit
            BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"""
            for event in ("UPDATE", "DELETE")
        ),
        *(
            f"""CREATE TRIGGER {table}_key_{event.split()[0].lower()} BEFORE {event} ON {table}
            WHEN EXISTS (
                SELECT 1 FROM master_keys WHERE retired AND id = lower(hex(substr(NEW.wrapped_key, 1, 8)))
            )
            BEGIN SELECT RAISE(ABORT, 'wrapped with a retired master key'); END"""
            for table in ("tenants", "users")
            for event in ("INSERT", "UPDATE OF wrapped_key")
        ),
    ],
    "postgresql": [
        """CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$""",
        """CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()""",
        # The lock lets a key be retired only after those who wrapped with it have finished.
        """CREATE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE is_retired boolean;
        BEGIN
            SELECT retired INTO is_retired FROM master_keys
            WHERE id = encode(substr(NEW.wrapped_key, 1, 8), 'hex') FOR SHARE;
            IF is_retired THEN
                RAISE EXCEPTION 'wrapped with a retired master key' USING ERRCODE = 'serialization_failure';
            END IF;
            RETURN NEW;
        END $$""",
        *(
            f"""CREATE TRIGGER {table}_key BEFORE INSERT OR UPDATE OF wrapped_key ON {table}
            FOR EACH ROW EXECUTE FUNCTION refuse_retired_key()"""
            for table in ("tenants", "users")
        ),
    ],
}


def _refers(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    """A column with the id of a row of another table, with which its own row goes."""
    return sa.ForeignKeyConstraint(
        [column], [f"{to}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
    )


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "audit",
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "number", name=op.f("pk_audit")),
    )
    op.create_table(
        "master_keys",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("proof", sa.LargeBinary(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_master_keys")),
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("audit_number", sa.BigInteger(), nullable=False),
        sa.Column("audit_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        _refers("api_keys", "tenant_id", "tenants"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_table(
        "populations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("device", sa.String(length=16), nullable=False),
        sa.Column("vocabulary", sa.String(length=80), nullable=False),
        sa.Column("background", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("learnt_here", sa.Boolean(), nullable=False),
        sa.Column("contents", sa.LargeBinary(), nullable=False),
        _refers("populations", "tenant_id", "tenants"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_populations")),
        sa.UniqueConstraint("tenant_id", "device", "vocabulary", name=op.f("uq_populations_tenant_id")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failed_at", sa.BigInteger(), nullable=False),
        _refers("users", "tenant_id", "tenants"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_users_tenant_id")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("events", sa.String(length=200), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _refers("webhooks", "tenant_id", "tenants"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=True),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _refers("idempotency", "tenant_id", "tenants"),
        _refers("idempotency", "user_id", "users"),
        sa.PrimaryKeyConstraint("tenant_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_created_at"), "idempotency", ["created_at"], unique=False)
    op.create_index("ix_idempotency_user_id", "idempotency", ["user_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=False),
        _refers("jobs", "tenant_id", "tenants"),
        _refers("jobs", "user_id", "users"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_due_at", "jobs", ["due_at"], unique=False)
    op.create_index("ix_jobs_user_id", "jobs", ["user_id"], unique=False)
    op.create_table(
        "members",
        sa.Column("population_id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("template", sa.LargeBinary(), nullable=True),
        _refers("members", "population_id", "populations"),
        _refers("members", "user_id", "users"),
        sa.PrimaryKeyConstraint("population_id", "user_id", name=op.f("pk_members")),
    )
    op.create_index("ix_members_user_id", "members", ["user_id"], unique=False)
    op.create_table(
        "profiles",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=32), nullable=False),
        sa.Column("text", sa.String(length=80), nullable=False),
        sa.Column("device", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("keystrokes", sa.Integer(), nullable=False),
        sa.Column("known_keystrokes", sa.Integer(), nullable=False),
        sa.Column("clock_tick", sa.Float(), nullable=False),
        sa.Column("fitted_samples", sa.Integer(), nullable=False),
        sa.Column("fitted_at", sa.BigInteger(), nullable=True),
        sa.Column("complete_at", sa.BigInteger(), nullable=True),
        sa.Column("drift", sa.Float(), nullable=False),
        sa.Column("drift_reported_at", sa.BigInteger(), nullable=True),
        sa.Column("background", sa.String(length=64), nullable=True),
        sa.Column("template", sa.LargeBinary(), nullable=True),
        _refers("profiles", "user_id", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profiles")),
        sa.UniqueConstraint("user_id", "text", "device", name=op.f("uq_profiles_user_id")),
    )
    op.create_table(
        "fingerprints",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("profile_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("contents", sa.LargeBinary(), nullable=False),
        _refers("fingerprints", "profile_id", "profiles"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_fingerprints")),
    )
    op.create_index("ix_fingerprints_profile_id", "fingerprints", ["profile_id", "number"], unique=False)
    op.create_table(
        "samples",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("profile_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("keystrokes", sa.Integer(), nullable=False),
        sa.Column("contents", sa.LargeBinary(), nullable=False),
        _refers("samples", "profile_id", "profiles"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
        sa.UniqueConstraint("profile_id", "number", name=op.f("uq_samples_profile_id")),
    )
    op.create_index(op.f("ix_samples_expires_at"), "samples", ["expires_at"], unique=False)
    op.create_table(
        "watch_sessions",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("profile_id", sa.String(length=32), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("locked_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("background", sa.String(length=64), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=True),
        _refers("watch_sessions", "profile_id", "profiles"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watch_sessions")),
    )
    op.create_index("ix_watch_sessions_profile_id", "watch_sessions", ["profile_id"], unique=False)
    op.create_index(op.f("ix_watch_sessions_seen_at"), "watch_sessions", ["seen_at"], unique=False)

    for trigger in TRIGGERS[op.get_context().dialect.name]:
        op.execute(trigger)
