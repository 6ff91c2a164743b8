"""The manifest: who is enrolled, and which model file is theirs. Every value is checked when it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from reprlib import repr as shown
from typing import Any

from keydyn import __version__
from keydyn.enrolment.authentication import code_of, same_code

FORMAT, VERSION = "keydyn-models", 2
CODE = "hmac_sha256"
# The most people that a claim is judged beside, so that a claim costs the same among 100 and among 10,000.
LARGEST_COHORT = 100
# Larger whole numbers are no counts of anything here.
LARGEST_COUNT = 2**53


@dataclass(frozen=True)
class Person:
    """Somebody who is enrolled.

    Attributes
    ----------
    user : the name
    samples : how many samples the model was fitted to
    threshold : the least scaled score at which a claim is believed; None where it could not be estimated
    penalty : the largest rank penalty of a genuine sample; None where it could not be estimated
    number : given to each newcomer in turn, and kept when the person is enrolled again
    cohort : the thresholds were found beside people with smaller numbers than this
    sha256 : of the model file; empty if it is not known yet
    file : the model file's name; empty if it is not written yet
    """

    user: str
    samples: int
    threshold: float | None
    penalty: float | None
    number: int
    cohort: int
    sha256: str = ""
    file: str = ""


@dataclass(frozen=True)
class Manifest:
    """Everybody who is enrolled, in the order of their numbers; `next_number` is for the next newcomer.

    `population` is the SHA-256 of the population's file, if the detector has one.
    """

    detector: str
    sensors: tuple[str, ...]
    people: tuple[Person, ...]
    next_number: int
    population: str = ""

    def person(self, user: str) -> Person:
        """The entry of a user; for a user who is not enrolled a `ValueError` that names some who are."""
        for person in self.people:
            if person.user == user:
                return person
        some = ", ".join(person.user for person in self.people[:8]) + (" …" if len(self.people) > 8 else "")
        raise ValueError(f"user {user!r} is not enrolled; enrolled are {some or 'no users at all'}")

    def everybody(self) -> list[str]:
        """The people beside whom claims are judged: all of them, or the first of very many."""
        return [person.user for person in self.people[:LARGEST_COHORT]]

    def cohort(self, person: Person) -> list[str]:
        """Those of them who were enrolled when a person's thresholds were found, without the person."""
        first = self.people[:LARGEST_COHORT]
        return [other.user for other in first if other.number < person.cohort and other != person]

    def without(self, users: set[str]) -> Manifest:
        """The others; a `ValueError` names a user who is not enrolled."""
        for user in sorted(users):
            self.person(user)
        return replace(self, people=tuple(person for person in self.people if person.user not in users))

    def to_text(self, key: bytes | None = None) -> str:
        """JSON, with an authentication code if there is a key."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "keydyn": __version__,
            "detector": self.detector,
            "sensors": list(self.sensors),
            "next_number": self.next_number,
            "users": [
                {
                    "user": person.user,
                    "sha256": person.sha256,
                    "samples": person.samples,
                    "threshold": person.threshold,
                    "penalty": person.penalty,
                    "number": person.number,
                    "cohort": person.cohort,
                }
                for person in self.people
            ],
        }
        if self.population:
            content["population"] = self.population
        if key is not None:
            content[CODE] = code_of(content, key)
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_text(cls, text: bytes, key: bytes | None = None) -> Manifest:
        """What `to_text` wrote, or the version before; a `ValueError` says what is wrong with other text."""
        try:
            return cls._read(_parsed(text), key)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    @classmethod
    def _read(cls, content: dict[str, Any], key: bytes | None) -> Manifest:
        if content.get("format") != FORMAT:
            raise ValueError(f"its format is {shown(content.get('format'))}, not {FORMAT!r}")
        version = content.get("version")
        if type(version) is not int or version not in READERS:
            raise ValueError(f"its version is {shown(version)}; this program reads 1 to {VERSION}")
        _authenticate(content, key)
        manifest = READERS[version](content)
        _check_distinct(manifest)
        return manifest


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


def _read_version_2(content: dict[str, Any]) -> Manifest:
    population = _sha256(content, "population") if "population" in content else ""
    named = ("population",) if population else ()
    _only(content, "format", "version", "keydyn", "detector", "sensors", "next_number", "users", *named)
    next_number = _count(content, "next_number")

    def read(_: int, entry: dict[str, Any]) -> Person:
        _only(entry, "user", "sha256", "samples", "threshold", "penalty", "number", "cohort")
        sha256 = _sha256(entry, "sha256")
        number, cohort = _count(entry, "number"), _count(entry, "cohort")
        if not number < cohort <= next_number:
            raise ValueError(f"number {number}, cohort {cohort} and next_number {next_number} do not rise")
        return Person(_text(entry, "user"), *_figures(entry), number, cohort, sha256, model_file(sha256))

    people = _people(content, read)
    if any(after.number <= before.number for before, after in pairwise(people)):
        raise ValueError("the numbers of the users do not rise")
    return Manifest(_text(content, "detector"), _sensors(content), people, next_number, population)


def _read_version_1(content: dict[str, Any]) -> Manifest:
    """Files had names of their own and no SHA-256; everybody was judged beside everybody."""
    _only(content, "format", "version", "keydyn", "detector", "sensors", "users")

    def read(number: int, entry: dict[str, Any]) -> Person:
        _only(entry, "user", "file", "samples", "threshold", "penalty")
        file, user = _text(entry, "file"), entry["user"]
        if not re.fullmatch(r"user-[0-9]{6,12}\.keydyn", file):
            raise ValueError(f"{shown(file)} is no model file of the folder")
        # Users could be numbers, of 64 bits at most.
        is_number = type(user) in (int, float) and abs(user) < 2**64
        name = str(user) if is_number else _text(entry, "user")
        return Person(name, *_figures(entry), number, len(content["users"]), file=file)

    people = _people(content, read)
    return Manifest(_text(content, "detector"), _sensors(content), people, len(people))


READERS: dict[int, Callable[[dict[str, Any]], Manifest]] = {1: _read_version_1, 2: _read_version_2}


def model_file(sha256: str) -> str:
    """The name of the model file with this content."""
    return f"{sha256}.keydyn"


def _only(content: dict[str, Any], *names: str) -> None:
    absent, strange = set(names) - set(content), set(content) - set(names)
    if absent:
        raise ValueError(f"it has no {', '.join(sorted(absent))}")
    if strange:
        raise ValueError(f"it has fields that are not known: {shown(sorted(strange))}")


def _people(content: dict[str, Any], read: Callable[[int, dict[str, Any]], Person]) -> tuple[Person, ...]:
    """Every entry read; an error says in which entry it is, counted from 0."""
    entries = content["users"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("users is not a list of objects")
    people = []
    for number, entry in enumerate(entries):
        try:
            people.append(read(number, entry))
        except ValueError as error:
            raise ValueError(f"users[{number}]: {error}") from None
    return tuple(people)


def _figures(entry: dict[str, Any]) -> tuple[int, float | None, float | None]:
    return (
        _count(entry, "samples", least=1),
        _level(entry, "threshold", largest=1.0),
        _level(entry, "penalty", largest=LARGEST_COUNT),
    )


def _text(content: dict[str, Any], name: str) -> str:
    value = content[name]
    if not isinstance(value, str) or not value or not _is_unicode(value):
        raise ValueError(f"{name} is {shown(value)}, not text")
    return value


def _sha256(content: dict[str, Any], name: str) -> str:
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


def _level(content: dict[str, Any], name: str, largest: float) -> float | None:
    value = content[name]
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= largest:
        raise ValueError(f"{name} is {shown(value)}, not a number from 0 to {largest:g}")
    return float(value)


def _check_distinct(manifest: Manifest) -> None:
    for what in ("user", "file"):
        values = [getattr(person, what) for person in manifest.people]
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise ValueError(f"two users have the {'name' if what == 'user' else 'model'} {shown(twice)}")
