"""Alembic's migrations of the service's database; `keydyn.service.storage.upgrading` runs them."""
