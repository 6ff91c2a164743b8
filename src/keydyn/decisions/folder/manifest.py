"""The manifest: who is enrolled, and which files are theirs. Every value is checked when it is read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from reprlib import repr as shown
from typing import Any, TypeVar

from keydyn import __version__
from keydyn.decisions.folder.authentication import code_of, same_code

FORMAT, VERSION = "keydyn-models", 3
CODE = "hmac_sha256"
OF_BACKGROUND = ("population", "cohort", "calibration", "secret")
# Larger whole numbers are no counts of anything here.
LARGEST_COUNT = 2**53

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Person:
    """Somebody who is enrolled.

    Attributes
    ----------
    user : the name
    samples, keys : how many the template was learnt from
    sha256 : of the template's file
    fingerprints : SHA-256 of the file by which copies of the person's samples are recognised; may be empty
    enrolment, previous : SHA-256 of the template as it was enrolled, and as it was before the last update;
        empty if it has not been updated, or if that cannot be undone
    """

    user: str
    samples: int
    keys: int
    sha256: str
    fingerprints: str = ""
    enrolment: str = ""
    previous: str = ""


@dataclass(frozen=True)
class Member:
    """Somebody in the cohort: the name, and the SHA-256 of the template's file."""

    user: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Everybody who is enrolled, in the order in which they first were, and what their decisions rest on.

    Attributes
    ----------
    detector, sensors : how templates are fitted
    population : SHA-256 of the population's file; empty if the detector has none
    cohort : who is in the cohort; empty if the population itself is compared with
    calibration : SHA-256 of the calibration's file
    secret : by which the secret is recognised that keys the fingerprints
    """

    detector: str
    sensors: tuple[str, ...]
    population: str
    cohort: tuple[Member, ...]
    calibration: str
    secret: str
    people: tuple[Person, ...]

    @property
    def files(self) -> set[str]:
        """The names of all files that belong to it."""
        of_people = [
            sha
            for person in self.people
            for sha in (person.sha256, person.fingerprints, person.enrolment, person.previous)
        ]
        of_cohort = [member.sha256 for member in self.cohort]
        named = {file_of(sha) for sha in (self.population, self.calibration, *of_cohort, *of_people) if sha}
        return {*named, secret_file(self.secret)}

    def person(self, user: str) -> Person:
        """The entry of a user; for a user who is not enrolled a `ValueError` that names some who are."""
        for person in self.people:
            if person.user == user:
                return person
        some = ", ".join(person.user for person in self.people[:8]) + (" …" if len(self.people) > 8 else "")
        raise ValueError(f"user {user!r} is not enrolled; enrolled are {some or 'no users at all'}")

    def without(self, users: set[str]) -> Manifest:
        """The others, enrolled and in the cohort; a `ValueError` names a user who is not enrolled."""
        for user in sorted(users):
            self.person(user)
        people = tuple(person for person in self.people if person.user not in users)
        cohort = tuple(member for member in self.cohort if member.user not in users)
        return replace(self, people=people, cohort=cohort)

    def to_text(self, key: bytes | None = None) -> str:
        """JSON, with an authentication code if there is a key."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "keydyn": __version__,
            "detector": self.detector,
            "sensors": list(self.sensors),
            "population": self.population,
            "cohort": [asdict(member) for member in self.cohort],
            "calibration": self.calibration,
            "secret": self.secret,
            "users": [asdict(person) for person in self.people],
        }
        if key is not None:
            content[CODE] = code_of(content, key)
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_text(cls, text: bytes, key: bytes | None = None) -> Manifest:
        """What `to_text` wrote; a `ValueError` says what is wrong with other text."""
        try:
            return cls._read(_parsed(text), key)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    @classmethod
    def _read(cls, content: dict[str, Any], key: bytes | None) -> Manifest:
        if content.get("format") != FORMAT:
            raise ValueError(f"its format is {shown(content.get('format'))}, not {FORMAT!r}")
        version = content.get("version")
        if version in (1, 2):
            raise ValueError(
                f"its version is {version}: people were enrolled by an earlier keydyn, with thresholds that "
                "accept strangers, and their samples were not kept. Enrol them again: "
                "keydyn fit RECORDINGS --out FOLDER --replace"
            )
        if type(version) is not int or version != VERSION:
            raise ValueError(f"its version is {shown(version)}; this program reads {VERSION}")
        _authenticate(content, key)
        return _manifest(content)


def _parsed(text: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number that it may hold")

    content = json.loads(text.decode("utf-8"), parse_constant=refuse)
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def _authenticate(content: dict[str, Any], key: bytes | None) -> None:
    given = content.pop(CODE, None)
    if key is None and given is not None:
        raise ValueError("it is authenticated with a key: give that with --key-file")
    if key is not None and given is None:
        raise ValueError(
            "it is not authenticated, and so may have been altered; it cannot be used with a key"
        )
    if key is not None and not same_code(given, code_of(content, key)):
        raise ValueError("its authentication code is wrong: it was altered, or written with another key")


def _manifest(content: dict[str, Any]) -> Manifest:
    _only(content, "format", "version", "keydyn", "detector", "sensors", *OF_BACKGROUND, "users")
    return Manifest(
        _text(content, "detector"),
        _sensors(content),
        _sha256(content, "population", empty=True),
        _each(content, "cohort", _member, ("user",)),
        _sha256(content, "calibration"),
        _sha256(content, "secret"),
        _each(content, "users", _person, ("user", "sha256")),
    )


def file_of(sha256: str) -> str:
    """The name of the file with this content."""
    return f"{sha256}.keydyn"


def secret_file(secret: str) -> str:
    """The name of the file with the secret that is recognised by this."""
    return f"{secret}.key"


def _only(content: dict[str, Any], *names: str) -> None:
    absent, strange = set(names) - set(content), set(content) - set(names)
    if absent:
        raise ValueError(f"it has no {', '.join(sorted(absent))}")
    if strange:
        raise ValueError(f"it has fields that are not known: {shown(sorted(strange))}")


def _each(
    content: dict[str, Any], name: str, read: Callable[[dict[str, Any]], Entry], different: tuple[str, ...]
) -> tuple[Entry, ...]:
    """Every entry of a list read; an error says in which entry it is, counted from 0."""
    entries = content[name]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{name} is not a list of objects")
    found = []
    for number, entry in enumerate(entries):
        try:
            found.append(read(entry))
        except ValueError as error:
            raise ValueError(f"{name}[{number}]: {error}") from None
    for what in different:
        values = [getattr(one, what) for one in found]
        if len(set(values)) < len(values):
            twice = next(value for value, n in Counter(values).items() if n > 1)
            of = "name" if what == "user" else "template"
            raise ValueError(f"two of {name} have the {of} {shown(twice)}")
    return tuple(found)


def _member(entry: dict[str, Any]) -> Member:
    _only(entry, "user", "sha256")
    return Member(_text(entry, "user"), _sha256(entry, "sha256"))


def _person(entry: dict[str, Any]) -> Person:
    _only(entry, *(attribute.name for attribute in fields(Person)))
    return Person(
        _text(entry, "user"),
        _count(entry, "samples", least=1),
        _count(entry, "keys", least=1),
        _sha256(entry, "sha256"),
        *(_sha256(entry, name, empty=True) for name in ("fingerprints", "enrolment", "previous")),
    )


def _text(content: dict[str, Any], name: str) -> str:
    value = content[name]
    if not isinstance(value, str) or not value or not _is_unicode(value):
        raise ValueError(f"{name} is {shown(value)}, not text")
    return value


def _sha256(content: dict[str, Any], name: str, empty: bool = False) -> str:
    if empty and content[name] == "":
        return ""
    value = _text(content, name)
    if not re.fullmatch("[0-9a-f]{64}", value):
        raise ValueError(f"{name} is {shown(value)}, not 64 hexadecimal digits")
    return value


def _is_unicode(text: str) -> bool:
    """JSON can hold half of a surrogate pair, which nothing can print."""
    return text.encode("utf-8", "replace").decode("utf-8") == text


def _sensors(content: dict[str, Any]) -> tuple[str, ...]:
    sensors = content["sensors"]
    if not isinstance(sensors, list):
        raise ValueError(f"sensors is {shown(sensors)}, not a list")
    return tuple(_text({"sensors": name}, "sensors") for name in sensors)


def _count(content: dict[str, Any], name: str, least: int = 0) -> int:
    value = content[name]
    if type(value) is not int or not least <= value <= LARGEST_COUNT:
        raise ValueError(f"{name} is {shown(value)}, not a whole number of {least} or more")
    return value
