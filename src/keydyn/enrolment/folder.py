"""The folder of enrolled people: model files named by their content, and the manifest that lists them.

A change writes the new model files first. One rename then makes a new manifest current, so that whatever
happens a reader finds the people before the change or those after it, each with their own model.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from keydyn.atomic import sync_folder, write_bytes, write_text
from keydyn.detectors import Detector, PopulationDetector
from keydyn.enrolment.enrolled import Enrolled
from keydyn.enrolment.enrolling import storing_detector
from keydyn.enrolment.lock import locked
from keydyn.enrolment.manifest import Manifest, Person, model_file
from keydyn.population import PopulationModel
from keydyn.regular_files import UnusableFileError, read_regular

MANIFEST = "models.json"
LARGEST_FILE = 256 * 2**20
# What a change may leave behind: model files of this version and the one before, and files half written.
OURS = re.compile(r"([0-9a-f]{64}|user-[0-9]{6,12}|\.[0-9a-f]{16})\.keydyn|\.[0-9a-f]{16}\.json")

WhoseModels = Callable[[Manifest], list[str]]


def read_manifest(folder: str | Path, key: bytes | None = None) -> Manifest:
    """Who is enrolled in a folder; a `ValueError` says what is wrong with it."""
    path = Path(folder) / MANIFEST
    if not os.path.lexists(path):
        raise ValueError(f"{folder} holds no enrolled users: there is no {MANIFEST} in it (see keydyn fit)")
    try:
        return Manifest.from_text(_contents(path), key)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def load_enrolled(folder: str | Path, key: bytes | None = None, whose: WhoseModels | None = None) -> Enrolled:
    """The people enrolled in a folder, with their models; a `ValueError` says what is wrong with the folder.

    `whose` names those of a manifest whose models are needed; by default all are. Nothing is locked: if the
    folder changes meanwhile, it is read again.
    """
    manifest = read_manifest(folder, key)
    while True:
        try:
            users = [person.user for person in manifest.people] if whose is None else whose(manifest)
            if not users:
                raise ValueError(f"nobody is enrolled in {folder} (see keydyn fit)")
            return _with_templates(Path(folder), manifest, users)
        except (OSError, ValueError):
            current = read_manifest(folder, key)
            if current == manifest:
                raise
            manifest = current


def claim_of(user: str) -> WhoseModels:
    """The models that a claim to be this user needs, for `load_enrolled`."""
    return lambda manifest: [manifest.person(user).user, *manifest.everybody()]


@contextmanager
def changing(folder: str | Path, key: bytes | None = None, anew: bool = False) -> Iterator[Change]:
    """A change of a folder, which is made if need be; while it lasts, other writers are refused.

    Nothing changes before `Change.commit`. With `anew` the people before are not even read.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        path = folder / MANIFEST
        is_new = anew or not os.path.lexists(path)
        if is_new and path.exists() and not path.is_file():
            raise ValueError(f"{path} is not a regular file")
        try:
            yield Change(folder, key, None if is_new else read_manifest(folder, key))
        finally:
            # Cleaning is no part of the change: what cannot be removed now is removed the next time.
            with suppress(OSError, ValueError):
                _clean(folder, key)


@dataclass(frozen=True)
class Change:
    """A change of a folder: the people before it, None if it is new, and `commit`."""

    folder: Path
    key: bytes | None
    before: Manifest | None

    def beside(self, newly: Iterable[str]) -> Enrolled | None:
        """The people before, with the templates of those beside whom newcomers will be judged."""
        if self.before is None:
            return None
        return _with_templates(self.folder, self.before, set(self.before.everybody()) - set(newly))

    def commit(self, enrolled: Enrolled) -> Manifest:
        """Write the models that are new, then make the new manifest current: the moment of the change."""
        kept = set(() if self.before is None else self.before.people)
        people = tuple(
            self._kept(person) if person in kept else self._saved(person, enrolled.templates[person.user])
            for person in enrolled.manifest.people
        )
        _refuse_twins(people)
        population = enrolled.manifest.population or self._population(enrolled.pattern)
        manifest = replace(enrolled.manifest, people=people, population=population)
        text = manifest.to_text(self.key)
        # What could not be read again must not become current.
        Manifest.from_text(text.encode(), self.key)
        # The files must be on disk under their names before a manifest lists them.
        sync_folder(self.folder)
        write_text(self.folder / MANIFEST, text)
        return manifest

    def _kept(self, person: Person) -> Person:
        if person.sha256:
            return person
        # Version 1 had files with other names.
        temporary = self._temporary()
        write_bytes(temporary, _contents(self.folder / person.file))
        return self._named(person, temporary)

    def _population(self, pattern: Detector | None) -> str:
        """The name of the population's file, which is written if it is not there; empty if there is none."""
        if not isinstance(pattern, PopulationDetector):
            return ""
        temporary = self._temporary()
        pattern.people.save(temporary)
        return self._renamed(temporary)

    def _saved(self, person: Person, template: Detector) -> Person:
        temporary = self._temporary()
        template.save_template(temporary)
        return self._named(person, temporary)

    def _temporary(self) -> Path:
        return self.folder / f".{secrets.token_hex(8)}.keydyn"

    def _named(self, person: Person, temporary: Path) -> Person:
        sha256 = self._renamed(temporary)
        return replace(person, sha256=sha256, file=model_file(sha256))

    def _renamed(self, temporary: Path) -> str:
        """Give the file the name that follows from its content, and return its SHA-256."""
        sha256 = hashlib.sha256(_contents(temporary)).hexdigest()
        os.replace(temporary, self.folder / model_file(sha256))
        return sha256


def _with_templates(folder: Path, manifest: Manifest, users: Iterable[str]) -> Enrolled:
    wanted = set(users)
    people = [person for person in manifest.people if person.user in wanted]
    pattern = storing_detector(manifest.detector, _population(folder, manifest))
    return Enrolled(
        manifest, {person.user: _template(folder, manifest, pattern, person) for person in people}, pattern
    )


def _population(folder: Path, manifest: Manifest) -> PopulationModel | None:
    """The population with which everybody was enrolled, if there is one."""
    if not manifest.population:
        return None
    path = folder / model_file(manifest.population)
    try:
        contents = _contents(path)
    except (FileNotFoundError, UnusableFileError) as error:
        raise ValueError(
            f"{path}, the population of everybody in the folder, cannot be read: {error}"
        ) from None
    if manifest.population != hashlib.sha256(contents).hexdigest():
        raise ValueError(f"{path} is not the population with which people were enrolled")
    return PopulationModel.parsed(contents, path)


def _template(folder: Path, manifest: Manifest, pattern: Detector, person: Person) -> Detector:
    """The template of a person, if the file is the one that was enrolled and holds what the detector fits."""
    path = folder / person.file
    advice = f"enrol {person.user} again, or remove {person.user} with keydyn users"
    try:
        contents = _contents(path)
    except FileNotFoundError:
        raise ValueError(f"{path}, the model of {person.user}, is missing: {advice}") from None
    except UnusableFileError as error:
        raise ValueError(f"{path}, the model of {person.user}, cannot be read: {error}; {advice}") from None
    if person.sha256 not in ("", hashlib.sha256(contents).hexdigest()):
        raise ValueError(f"{path} is not the model with which {person.user} was enrolled: {advice}")
    return pattern.with_template(contents, path, sorted(["duration", "tau", *manifest.sensors]))


def _contents(path: Path) -> bytes:
    """A file of the folder itself: nothing behind a link."""
    return read_regular(path, LARGEST_FILE, links=False)


def _refuse_twins(people: Iterable[Person]) -> None:
    seen: dict[str, str] = {}
    for person in people:
        other = seen.setdefault(person.sha256, person.user)
        if other != person.user:
            raise ValueError(
                f"users {other} and {person.user} have the same samples: nobody could tell them apart"
            )


def _clean(folder: Path, key: bytes | None) -> None:
    """Remove what changes have left that the manifest does not list."""
    listed = set()
    if os.path.lexists(folder / MANIFEST):
        manifest = read_manifest(folder, key)
        listed = {person.file for person in manifest.people} | {model_file(manifest.population)}
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in listed:
            path.unlink()
