"""Fingerprints as bytes: four per time, and sixteen about them.

In little-endian order: `MARK`, the CRC-32 of all that follows, the number of samples, how many hashes each of
them has, and the hashes; 32 bits each.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

from keydyn.decisions.liveness.copies import Fingerprints

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
    words = b"".join(part.tobytes() for part in (count, lengths, fingerprints.hashes.astype(_WORD)))
    return MARK + crc32(words).to_bytes(4, "little") + words


def fingerprints_of(contents: bytes) -> Fingerprints:
    """What `fingerprints_bytes` gave; a `ValueError` says what is wrong with anything else.

    Examples
    --------
    >>> from keydyn.decisions import Fingerprints, fingerprints_bytes, fingerprints_of
    >>> len(fingerprints_of(fingerprints_bytes(Fingerprints.none())).hashes)
    0
    """
    if contents[:4] != MARK or len(contents) < 12 or len(contents) % 4:
        raise ValueError("these are not fingerprints, or they are cut short")
    if crc32(contents[8:]) != int.from_bytes(contents[4:8], "little"):
        raise ValueError("the fingerprints are damaged: their contents do not match their checksum")
    words = np.frombuffer(contents, dtype=_WORD, offset=8)
    n = int(words[0])
    lengths, hashes = words[1 : n + 1].astype(np.int64), words[n + 1 :].astype(np.uint32)
    if len(lengths) < n or int(lengths.sum()) != len(hashes):
        raise ValueError("the fingerprints do not have as many hashes as they say")
    return Fingerprints(hashes, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]))
