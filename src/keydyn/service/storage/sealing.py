"""Encryption at rest: AES-256-GCM, a data key for each person and tenant, wrapped by a master key.

A sealed value is bound to its place: bytes moved to another row or column cannot be opened there. Each value
is encrypted with a key of its own, derived from the data key and 192 random bits, so that no key encrypts two
values, however many there are. Destroying a person's wrapped key makes everything that was sealed with it
unreadable, in backups taken later too.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES, NONCE_BYTES, SALT_BYTES, ID_BYTES = 32, 12, 24, 8
# The first byte of a sealed value: encrypted with a key of its own or, by earlier versions of keydyn, with
# the data key itself and a random nonce.
VERSION, EARLIER = b"\x02", b"\x01"
# The key of a value encrypts nothing else, and so can always have the same nonce.
ONLY_NONCE = bytes(NONCE_BYTES)


class SealError(ValueError):
    """Raised if a sealed value cannot be opened: it has another key or place, or its bytes were changed."""


@dataclass(frozen=True, repr=False)
class DataKey:
    """A key that seals the data of one person, or of one tenant.

    While a key is being replaced, `previous` still opens what it sealed.
    """

    key: bytes
    previous: DataKey | None = None

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(self.key)}")

    @classmethod
    def new(cls) -> DataKey:
        """A random key."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def seal(self, contents: bytes, place: str) -> bytes:
        """Encrypt contents for one place, such as "samples/3f…"."""
        salt = secrets.token_bytes(SALT_BYTES)
        return VERSION + salt + self._of_value(salt).encrypt(ONLY_NONCE, contents, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """Decrypt a value sealed for this place; raise a `SealError` if it was not, or was changed."""
        version, rest = sealed[:1], sealed[1:]
        try:
            if version == VERSION and len(rest) > SALT_BYTES:
                cipher = self._of_value(rest[:SALT_BYTES])
                return cipher.decrypt(ONLY_NONCE, rest[SALT_BYTES:], place.encode())
            if version == EARLIER and len(rest) > NONCE_BYTES:
                return AESGCM(self.key).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], place.encode())
        except InvalidTag:
            if self.previous is not None:
                return self.previous.open(sealed, place)
            raise SealError(f"{place}: sealed with another key or for another place, or changed") from None
        raise SealError(f"{place}: not sealed by this version of keydyn")

    def _of_value(self, salt: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self.key, b"keydyn value" + salt, "sha256"))

    def derived(self, purpose: str) -> bytes:
        """32 bytes for another purpose, from which the key cannot be recovered."""
        return hmac.digest(self.key, f"keydyn {purpose}".encode(), "sha256")


class MasterKeys:
    """The keys that wrap data keys: the first one wraps, and all of them unwrap.

    `changed` is called to find out whether the keys have changed: it returns the new ones, or else None.
    """

    def __init__(
        self, keys: Sequence[bytes], changed: Callable[[], Sequence[bytes] | None] = lambda: None
    ) -> None:
        self._keys = _named(keys)
        self._changed = changed
        # Rows that were found not to be authentic, by table and id, with the tenant in whose audit log that
        # has yet to be noted; None once it was.
        self.altered: dict[tuple[str, str], str | None] = {}
        # Cached tenants by their ids, each with the row and keys it was made from (`accounts.find_tenant`).
        self.tenants: dict[str, tuple[object, Any]] = {}

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
        """Seal a data key with the newest master key, whose name comes first in the result."""
        # The newest key may have been replaced meanwhile.
        self._refresh()
        name, newest = next(iter(self._keys.items()))
        return bytes.fromhex(name) + newest.seal(key.key, place)

    def unwrap(self, wrapped: bytes, place: str) -> DataKey:
        """Open a wrapped data key; raise a `SealError` if its master key is not among these."""
        name = wrapped_by(wrapped)
        if name not in self._keys:
            self._refresh()
        master = self._keys.get(name)
        if master is None:
            raise SealError(f"{place}: wrapped with the master key {name}, which was not given")
        return DataKey(master.open(wrapped[ID_BYTES:], place))

    def mac(self, contents: bytes) -> bytes:
        """A code that authenticates contents with the newest master key, whose name comes first in it."""
        self._refresh()
        return bytes.fromhex(self.current) + _mac(self.key(self.current), contents)

    def is_authentic(self, contents: bytes, mac: bytes | None) -> bool:
        """Whether a code belongs to these contents, and was made with one of these master keys."""
        if mac is None:
            return False
        name = wrapped_by(mac)
        if name not in self._keys:
            self._refresh()
        key = self._keys.get(name)
        return key is not None and hmac.compare_digest(_mac(key, contents), mac[ID_BYTES:])

    def _refresh(self) -> None:
        keys = self._changed()
        if keys is not None:
            self._keys = _named(keys)


def _named(keys: Sequence[bytes]) -> dict[str, DataKey]:
    if not keys:
        raise ValueError("there is no master key")
    return {key.derived("master key id")[:ID_BYTES].hex(): key for key in map(DataKey, keys)}


def _mac(key: DataKey, contents: bytes) -> bytes:
    return hmac.digest(_mac_key(key), contents, "sha256")


@lru_cache(maxsize=16)
def _mac_key(key: DataKey) -> bytes:
    return key.derived("authentic rows")


def wrapped_by(wrapped: bytes) -> str:
    """The name of the master key that wrapped a data key or made a code."""
    return wrapped[:ID_BYTES].hex()
