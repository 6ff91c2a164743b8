"""Options that the service's commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keydyn.exit_codes import UsageError

if TYPE_CHECKING:
    from keydyn.service.people.context import Context

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="KEYDYN_DATABASE",
        help="Address of the database: sqlite:////path/to/file.db or postgresql://user@host/name; by default "
        "SQLite in your own data folder.",
        show_default=False,
    ),
]
ServiceKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        envvar="KEYDYN_KEY_FILE",
        help="File with the master key, mode 0600; or set KEYDYN_MASTER_KEY to the key itself. By default, "
        "with SQLite, a file beside the database.",
        show_default=False,
    ),
]
TenantOption = Annotated[str, typer.Option("--tenant", help="Name of the tenant.")]
MISSING = "the service needs more packages: pip install 'keydyn[service]'"
# Modules of Python itself that only POSIX systems have.
POSIX = ("fcntl",)


@contextmanager
def needs_service() -> Iterator[None]:
    """`UsageError` if the packages of the service are not installed, or the system is not one for it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("keydyn"):
            raise
        if error.name in POSIX:
            raise UsageError("the service does not run on Windows: use WSL, Linux or macOS") from None
        raise UsageError(f"{MISSING} ({error.name} is not installed)") from None


@contextmanager
def service_context(database: str | None, key_file: Path | None, create: bool = False) -> Iterator[Context]:
    """The service's database, brought up to date, with its keys; unless it may be made, it must be there."""
    with needs_service():
        from keydyn.service.clock import wall_clock
        from keydyn.service.people.context import Context
        from keydyn.service.settings import default_database
        from keydyn.service.storage.database import Database, checked_url
        from keydyn.service.storage.master_keys import open_master_keys
        from keydyn.service.storage.upgrading import upgrade
    address = database or default_database()
    url = checked_url(address)
    if not create and url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise UsageError(f"there is no database {url.database}: keydyn serve creates one")
    opened = Database(address)
    try:
        upgrade(opened)
        yield Context(opened, open_master_keys(opened, key_file), wall_clock)
    finally:
        opened.close()
