"""Cursors: where the next page of a list begins, as text that is opaque to the caller."""

from __future__ import annotations

import base64
import json
from typing import Any

from keydyn.files import Field, matching, sha256, whole
from keydyn.service.problems import Problem

# What a cursor may hold.
NUMBER = whole(-(1 << 60), 1 << 60)
ID = matching("[0-9a-f]{32}", "an id")
HASH = sha256


def encoded(*values: int | str) -> str:
    """A cursor that holds these values."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def decoded(cursor: str | None, *fields: Field) -> Any:
    """The values of a cursor; None without one, a `Problem` if they are not as the fields say."""
    if cursor is None:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor))
        return tuple(field("cursor", value) for field, value in zip(fields, values, strict=True))
    except (ValueError, TypeError, RecursionError):
        problem = "This cursor cannot be used", "Use the cursor from the previous page."
        raise Problem(400, "bad-cursor", *problem) from None
