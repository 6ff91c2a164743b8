"""Encryption at rest: AES-256-GCM, a data key for each person and tenant, wrapped by a master key.

What is sealed is bound to its place: bytes moved to another row or column cannot be opened there. Destroying
a person's wrapped key makes everything that was sealed with it unreadable, in backups taken later too.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES, NONCE_BYTES, ID_BYTES = 32, 12, 8
VERSION = b"\x01"


class SealError(ValueError):
    """What was sealed cannot be opened: another key, another place, or changed bytes."""


@dataclass(frozen=True, repr=False)
class DataKey:
    """A key that seals what is stored about one person, or one tenant."""

    key: bytes

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(self.key)}")

    @classmethod
    def new(cls) -> DataKey:
        """A random key."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def seal(self, contents: bytes, place: str) -> bytes:
        """Encrypt for one place, such as "samples/3f…"."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return VERSION + nonce + AESGCM(self.key).encrypt(nonce, contents, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """Decrypt what was sealed for this place; a `SealError` if it was not, or has changed."""
        nonce = sealed[len(VERSION) : len(VERSION) + NONCE_BYTES]
        if sealed[: len(VERSION)] != VERSION or len(nonce) != NONCE_BYTES:
            raise SealError(f"{place}: not sealed by this version of keydyn")
        try:
            return AESGCM(self.key).decrypt(nonce, sealed[len(VERSION) + NONCE_BYTES :], place.encode())
        except InvalidTag:
            raise SealError(f"{place}: sealed with another key or for another place, or changed") from None

    def derived(self, purpose: str) -> bytes:
        """32 bytes for another purpose, from which the key cannot be found."""
        return hmac.new(self.key, f"keydyn {purpose}".encode(), hashlib.sha256).digest()


class MasterKeys:
    """Keys that wrap data keys: the first wraps, all of them unwrap.

    `changed` returns the keys if they have changed since it was last called, and otherwise None.
    """

    def __init__(
        self, keys: Sequence[bytes], changed: Callable[[], Sequence[bytes] | None] = lambda: None
    ) -> None:
        self._keys = _named(keys)
        self._changed = changed

    @property
    def current(self) -> str:
        """The name of the key that wraps."""
        return self.ids[0]

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of all keys, the newest first."""
        return tuple(self._keys)

    def key(self, name: str) -> DataKey:
        """The key of this name."""
        return self._keys[name]

    def wrap(self, key: DataKey, place: str) -> bytes:
        """A data key sealed with the newest master key, whose name stands before it."""
        # Not with one that was meanwhile replaced.
        self._refresh()
        name, newest = next(iter(self._keys.items()))
        return bytes.fromhex(name) + newest.seal(key.key, place)

    def unwrap(self, wrapped: bytes, place: str) -> DataKey:
        """The data key; a `SealError` if its master key is not among these."""
        name = wrapped_by(wrapped)
        if name not in self._keys:
            self._refresh()
        master = self._keys.get(name)
        if master is None:
            raise SealError(f"{place}: wrapped with the master key {name}, which was not given")
        return DataKey(master.open(wrapped[ID_BYTES:], place))

    def _refresh(self) -> None:
        keys = self._changed()
        if keys is not None:
            self._keys = _named(keys)


def _named(keys: Sequence[bytes]) -> dict[str, DataKey]:
    if not keys:
        raise ValueError("there is no master key")
    return {key.derived("master key id")[:ID_BYTES].hex(): key for key in map(DataKey, keys)}


def wrapped_by(wrapped: bytes) -> str:
    """The name of the master key that wrapped a data key."""
    return wrapped[:ID_BYTES].hex()
