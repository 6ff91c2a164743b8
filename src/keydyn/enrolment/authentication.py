"""A manifest that only the holder of a key can write: HMAC-SHA256 over all that it says."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from keydyn.enrolment.plain_files import MEGABYTE, read_plain

LEAST_BYTES = 16


def read_key(path: str | Path) -> bytes:
    """The key, which is every byte of the file; a `ValueError` if it is too short to be one."""
    key = read_plain(Path(path), MEGABYTE)
    if len(key) < LEAST_BYTES:
        raise ValueError(
            f"{path} holds {len(key)} bytes; a key has {LEAST_BYTES} or more, best 32 random ones"
        )
    return key


def code_of(content: dict[str, Any], key: bytes) -> str:
    """The authentication code, in hexadecimal; it does not depend on the order of the fields."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def same_code(given: Any, expected: str) -> bool:
    """Whether two codes agree, in a time that does not tell how far they do."""
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, expected)
