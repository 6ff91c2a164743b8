"""SipHash-2-4 of many short messages at once (Aumasson and Bernstein, 2012).

A keyed hash made for short messages: without the key, what was hashed can neither be told nor found by
trying. With the key, it can be found by trying.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import compiled, inner

Words = NDArray[np.uint64]
Round = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

SHORTEST_SECRET, LONGEST_SECRET = 16, 64
START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def check_secret(secret: bytes) -> None:
    """A `ValueError` if this is no secret of 16 to 64 bytes."""
    if not isinstance(secret, bytes) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise ValueError(f"the secret must be {SHORTEST_SECRET} to {LONGEST_SECRET} bytes")


def key_for(purpose: str, secret: bytes) -> tuple[int, int]:
    """The two words of a key for one purpose, derived from the secret."""
    check_secret(secret)
    key = blake2b(purpose.encode(), key=secret, digest_size=16).digest()
    return int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")


def label_words(labels: list[str], secret: bytes) -> Words:
    """A word for each label."""
    digests = [blake2b(label.encode(), key=secret, digest_size=8).digest() for label in labels]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def keyed_hashes(messages: Words, key: tuple[int, int]) -> Words:
    """(…) hashes of messages of whole words, (…, w)."""
    length = np.uint64((8 * messages.shape[-1] % 256) << 56)
    return siphash([*np.moveaxis(messages, -1, 0), np.full(messages.shape[:-1], length)], key)


def siphash(blocks: list[Words], key: tuple[int, int]) -> Words:
    """The hash of messages given block by block, the last block with the length as its highest byte."""
    start = np.array([word ^ part for word, part in zip(START, (*key, *key), strict=True)], dtype=np.uint64)
    words = np.stack([block.ravel() for block in blocks])
    hashes = np.empty(words.shape[1], dtype=np.uint64)
    fill_hashes(words, start, hashes)
    return hashes.reshape(blocks[0].shape)


@compiled
def fill_hashes(blocks: Words, start: Words, hashes: Words) -> None:
    """The hashes of messages, (n,), given their blocks, (w, n), and the four words to begin with."""
    for n in range(len(hashes)):
        a, b, c, d = start[0], start[1], start[2], start[3]
        for w in range(len(blocks)):
            d ^= blocks[w, n]
            for _ in range(2):
                a, b, c, d = _round(a, b, c, d)
            a ^= blocks[w, n]
        c ^= np.uint64(0xFF)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        hashes[n] = a ^ b ^ c ^ d


@inner
def _round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> Round:
    # Sums of 64 bits wrap round, as they are meant to.
    a, c = a + b, c + d
    b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
    a = _turned(a, 32)
    c, a = c + b, a + d
    b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
    return a, b, _turned(c, 32), d


@inner
def _turned(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))
