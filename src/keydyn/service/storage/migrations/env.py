"""The script that Alembic runs, on the connection and within the transaction that `upgrading` opened."""

from alembic import context

from keydyn.service.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True
)
context.run_migrations()
