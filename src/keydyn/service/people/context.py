"""What everything that the service does needs: the database, the keys, the time and what it caches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from keydyn.service.clock import Clock
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys

# Loading them takes seconds, which commands about keys and databases do without.
if TYPE_CHECKING:
    from keydyn.decisions.calibration.background import Background
    from keydyn.decisions.enrolled import Enrolled

Held = TypeVar("Held")
# People whose templates a process keeps in memory, about 40 kB each and half a kB for each fingerprint, and
# populations.
PEOPLE, BACKGROUNDS = 20_000, 64


class Newest(Generic[Held]):
    """The newest version of each of a limited number of things; threads may share it."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._held: OrderedDict[str, tuple[int, Held]] = OrderedDict()

    def get(self, name: str, version: int) -> Held | None:
        """The thing of this name if it is of this version."""
        with self._lock:
            found = self._held.get(name)
            if found is None or found[0] != version:
                return None
            self._held.move_to_end(name)
            return found[1]

    def latest(self, name: str) -> Held | None:
        """The thing of this name, of whatever version."""
        with self._lock:
            found = self._held.get(name)
            return None if found is None else found[1]

    def put(self, name: str, version: int, held: Held) -> None:
        """Keep it, unless a newer one is kept."""
        with self._lock:
            found = self._held.get(name)
            if found is None or found[0] <= version:
                self._held[name] = version, held
                self._held.move_to_end(name)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def drop(self, name: str) -> None:
        """Forget it."""
        with self._lock:
            self._held.pop(name, None)


@dataclass(frozen=True)
class Known:
    """Somebody's template, and how much of their fingerprints was read: so many rows, up to this number."""

    enrolled: Enrolled
    rows: int
    last: int


@dataclass(frozen=True)
class Context:
    """One per process."""

    database: Database
    keys: MasterKeys
    clock: Clock
    people: Newest[Known] = field(default_factory=lambda: Newest(PEOPLE))
    backgrounds: Newest[Background] = field(default_factory=lambda: Newest(BACKGROUNDS))
