"""Fingerprints as bytes: four per time, and sixteen about them.

In little-endian order: `MARK`, the CRC-32 of all that follows, the number of samples, how many hashes each of
them has, and the hashes; 32 bits each.
"""

from __future__ import annotations

import numpy as np

from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.files import marked, unmarked

MARK = b"KDF1"
_WORD = np.dtype("<u4")


def fingerprints_bytes(fingerprints: Fingerprints) -> bytes:
    """All of them, which `fingerprints_of` reads.

    Examples
    --------
    >>> from keydyn.decisions import Fingerprints, fingerprints_bytes
    >>> fingerprints_bytes(Fingerprints.none())[:4]
    b'KDF1'
    """
    lengths = np.diff(fingerprints.offsets).astype(_WORD)
    count = np.array([len(lengths)], dtype=_WORD)
    parts = (count, lengths, fingerprints.hashes.astype(_WORD))
    return marked(MARK, b"".join(part.tobytes() for part in parts))


def fingerprints_of(contents: bytes) -> Fingerprints:
    """What `fingerprints_bytes` gave; a `ValueError` says what is wrong with anything else.

    Examples
    --------
    >>> from keydyn.decisions import Fingerprints, fingerprints_bytes, fingerprints_of
    >>> len(fingerprints_of(fingerprints_bytes(Fingerprints.none())).hashes)
    0
    """
    payload = unmarked(MARK, contents, "fingerprints")
    if len(payload) < _WORD.itemsize or len(payload) % _WORD.itemsize:
        raise ValueError("these bytes are not fingerprints, or they are cut short")
    words = np.frombuffer(payload, dtype=_WORD)
    n = int(words[0])
    lengths, hashes = words[1 : n + 1].astype(np.int64), words[n + 1 :].astype(np.uint32)
    if len(lengths) < n or int(lengths.sum()) != len(hashes):
        raise ValueError("the fingerprints do not have as many hashes as they say")
    return Fingerprints(hashes, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]))
