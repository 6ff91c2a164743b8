"""SipHash against its authors' figures."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.copies import fill_moved, hashes_of_contexts, key_for, start_of, word_of

# The key and messages of the authors: bytes 0, 1, 2, …
KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def test_the_authors_vector_of_four_words():
    """The last four keys of the fourth keystroke, the latest of which comes first."""
    words = np.arange(32, dtype=np.uint8).view("<u8").astype(np.uint64)[::-1].copy()
    expected = int.from_bytes(bytes.fromhex("ce7cf2722f512771"), "little")
    assert hashes_of_contexts(words, np.array([0, 4]), KEY, 1)[0, 3] == expected


def test_keys_of_the_sample_before_do_not_count():
    words = np.arange(101, 109, dtype=np.uint64)
    together = hashes_of_contexts(words, np.array([0, 3, 8]), KEY, 2)
    alone = [hashes_of_contexts(part, np.array([0, len(part)]), KEY, 2) for part in (words[:3], words[3:])]
    np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))
    # Only the place in the sample is in the second row.
    np.testing.assert_array_equal(together[1, :3], together[1, 3:6])
    assert len(set(together.ravel().tolist())) == 8 + 5


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
