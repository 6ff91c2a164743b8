"""The context of the service's work (database, keys, clock, caches), and the writes of its callers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from keydyn.service.accounts import Tenant
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import DataKey, MasterKeys
from keydyn.service.wall_clock import Clock

# Importing these takes seconds, which commands about keys and databases need not wait for.
if TYPE_CHECKING:
    from keydyn.decisions import Verifier
    from keydyn.decisions.calibration.background import Background
    from keydyn.decisions.enrolled import Enrolled
    from keydyn.decisions.liveness.copies import Fingerprints

Held = TypeVar("Held")
# Called in the change that stores an outcome, with the answer and the id of the person concerned, if any.
Finish = Callable[[Connection, Struct, str | None], None]
# How much of a decision a caller sees: everything, for the service's own pages; rounded scores, for programs;
# only the answer, for browsers.
Told = Literal["everything", "scores", "answer"]
# The largest numbers that a process keeps in memory: templates, about 40 kB each, and equally many people's
# fingerprints, about 1 kB per sample; backgrounds; and crowds, one for each kind of text and device.
PEOPLE, BACKGROUNDS, CROWDS = 20_000, 200, 20


class Newest(Generic[Held]):
    """The newest version of each of a limited number of things; threads may share it."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._held: OrderedDict[str, tuple[int, Held]] = OrderedDict()

    def get(self, name: str, version: int) -> Held | None:
        """The thing of this name, if it is held in this version; otherwise None."""
        with self._lock:
            found = self._held.get(name)
            if found is None or found[0] != version:
                return None
            self._held.move_to_end(name)
            return found[1]

    def latest(self, name: str) -> Held | None:
        """The thing of this name, in whichever version is held; None if there is none."""
        with self._lock:
            found = self._held.get(name)
            return None if found is None else found[1]

    def put(self, name: str, version: int, held: Held) -> None:
        """Keep a thing, unless a newer version of it is held."""
        with self._lock:
            found = self._held.get(name)
            if found is None or found[0] <= version:
                self._held[name] = version, held
                self._held.move_to_end(name)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def drop(self, name: str) -> None:
        """Forget the thing of this name."""
        with self._lock:
            self._held.pop(name, None)

    def drop_of(self, owners: Collection[str]) -> None:
        """Forget things whose names begin with one of these ids and a slash."""
        for name in self.names():
            if name.partition("/")[0] in owners:
                self.drop(name)

    def names(self) -> list[str]:
        """The names of all things that are held."""
        with self._lock:
            return list(self._held)


@dataclass(frozen=True)
class Remembered:
    """Fingerprints of a person's samples in all profiles, with their count and the last row's number."""

    fingerprints: Fingerprints
    rows: int = 0
    last: int = 0


@dataclass(frozen=True)
class Known:
    """The data that a claim of a person's identity is judged by: template, and fingerprints of samples."""

    enrolled: Enrolled
    remembered: Remembered


@dataclass(frozen=True, eq=False)
class Crowd:
    """All people enrolled in one kind of text on one kind of device, ready for identification.

    `rows` and `backgrounds` are what the crowd was made from. Each verifier has the people of one background,
    without fingerprints.
    """

    rows: Sequence[Any]
    backgrounds: Mapping[str, Background | None]
    verifiers: Sequence[Verifier]
    names: Mapping[str, str]

    def is_of(self, rows: Sequence[Any], backgrounds: Mapping[str, Background | None]) -> bool:
        """Whether the crowd was made from these rows and backgrounds."""
        same = self.backgrounds.keys() == backgrounds.keys() and self.rows == rows
        return same and all(self.backgrounds[one] is backgrounds[one] for one in backgrounds)


@dataclass(frozen=True)
class Context:
    """The database, the keys and the clock, with caches; one per process."""

    database: Database
    keys: MasterKeys
    clock: Clock
    # Templates without fingerprints, by profile and its version; fingerprints, by person and the number of
    # samples ever remembered.
    people: Newest[Enrolled] = field(default_factory=lambda: Newest(PEOPLE))
    remembered: Newest[Remembered] = field(default_factory=lambda: Newest(PEOPLE))
    backgrounds: Newest[Background] = field(default_factory=lambda: Newest(BACKGROUNDS))
    crowds: Newest[Crowd] = field(default_factory=lambda: Newest(CROWDS))
    # Populations that an earlier version of keydyn stored, and this one cannot read.
    unreadable: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Write:
    """The caller of a write: the tenant, the actor, and what to do with the answer.

    Attributes
    ----------
    actor : the caller, as the audit log names them
    finish : called in the change that stores the outcome
    amend : called if the answer changes after that
    told : how much of a decision the caller sees
    """

    tenant: Tenant
    actor: str
    finish: Finish = lambda *_: None
    amend: Callable[[Struct], None] = lambda _: None
    told: Told = "scores"

    def note(
        self, connection: Connection, now: int, action: str, person: DataKey | None = None, **details: Any
    ) -> None:
        """Add an entry to the audit log, about the person whose key is given, if any."""
        subject = "" if person is None else audit.pseudonym(person)
        entry = audit.Entry(now, self.actor, action, subject, details)
        audit.append(connection, self.tenant.id, entry)
