"""Statements that requests run often, compiled once and passed directly to the driver.

SQLAlchemy takes several times as long to run a statement as SQLite itself. These statements are written with
SQLAlchemy, so that they are the same for both databases, but bypass it when they run.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler


class _Compiled(NamedTuple):
    """A statement compiled for one database: its SQL, the values to give, and constant values."""

    sql: str
    names: frozenset[str]  # the values that a caller gives
    constants: dict[str, Any]
    order: tuple[str, ...] | None  # of all values, where they go by their place


class Prepared:
    """A statement whose values are given by name when it is run.

    Parameters
    ----------
    statement : a select, insert, update or delete
    columns : the columns that an insert or update sets to given values

    Rows are named tuples, with values as the driver returns them: on SQLite, a boolean is a number.
    """

    def __init__(self, statement: Executable, *columns: str) -> None:
        self._statement, self._columns = statement, columns
        self._compiled: dict[str, _Compiled] = {}
        self._row: Any = None

    def all(self, connection: Connection, **values: Any) -> list[Any]:
        """Run the statement and return all rows."""
        cursor = self._run(connection, values)
        made = (self._row or self._named(cursor))._make
        return [made(row) for row in cursor.fetchall()]

    def plain(self, connection: Connection, **values: Any) -> list[tuple[Any, ...]]:
        """Run the statement and return all rows as plain tuples, which is faster for thousands of rows."""
        found: list[tuple[Any, ...]] = self._run(connection, values).fetchall()
        return found

    def first(self, connection: Connection, **values: Any) -> Any:
        """Run the statement and return the first row; None if there is none."""
        cursor = self._run(connection, values)
        made = (self._row or self._named(cursor))._make
        row = cursor.fetchone()
        cursor.close()
        return None if row is None else made(row)

    def value(self, connection: Connection, **values: Any) -> Any:
        """Run the statement and return the first value of the first row; None if there is none."""
        cursor = self._run(connection, values)
        row = cursor.fetchone()
        cursor.close()
        return None if row is None else row[0]

    def run(self, connection: Connection, **values: Any) -> int:
        """Run the statement and return the number of rows that it changed."""
        changed: int = self._run(connection, values).rowcount
        return changed

    def _named(self, cursor: Any) -> Any:
        made: Any = namedtuple("Row", [column[0] for column in cursor.description])  # type: ignore[misc]
        self._row = made
        return made

    def _run(self, connection: Connection, values: dict[str, Any]) -> Any:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name) or self._compile(connection)
        if values.keys() != found.names:
            raise TypeError(f"the statement takes {sorted(found.names)}, not {sorted(values)}")
        values = {**found.constants, **values} if found.constants else values
        given: Any = values if found.order is None else [values[name] for name in found.order]
        driver: Any = connection.connection.dbapi_connection
        try:
            return driver.execute(found.sql, given)
        except dialect.loaded_dbapi.Error as error:
            lost = dialect.is_disconnect(error, driver, None)
            if lost:
                connection.invalidate(error)
            raise DBAPIError.instance(
                *(found.sql, None, error, dialect.loaded_dbapi.Error),
                hide_parameters=True,
                connection_invalidated=lost,
                dialect=dialect,
            ) from error

    def _compile(self, connection: Connection) -> _Compiled:
        columns = list(self._columns) or None
        made: Any = self._statement.compile(dialect=connection.dialect, column_keys=columns)  # type: ignore[attr-defined]
        assert isinstance(made, SQLCompiler)
        given = {name for name, bind in made.binds.items() if bind.required}
        constants = {name: value for name, value in made.params.items() if name not in given}
        order = tuple(made.positiontup) if made.positional and made.positiontup is not None else None
        found = _Compiled(str(made), frozenset(given), constants, order)
        self._compiled[connection.dialect.name] = found
        return found
