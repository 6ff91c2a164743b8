"""The manifest, which lists the enrolled people and their files; all values are checked when it is read."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from reprlib import repr as shown
from typing import Any

from keydyn import __version__
from keydyn.files import anything, many, or_empty, record, sha256, text, whole

FORMAT, VERSION = "keydyn-models", 4
CODE = "hmac_sha256"
# Files that a person may have in addition to the template.
OPTIONAL = ("fingerprints", "enrolment", "previous", "comparisons")
LEAST_BYTES, MOST_BYTES = 16, 4096


@dataclass(frozen=True)
class PersonEntry:
    """The entry of an enrolled person."""

    user: str  # the name
    # The numbers that the template was learnt from
    samples: int
    keys: int
    sha256: str  # of the template's file
    # SHA-256 of the fingerprints, which serve to recognise copies of the person's samples; may be empty
    fingerprints: str = ""
    # SHA-256 of the template at enrolment, and of the one before the last update; empty if there was no
    # update, or if it cannot be undone
    enrolment: str = ""
    previous: str = ""
    # SHA-256 of the scores of the person's samples as claims to be others; may be empty
    comparisons: str = ""


@dataclass(frozen=True)
class Member:
    """A member of the cohort: the name, and the SHA-256 of the template's file."""

    user: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The enrolled people, in the order in which they were first enrolled, and the background."""

    # The detector that templates are fitted with, and features besides times
    detector: str
    sensors: tuple[str, ...]
    population: str  # SHA-256 of the population's file; empty if the detector has none
    cohort: tuple[Member, ...]  # who is in the cohort, by name
    unnamed: str  # SHA-256 of the file with cohort members who have no name; empty if there are none
    calibration: str  # SHA-256 of the calibration's file
    secret: str  # a code that identifies the secret that keys the fingerprints
    people: tuple[PersonEntry, ...]

    @property
    def files(self) -> set[str]:
        """The names of all files that belong to it."""
        of_people = [
            sha
            for person in self.people
            for sha in (person.sha256, *(getattr(person, name) for name in OPTIONAL))
        ]
        of_cohort = [member.sha256 for member in self.cohort]
        own = self.population, self.calibration, self.unnamed
        named = {file_of(sha) for sha in (*own, *of_cohort, *of_people) if sha}
        return {*named, secret_file(self.secret)}

    def person(self, user: str) -> PersonEntry:
        """The entry of a user; a `ValueError` that names some enrolled users if this one is not enrolled."""
        for person in self.people:
            if person.user == user:
                return person
        some = ", ".join(person.user for person in self.people[:8]) + (" …" if len(self.people) > 8 else "")
        raise ValueError(f"user {user!r} is not enrolled; enrolled are {some or 'no users at all'}")

    def without(self, users: set[str]) -> Manifest:
        """The manifest without these users, also in the cohort; a `ValueError` names one not enrolled."""
        for user in sorted(users):
            self.person(user)
        people = tuple(person for person in self.people if person.user not in users)
        cohort = tuple(member for member in self.cohort if member.user not in users)
        return replace(self, people=people, cohort=cohort)

    def to_text(self, key: bytes | None = None) -> str:
        """The manifest as JSON, with an authentication code if there is a key."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "keydyn": __version__,
            **asdict(self),
        }
        content["users"] = content.pop("people")
        if key is not None:
            content[CODE] = code_of(content, key)
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_text(cls, text: bytes, key: bytes | None = None) -> Manifest:
        """Parse the result of `to_text`; a `ValueError` says what is wrong with the text."""
        try:
            content = _parsed(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if content.get("format") != FORMAT:
            raise ValueError(f"its format is {shown(content.get('format'))}, not {FORMAT!r}")
        version = content.get("version")
        if version in (1, 2, 3):
            raise ValueError(
                f"its version is {version}: people were enrolled by an earlier keydyn, whose error rates do "
                "not hold for other keyboards, and their samples were not kept. Enrol them again: "
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


_MEMBER = record({"user": text, "sha256": sha256})
_PERSON = record(
    {"user": text, "samples": whole(1), "keys": whole(1), "sha256": sha256}
    | dict.fromkeys(OPTIONAL, or_empty(sha256))
)
_MANIFEST = record(
    {
        **dict.fromkeys(("format", "version", "keydyn"), anything),
        "detector": text,
        "sensors": many(text),
        "population": or_empty(sha256),
        "cohort": many(_MEMBER),
        "unnamed": or_empty(sha256),
        "calibration": sha256,
        "secret": sha256,
        "users": many(_PERSON),
    }
)


def _manifest(content: dict[str, Any]) -> Manifest:
    values = _MANIFEST("", content)
    _check_different("cohort", values["cohort"], "user")
    _check_different("users", values["users"], "user", "sha256")
    people = tuple(PersonEntry(**entry) for entry in values.pop("users"))
    cohort = tuple(Member(**entry) for entry in values.pop("cohort"))
    own = {name: values[name] for name in ("detector", "population", "unnamed", "calibration", "secret")}
    return Manifest(sensors=tuple(values["sensors"]), cohort=cohort, people=people, **own)


def _check_different(name: str, entries: list[dict[str, Any]], *fields: str) -> None:
    """Raise a `ValueError` if two entries have the same value in one of these fields."""
    for field in fields:
        value, times = Counter(entry[field] for entry in entries).most_common(1)[0] if entries else ("", 0)
        if times > 1:
            what = "name" if field == "user" else "template"
            raise ValueError(f"two of {name} have the {what} {shown(value)}")


def file_of(sha256: str) -> str:
    """The name of the file whose content has this SHA-256."""
    return f"{sha256}.keydyn"


def secret_file(secret: str) -> str:
    """The name of the file with the secret that this code identifies."""
    return f"{secret}.key"


def read_key(path: str | Path) -> bytes:
    """Read a key, which is the whole content of a file; a `ValueError` if it is too short or too long.

    Unlike the files of a folder, the path may be a link or a pipe, as secrets often are: the user chose it.
    """
    with open(path, "rb") as file:
        key = file.read(MOST_BYTES + 1)
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise ValueError(
            f"{path} holds no key: a key has {LEAST_BYTES} to {MOST_BYTES:,} bytes, preferably 32 random ones"
        )
    return key


def code_of(content: dict[str, Any], key: bytes) -> str:
    """The authentication code in hexadecimal; it does not depend on the order of fields."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def same_code(given: Any, expected: str) -> bool:
    """Whether two codes agree, compared in a time that does not reveal where they differ."""
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, expected)
