"""SipHash against its authors' figures."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.copies import fill_moved, key_for, keyed_hashes, siphash, start_of, word_of

# The key and messages of the authors: bytes 0, 1, 2, …
KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def test_the_example_of_the_paper():
    """Appendix A: fifteen bytes, so that the last block has seven of them and the length."""
    blocks = [np.array([0x0706050403020100], np.uint64), np.array([0x0F0E0D0C0B0A0908], np.uint64)]
    assert siphash(np.array(blocks), KEY).tolist() == [0xA129CA6149BE45E5]


def test_the_authors_vectors_of_whole_words():
    counted = np.arange(16, dtype=np.uint8)
    for n_bytes, hash_bytes in ((0, "310e0edd47db6f72"), (8, "6224939a79f5f593"), (16, "db9bc2577fcc2a3f")):
        message = counted[:n_bytes].view("<u8").astype(np.uint64)
        expected = int.from_bytes(bytes.fromhex(hash_bytes), "little")
        assert keyed_hashes(np.tile(message[:, None], 3), KEY).tolist() == [expected] * 3


def test_hashes_of_moved_times_are_those_of_their_messages():
    """The lower half of the authors' hash of two words, the second of which is reached by a move."""
    first, second = np.arange(16, dtype=np.uint8).view("<u8").tolist()
    expected = int.from_bytes(bytes.fromhex("db9bc2577fcc2a3f"), "little") & 0xFFFFFFFF
    moves, hashes = np.array([-2, 0, 3]), np.empty((1, 1, 3), dtype=np.uint32)
    for n, move in enumerate(moves.tolist()):
        context, steps = np.array([[first]], dtype=np.uint64), np.array([second - 2 * move])
        fill_moved(context, steps, moves, start_of(KEY), hashes)
        assert hashes[0, 0, n] == expected
        assert len(set(hashes[0, 0].tolist())) == 3


def test_secrets_and_purposes_matter():
    one, other = b"0123456789abcdef", b"0123456789abcdeg"
    assert len({key_for("a", one), key_for("b", one), key_for("a", other)}) == 3
    assert len({word_of(secret)(name) for secret in (one, other) for name in "ab"}) == 4
    for wrong in (b"short", b"x" * 65):
        with pytest.raises(ValueError, match="16 to 64 bytes"):
            key_for("a", wrong)
