"""Cursors: where the next page of a list begins, as text that is opaque to the caller."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from keydyn.service.problems import Problem

# What a cursor may hold besides whole numbers: an id, a hash.
ID, HASH = "[0-9a-f]{32}", "[0-9a-f]{64}"


def encoded(*values: int | str) -> str:
    """A cursor."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def decoded(cursor: str | None, *shape: type[int] | str) -> Any:
    """Its values, each a whole number or as a pattern says; None without a cursor, or a `Problem`."""
    if cursor is None:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor))
        if all(_fits(value, kind) for value, kind in zip(values, shape, strict=True)):
            return tuple(values)
    except (ValueError, TypeError, RecursionError):
        pass
    raise Problem(400, "bad-cursor", "This cursor cannot be used", "Use the cursor from the previous page.")


def _fits(value: Any, kind: type[int] | str) -> bool:
    if isinstance(kind, str):
        return isinstance(value, str) and re.fullmatch(kind, value) is not None
    return type(value) is int and abs(value) < 1 << 60
