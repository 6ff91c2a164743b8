"""Shared parts of the service's commands: options, opening the database, and showing results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.exit_codes import UsageError
from keydyn.terminal import JsonOption, print_json, say, show_table

if TYPE_CHECKING:
    from keydyn.service.accounts import Tenant
    from keydyn.service.people.context import Context, Write

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
# Modules of the standard library that only POSIX systems have.
POSIX = ("fcntl",)


@contextmanager
def needs_service() -> Iterator[None]:
    """Raise a `UsageError` if the service's packages are not installed, or the system is not supported."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("keydyn"):
            raise
        if error.name in POSIX:
            raise UsageError("the service does not run on Windows: use WSL, Linux or macOS") from None
        raise UsageError(f"{MISSING} ({error.name} is not installed)") from None


@dataclass(frozen=True)
class Service:
    """The options that name the service to administer."""

    database: DatabaseOption = None
    key_file: ServiceKeyOption = None
    as_json: JsonOption = False

    @contextmanager
    def opened(self, create: bool = False) -> Iterator[Context]:
        """Open the database and its keys, and upgrade it; with `create`, it need not exist yet."""
        with needs_service():
            from keydyn.service.people.context import Context
            from keydyn.service.problems import Problem
            from keydyn.service.settings import default_database
            from keydyn.service.storage.database import Database, checked_url
            from keydyn.service.storage.master_keys import open_master_keys
            from keydyn.service.storage.upgrading import upgrade
            from keydyn.service.wall_clock import wall_clock
        address = self.database or default_database()
        url = checked_url(address)
        if not create and url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
            raise UsageError(f"there is no database {url.database}: keydyn serve creates one")
        with closing(Database(address)) as opened:
            upgrade(opened)
            try:
                yield Context(opened, open_master_keys(opened, self.key_file), wall_clock)
            except Problem as problem:
                raise UsageError(str(problem)) from None


def find_tenant(context: Context, name: str) -> Tenant:
    """Find the tenant of this name, which must exist."""
    from sqlalchemy import select

    from keydyn.service.accounts import find_tenant as found_tenant
    from keydyn.service.storage.tables import tenants

    with context.database.reading() as connection:
        found = connection.execute(select(tenants.c.id).where(tenants.c.name == name)).scalar()
        tenant = None if found is None else found_tenant(connection, context.keys, found)
    if tenant is None:
        raise UsageError(
            f"there is no tenant {name!r}: create it with keydyn service keys create --tenant {name}"
        )
    return tenant


def as_operator(context: Context, tenant: str) -> Write:
    """Prepare changes to a tenant, which the audit log attributes to the operator."""
    from keydyn.service.people.context import Write

    return Write(find_tenant(context, tenant), "operator")


def tell(text: str, as_json: bool, **fields: object) -> None:
    """Print a message, or its fields as JSON."""
    if as_json:
        print_json(fields)
    else:
        say(text)


def show(title: str, rows: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    """Show a table or print it as JSON; without rows, print the message `nothing`."""
    if as_json:
        print_json(rows)
    elif rows:
        show_table(title, rows)
    else:
        say(nothing)


def date(at: int | None) -> str:
    """Format a time, in milliseconds since 1970, as a date in UTC."""
    return "" if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
