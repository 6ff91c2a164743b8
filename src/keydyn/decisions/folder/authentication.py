"""A manifest that only the holder of a key can write: HMAC-SHA256 over all that it says."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

LEAST_BYTES, MOST_BYTES = 16, 4096


def read_key(path: str | Path) -> bytes:
    """The key, which is every byte of the file; a `ValueError` if there are too few or too many.

    Unlike what is in a folder, the path is the user's own: a link or a pipe, as secrets often are, will do.
    """
    with open(path, "rb") as file:
        key = file.read(MOST_BYTES + 1)
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise ValueError(
            f"{path} holds no key: a key has {LEAST_BYTES} to {MOST_BYTES:,} bytes, preferably 32 random ones"
        )
    return key


def code_of(content: dict[str, Any], key: bytes) -> str:
    """The authentication code, in hexadecimal; it does not depend on the order of the fields."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def same_code(given: Any, expected: str) -> bool:
    """Whether two codes agree, in a time that does not tell how far they do."""
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, expected)
