"""A short notation for columns, which the tables and the migrations share."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Integer, LargeBinary, String, Text
from sqlalchemy.types import TypeEngine

TYPES: dict[str, TypeEngine[Any]] = {
    "big": BigInteger(),
    "bool": Boolean(),
    "bytes": LargeBinary(),
    # SQLite numbers rows by itself only if the type is INTEGER.
    "counter": BigInteger().with_variant(Integer(), "sqlite"),
    "float": Float(),
    "int": Integer(),
    "text": Text(),
}
COLUMN = re.compile(
    r"(?P<name>\w+)(?P<key>\*?):(?P<type>\w+)(?P<empty>\??)(>(?P<owner>\w+))?(=(?P<value>\w+))?"
)


def columns(text: str) -> list[Column[Any]]:
    """Make the columns that words such as `user_id:32?>users` describe: a name, a colon and a type.

    A number in place of a type is the length of a text. A column with * is part of the primary key, and one
    with ? may be empty. After > comes the table that the column refers to, whose rows take this table's rows
    with them when they are deleted; after = comes the default value.
    """
    found = []
    for word in text.split():
        parts = COLUMN.fullmatch(word)
        assert parts is not None, word
        kind, owner, value = parts["type"], parts["owner"], parts["value"]
        found.append(
            Column(
                parts["name"],
                String(int(kind)) if kind.isdecimal() else TYPES[kind],
                *([ForeignKey(f"{owner}.id", ondelete="CASCADE")] if owner else []),
                primary_key=bool(parts["key"]),
                nullable=bool(parts["empty"]),
                default=int(value) if value and value.isdecimal() else value,
                server_default=value,
            )
        )
    return found
