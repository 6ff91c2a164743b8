"""Create the first tables, and triggers that keep the audit log append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0001"
down_revision = None
# The columns of each table (`keydyn.service.storage.column_notation`), unique constraints, and indexes.
TABLES = {
    "audit": "tenant_id*:32 number*:big at:big actor:64 action:64 subject:64 details:text hash:bytes",
    "master_keys": "id*:16 proof:bytes retired:bool",
    "tenants": "id*:32 name:64 created_at:big settings:text wrapped_key:bytes audit_number:big "
    "audit_hash:bytes",
    "api_keys": "id*:32 tenant_id:32>tenants name:64 scopes:64 hash:bytes created_at:big revoked_at:big?",
    "populations": "id*:32 tenant_id:32>tenants device:16 vocabulary:80 background:64 created_at:big "
    "learnt_here:bool contents:bytes",
    "users": "id*:32 tenant_id:32>tenants name:128 created_at:big wrapped_key:bytes failures:int "
    "failed_at:big",
    "webhooks": "id*:32 tenant_id:32>tenants url:2000 events:200 secret:bytes created_at:big",
    "idempotency": "tenant_id*:32>tenants key*:200 user_id:32?>users request:bytes status:int answer:bytes "
    "created_at:big",
    "jobs": "number*:counter tenant_id:32>tenants user_id:32?>users kind:32 payload:bytes attempts:int "
    "due_at:big leased_until:big",
    "members": "population_id*:32>populations user_id*:32>users template:bytes?",
    "profiles": "id*:32 user_id:32>users text:80 device:16 created_at:big version:big samples:int "
    "keystrokes:int known_keystrokes:int clock_tick:float fitted_samples:int fitted_at:big? complete_at:big? "
    "drift:float drift_reported_at:big? background:64? template:bytes?",
    "fingerprints": "number*:counter profile_id:32>profiles created_at:big contents:bytes",
    "samples": "id*:32 profile_id:32>profiles number:int created_at:big expires_at:big keystrokes:int "
    "contents:bytes",
    "watch_sessions": "id*:32 profile_id:32>profiles epoch:big sequence:big locked_at:big? created_at:big "
    "seen_at:big background:64 state:bytes?",
}
UNIQUE = {
    "tenants": "name",
    "populations": "tenant_id device vocabulary",
    "users": "tenant_id name",
    "profiles": "user_id text device",
    "samples": "profile_id number",
}
INDEXES = {
    "idempotency": ("created_at", "user_id"),
    "jobs": ("due_at", "user_id"),
    "members": ("user_id",),
    "fingerprints": ("profile_id number",),
    "samples": ("expires_at",),
    "watch_sessions": ("profile_id", "seen_at"),
}

# Triggers that refuse to change or remove a row of the audit log, or to wrap a key with a retired master key.
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


def upgrade() -> None:
    """Create all tables, indexes and triggers."""
    for table, text in TABLES.items():
        unique = [sa.UniqueConstraint(*UNIQUE[table].split())] if table in UNIQUE else []
        op.create_table(table, *columns(text), *unique)
        for index in INDEXES.get(table, ()):
            op.create_index(None, table, index.split())
    for trigger in TRIGGERS[op.get_context().dialect.name]:
        op.execute(trigger)
