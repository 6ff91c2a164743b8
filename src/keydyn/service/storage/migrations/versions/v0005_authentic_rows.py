"""Authenticate rows that grant access, let tenants' keys be replaced, and keep replaced populations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0005"
down_revision = "0004"
# Triggers that refuse rows authenticated with a retired master key, and that refuse to delete entries of the
# audit log while their tenant exists.
TRIGGERS = {
    "sqlite": [
        *(
            f"""CREATE TRIGGER {table}_mac_{event.split()[0].lower()} BEFORE {event} ON {table}
            WHEN EXISTS (
                SELECT 1 FROM master_keys WHERE retired AND id = lower(hex(substr(NEW.mac, 1, 8)))
            )
            BEGIN SELECT RAISE(ABORT, 'authenticated with a retired master key'); END"""
            for table in ("tenants", "api_keys")
            for event in ("INSERT", "UPDATE OF mac")
        ),
        "DROP TRIGGER audit_no_delete",
        """CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
        WHEN EXISTS (SELECT 1 FROM tenants WHERE id = OLD.tenant_id)
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    ],
    "postgresql": [
        # The lock lets a key be retired only after those who used it have finished.
        """CREATE FUNCTION refuse_retired_mac() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE is_retired boolean;
        BEGIN
            SELECT retired INTO is_retired FROM master_keys
            WHERE id = encode(substr(NEW.mac, 1, 8), 'hex') FOR SHARE;
            IF is_retired THEN
                RAISE EXCEPTION 'authenticated with a retired master key'
                USING ERRCODE = 'serialization_failure';
            END IF;
            RETURN NEW;
        END $$""",
        *(
            f"""CREATE TRIGGER {table}_mac BEFORE INSERT OR UPDATE OF mac ON {table}
            FOR EACH ROW EXECUTE FUNCTION refuse_retired_mac()"""
            for table in ("tenants", "api_keys")
        ),
        "DROP TRIGGER audit_append_only ON audit",
        """CREATE TRIGGER audit_append_only BEFORE UPDATE OR TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()""",
        """CREATE FUNCTION refuse_audit_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM tenants WHERE id = OLD.tenant_id) THEN
                RAISE EXCEPTION 'the audit log is append-only';
            END IF;
            RETURN OLD;
        END $$""",
        """CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
        FOR EACH ROW EXECUTE FUNCTION refuse_audit_deletion()""",
    ],
}


def upgrade() -> None:
    """Add the columns and triggers; rows get their codes when the master key is next used."""
    for column in columns("previous_key:bytes? lasting_key:bytes? mac:bytes? key_since:big? erasures:big=0"):
        op.add_column("tenants", column)
    op.add_column("api_keys", *columns("mac:bytes?"))
    with op.batch_alter_table("populations") as populations:
        populations.add_column(*columns("replaced_at:big?"))
        populations.drop_constraint("uq_populations_tenant_id", type_="unique")
    in_use = sa.text("replaced_at IS NULL")
    op.create_index(
        "uq_populations_in_use",
        "populations",
        ["tenant_id", "device", "vocabulary"],
        unique=True,
        sqlite_where=in_use,
        postgresql_where=in_use,
    )
    # Delete answers that belong to no particular person: some may hold hashes of the names of people who have
    # been erased.
    op.execute("DELETE FROM idempotency WHERE user_id IS NULL")
    for trigger in TRIGGERS[op.get_context().dialect.name]:
        op.execute(trigger)
