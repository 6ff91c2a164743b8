"""keydyn service database: upgrade, check, back up and restore the database, and replace the master key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.service.service_options import (
    DatabaseOption,
    ServiceKeyOption,
    date,
    needs_service,
    tell,
)
from keydyn.exit_codes import ExitCode, complain
from keydyn.progress import share_bar, working
from keydyn.terminal import JsonOption, print_json, say, show_table

if TYPE_CHECKING:
    from keydyn.service.storage.database import Database

app = group("database", "Upgrade, check and back up the database, and replace the master key.")
KEEP_HELP = "Keep API keys, links and sessions valid, also those that were revoked since the backup."
BackupArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


@app.command()
@every_command
def upgrade(
    database: DatabaseOption = None, key_file: ServiceKeyOption = None, as_json: JsonOption = False
) -> None:
    """Upgrade the tables to this version of keydyn, as `keydyn serve` does when it starts.

    With the master key, rows of earlier versions that grant access are authenticated too. Without it, this
    happens when the service next starts.

    Example: `keydyn service database upgrade`
    """
    with _opened(database, new=True) as opened, working("upgrading", hidden=as_json):
        from keydyn.service.storage.master_keys import MasterKeyError, known_master_keys, open_master_keys
        from keydyn.service.storage.upgrading import upgrade as bring_up_to_date

        revision = bring_up_to_date(opened)
        # A new database has no key yet, and gets none here.
        with suppress(MasterKeyError):
            known_master_keys(opened, key_file)
            open_master_keys(opened, key_file)
    tell(f"The database has revision {revision}, the newest.", as_json, revision=revision)


@app.command()
@every_command
def check(
    database: DatabaseOption = None, key_file: ServiceKeyOption = None, as_json: JsonOption = False
) -> None:
    """Check that the tables are sound, the audit log is intact and rows that grant access are authentic.

    Whether keys and settings were written by keydyn, not by hand, can only be checked with the master key.

    The command prints the end of each tenant's log, a number and a hash. If you note them elsewhere, you can
    later show that the log was not rewritten. The exit code is 1 if something is wrong.

    Example: `keydyn service database check`
    """
    with _opened(database) as opened, working("checking", hidden=as_json):
        from keydyn.service.storage.audit import verify_all
        from keydyn.service.storage.authentic import altered
        from keydyn.service.storage.master_keys import MasterKeyError, known_master_keys
        from keydyn.service.storage.upgrading import check as look

        report = look(opened)
        logs, altered_rows, unchecked = [], [], ""
        if not report.upgrade_needed:
            with opened.reading() as connection:
                logs = verify_all(connection)
            try:
                keys = known_master_keys(opened, key_file)
                with opened.reading() as connection:
                    altered_rows = altered(connection, keys)
            except MasterKeyError as error:
                unchecked = f"Keys and settings were not checked: {error}"
    rows = [
        {"tenant": log.tenant_id, "entries": log.entries, "end": log.end, "problem": log.problem or None}
        for log in logs
    ]
    if as_json:
        found = {"revision": report.revision, "newest": report.newest, "problems": report.problems}
        print_json({**found, "audit": rows, "altered": altered_rows, "authentic_checked": not unchecked})
    else:
        say(f"Revision {report.revision or 'none'}; the newest is {report.newest}.")
        if rows:
            show_table("Audit log", rows)
        if unchecked:
            say(unchecked)
    problems = [
        *report.problems,
        *altered_rows,
        *(f"audit log of {log.tenant_id}: {log.problem}" for log in logs if log.problem),
    ]
    if report.upgrade_needed:
        problems.append("the tables are out of date: run `keydyn service database upgrade`")
    for problem in problems:
        complain(problem)
    if problems:
        raise typer.Exit(ExitCode.REJECTED)


@app.command()
@every_command
def rotate_key(
    database: DatabaseOption = None, key_file: ServiceKeyOption = None, as_json: JsonOption = False
) -> None:
    """Replace the master key. The service can keep running. If the command is interrupted, run it again.

    Earlier backups need the old key, which is then no longer in the key file.

    Example: `keydyn service database rotate-key`
    """
    with _opened(database) as opened:
        from keydyn.service.storage.master_keys import rotate

        with share_bar(hidden=as_json) as show:
            done = rotate(
                opened, key_file, progress=lambda n, total: show("wrapping keys", n / max(total, 1))
            )
    tell(
        f"The master key is now {done.key}; {done.wrapped} keys were wrapped again.",
        as_json,
        key=done.key,
        retired=done.retired,
        wrapped=done.wrapped,
    )


@app.command()
@every_command
def backup(file: BackupArgument, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Write the whole database, as of one moment, to a file. The service can keep running.

    Encrypted data stay encrypted: they cannot be read without the master key, which is not in the backup.
    Keep the key in another place.

    Example: `keydyn service database backup keydyn.backup`
    """
    with _opened(database) as opened, working("copying", hidden=as_json):
        from keydyn.service.storage.backup import back_up

        back_up(opened, file)
    tell(
        f"{file}: written. Keep the master key too, in another place: the backup is useless without it.",
        as_json,
        file=str(file),
        bytes=file.stat().st_size,
    )


@app.command()
@every_command
def restore(
    file: BackupArgument,
    database: DatabaseOption = None,
    keep_keys: Annotated[bool, typer.Option("--keep-keys", help=KEEP_HELP)] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup into a new database (SQLite) or an empty one (PostgreSQL).

    All API keys, links and sessions of pages are revoked, because some of them may have been revoked after
    the backup was made. Settings, failed attempts and people are as they were then.

    Example: `keydyn service database restore keydyn.backup`
    """
    with needs_service():
        from keydyn.service.people.tenancy import Restored, secure
        from keydyn.service.settings import default_database
        from keydyn.service.storage.backup import restore as put_back
        from keydyn.service.storage.upgrading import upgrade as bring_up_to_date
        from keydyn.service.wall_clock import wall_clock
    found: list[Restored] = []

    def change(opened: Database) -> None:
        bring_up_to_date(opened)
        found.append(opened.write(lambda connection: secure(connection, wall_clock(), keep_keys)))

    with working("copying", hidden=as_json):
        put_back(database or default_database(), file, change)
    (done,) = found
    moment = date(done.last_entry_at)
    when = f", on {moment} UTC or later" if moment else ""
    revoked = f"{done.revoked} API keys, links and sessions were revoked: make new keys with "
    revoked += "`keydyn service keys create`."
    if keep_keys:
        revoked = "API keys that were revoked since then are valid again: revoke them again."
    tell(
        f"The database is now as it was when the backup was made{when}. "
        f"{revoked} Attempts that failed since then are forgotten, so all people must wait before the next "
        "one. People erased since then are there again: erase them again with `keydyn service users erase`.",
        as_json,
        file=str(file),
        last_entry=moment,
        revoked=done.revoked,
    )


@contextmanager
def _opened(database: str | None, new: bool = False) -> Iterator[Database]:
    """Open the database without upgrading it; it must exist unless it may be `new`."""
    with needs_service():
        from keydyn.service.settings import default_database
        from keydyn.service.storage.database import Database, checked_url
    url = database or default_database()
    file = checked_url(url).database
    if "sqlite" in checked_url(url).drivername and not new and not Path(file or "").exists():
        raise ValueError(f"{file}: there is no database yet; `keydyn serve` creates one")
    with closing(Database(url)) as opened:
        yield opened
