"""The folder of enrolled people: files named by their content, and the manifest that lists them.

A change first writes new files. A single rename then makes a new manifest current, so that whatever happens,
a reader finds the people before the change or those after it, each with the right template.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from keydyn.atomic import replacing, sync_folder, write_bytes, write_text
from keydyn.decisions.calibration.amounts import CALIBRATIONS
from keydyn.decisions.calibration.background import UNNAMED, Background
from keydyn.decisions.calibration.comparisons import COMPARISONS, Comparisons
from keydyn.decisions.calibration.trials import SMALLEST_COHORT
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.manifest import OPTIONAL, Manifest, Member, PersonEntry, file_of, secret_file
from keydyn.decisions.liveness.copies import Fingerprints, check_secret, fingerprints_bytes, fingerprints_of
from keydyn.detectors import Detector, PopulationDetector, make_detector
from keydyn.population import PopulationModel
from keydyn.regular_files import UnusableFileError, read_regular

MANIFEST = "models.json"
SAME = "people in one folder need the same detector, sensors, cohort, calibration and secret"
LARGEST_FILE = 256 * 2**20
SECRET_BYTES, LARGEST_SECRET = 32, 64
# Files that a change may leave behind: those of this and earlier versions, and partly written ones.
OURS = re.compile(r"([0-9a-f]{64}|user-[0-9]{6,12}|\.[0-9a-f]{16})\.(keydyn|key)|\.[0-9a-f]{16}\.json")

Read = TypeVar("Read")
LOCK = ".lock"
# The errors that operating systems report for a lock held by another process.
HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


def read_manifest(folder: str | Path, key: bytes | None = None) -> Manifest:
    """Read the manifest of a folder; a `ValueError` says what is wrong with it."""
    path = Path(folder) / MANIFEST
    if not os.path.lexists(path):
        raise ValueError(f"{folder} holds no enrolled users: there is no {MANIFEST} in it (see keydyn fit)")
    try:
        return Manifest.from_text(_contents(path), key)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a folder; `secret` keys the fingerprints of its people.

    `others` are people who were not asked for, but on whom decisions about `people` depend.
    """

    background: Background
    people: dict[str, Enrolled]
    others: dict[str, Enrolled]
    manifest: Manifest
    secret: bytes


def read_folder(folder: str | Path, key: bytes | None = None, users: Iterable[str] | None = None) -> Contents:
    """Read the background, and the people with these names, or all people.

    A `ValueError` says what is wrong with the folder, or names a user who is not enrolled. Nothing is locked:
    if the folder changes while it is read, it is read again.
    """
    wanted = None if users is None else set(users)
    manifest = read_manifest(folder, key)
    while True:
        try:
            return _read(Path(folder), manifest, key, wanted)
        except (OSError, ValueError):
            current = read_manifest(folder, key)
            if current == manifest:
                raise
            manifest = current


def new_secret(key: bytes | None = None) -> bytes:
    """Make a secret to key fingerprints: derived from the key, if there is one, and random otherwise."""
    if key is None:
        return secrets.token_bytes(SECRET_BYTES)
    return hmac.new(key, b"keydyn fingerprints", hashlib.sha256).digest()


@contextmanager
def changing(folder: str | Path, key: bytes | None = None, anew: bool = False) -> Iterator[Change]:
    """Open a folder for a change, creating it if necessary; meanwhile other writers are refused.

    Nothing changes before `Change.commit`. With `anew`, the present people are not read at all.
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
            # Cleaning is not part of the change: files that cannot be removed now are removed the next time.
            with suppress(OSError, ValueError):
                _clean(folder, key)


@dataclass(frozen=True)
class Change:
    """A change of a folder: `before` is the manifest before it, None if the folder is new."""

    folder: Path
    key: bytes | None
    before: Manifest | None

    def commit(
        self,
        background: Background | None,
        enrolled: Mapping[str, Enrolled],
        secret: bytes,
        sensors: tuple[str, ...] = (),
    ) -> Manifest:
        """Add these people, or replace their entries; all people must share one background.

        None stands for the background that the folder has, which is not written again. `secret` keys the
        fingerprints; it is written unless it is derived from the folder's key.
        """
        manifest = (
            self._before(secret, sensors) if background is None else self._with(background, secret, sensors)
        )
        people = {person.user: person for person in manifest.people}
        people |= {user: self._saved(user, one) for user, one in enrolled.items()}
        return self._current(replace(manifest, people=tuple(people.values())))

    def remove(self, users: Iterable[str]) -> Manifest:
        """Remove these people; a `ValueError` names a user who is not enrolled."""
        if self.before is None:
            raise ValueError(f"nobody is enrolled in {self.folder} (see keydyn fit)")
        left = self.before.without(set(users))
        left = replace(left, people=tuple(self._forgetting(one, set(users)) for one in left.people))
        if len(left.cohort) < SMALLEST_COHORT:
            left = replace(left, cohort=())
        if left.people and not (left.cohort or left.unnamed or left.population):
            raise ValueError(
                "without them too few people are left to compare claims with: enrol the others again with "
                "--replace"
            )
        return self._current(left)

    def _before(self, secret: bytes, sensors: tuple[str, ...]) -> Manifest:
        """The previous manifest; a `ValueError` unless it has this secret and these sensors."""
        if self.before is None:
            raise ValueError(f"nobody is enrolled in {self.folder} (see keydyn fit)")
        if (self.before.secret, self.before.sensors) != (_recognised(secret), sensors):
            raise ValueError(SAME)
        return self.before

    def _with(self, background: Background, secret: bytes, sensors: tuple[str, ...]) -> Manifest:
        """The manifest with this background, whose files are written, and the people already enrolled."""
        pattern = background.pattern
        population = ""
        if isinstance(pattern, PopulationDetector):
            population = self._written(pattern.people.packed())
        cohort = tuple(
            Member(user, self._written(one.packed_template()))
            for user, one in zip(background.members, background.cohort, strict=True)
            if user != UNNAMED
        )
        nameless = background.unnamed
        unnamed = self._written(background.population.packed_people(nameless)) if nameless else ""
        calibration, kept = self._written(background.calibrations.packed()), self._kept(secret)
        manifest = Manifest(pattern.name, sensors, population, cohort, unnamed, calibration, kept, ())
        if self.before is None or not self.before.people:
            return manifest
        if replace(self.before, people=()) != manifest:
            raise ValueError(SAME)
        return self.before

    def _kept(self, secret: bytes) -> str:
        """Write the secret to a private file unless that exists or is not needed; return its code."""
        check_secret(secret)
        recognised = _recognised(secret)
        path = self.folder / secret_file(recognised)
        derived = self.key is not None and secret == new_secret(self.key)
        if not derived and not os.path.lexists(path):
            with (
                replacing(path) as temporary,
                open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
            ):
                file.write(secret)
        return recognised

    def _current(self, manifest: Manifest) -> Manifest:
        """Make a manifest current; this is the moment at which the change takes effect."""
        _refuse_twins(manifest.people)
        text = manifest.to_text(self.key)
        # A manifest that could not be read again must not become current.
        Manifest.from_text(text.encode(), self.key)
        # The files must be on disk under their names before a manifest lists them.
        sync_folder(self.folder)
        write_text(self.folder / MANIFEST, text)
        return manifest

    def _saved(self, user: str, one: Enrolled) -> PersonEntry:
        fingerprints = ""
        if len(one.fingerprints):
            fingerprints = self._written(fingerprints_bytes(one.fingerprints))
        templates = (one.template, one.enrolment, one.previous)
        now, *earlier = ("" if each is None else self._written(each.packed_template()) for each in templates)
        comparisons = self._written(one.comparisons.packed()) if len(one.comparisons) else ""
        files = fingerprints, *earlier, comparisons
        return PersonEntry(user, one.samples, one.keys, now, **dict(zip(OPTIONAL, files, strict=True)))

    def _forgetting(self, person: PersonEntry, users: set[str]) -> PersonEntry:
        """The person without comparisons that name these users."""
        before = _comparisons(self.folder, person)
        after = before
        for user in users:
            after = after.without(user)
        if after is before:
            return person
        return replace(person, comparisons=self._written(after.packed()) if len(after) else "")

    def _written(self, contents: bytes) -> str:
        """Write a file under a name that follows from its content, and return its SHA-256."""
        temporary = self.folder / f".{secrets.token_hex(8)}.keydyn"
        write_bytes(temporary, contents)
        sha256 = hashlib.sha256(contents).hexdigest()
        os.replace(temporary, self.folder / file_of(sha256))
        return sha256


def _read(folder: Path, manifest: Manifest, key: bytes | None, wanted: set[str] | None) -> Contents:
    for user in sorted(wanted or ()):
        manifest.person(user)
    pattern = storing_detector(manifest.detector, _population(folder, manifest))
    features = sorted(["duration", "tau", *manifest.sensors])

    def template(sha256: str, of: str, advice: str) -> Detector:
        return _file(
            folder, sha256, of, advice, lambda contents, path: pattern.with_template(contents, path, features)
        )

    start_over = "enrol everybody again with --replace"
    cohort = tuple(
        template(member.sha256, f"model of {member.user} in the cohort", start_over)
        for member in manifest.cohort
    )
    calibration = _file(folder, manifest.calibration, "calibration", start_over, CALIBRATIONS.parsed)
    everyone = {}
    for person in manifest.people:
        # Enrolled people join a cohort that has no names of its own.
        if wanted is not None and person.user not in wanted and not manifest.unnamed:
            continue
        advice = f"enrol {person.user} again, or remove {person.user} with keydyn users"
        fingerprints = Fingerprints.none()
        if person.fingerprints:
            what = f"fingerprints of {person.user}"
            fingerprints = _file(
                folder, person.fingerprints, what, advice, lambda contents, _: fingerprints_of(contents)
            )
        own, enrolment, previous = (
            template(sha256, f"model of {person.user}", advice) if sha256 else None
            for sha256 in (person.sha256, person.enrolment, person.previous)
        )
        if own is None:
            raise ValueError(f"{person.user} has no model: {advice}")
        one = Enrolled(own, person.samples, person.keys, fingerprints, enrolment, previous)
        everyone[person.user] = replace(one, comparisons=_comparisons(folder, person))
    members = tuple(member.user for member in manifest.cohort)
    if manifest.unnamed and isinstance(pattern, PopulationDetector):
        parse = pattern.people.parsed_people
        nameless = _file(folder, manifest.unnamed, "cohort without names", start_over, parse)
        cohort += tuple(map(pattern.carrying, nameless))
        members += (UNNAMED,) * len(nameless)
    background = Background(pattern, cohort, calibration, members)
    people = {user: one for user, one in everyone.items() if wanted is None or user in wanted}
    others = {user: one for user, one in everyone.items() if user not in people}
    return Contents(background, people, others, manifest, _secret(folder, manifest, key))


def _comparisons(folder: Path, person: PersonEntry) -> Comparisons:
    """Read the person's comparisons with others."""
    if not person.comparisons:
        return Comparisons.none()
    advice = f"enrol {person.user} again, or remove {person.user} with keydyn users"
    what = f"comparisons of {person.user}"
    return _file(folder, person.comparisons, what, advice, COMPARISONS.parsed)


def _secret(folder: Path, manifest: Manifest, key: bytes | None) -> bytes:
    """The secret that the manifest refers to: derived from the key, or else read from its own file."""
    if key is not None and _recognised(new_secret(key)) == manifest.secret:
        return new_secret(key)
    path = folder / secret_file(manifest.secret)
    advice = "without it copies of earlier samples are not recognised; enrol everybody again with --replace"
    try:
        secret = read_regular(path, LARGEST_SECRET, links=False)
    except FileNotFoundError:
        raise ValueError(f"{path}, the secret of the folder, is missing: {advice}") from None
    if _recognised(secret) != manifest.secret:
        raise ValueError(f"{path}, the secret of the folder, is not the one that was written: {advice}")
    return secret


def _recognised(secret: bytes) -> str:
    """The code by which a secret is recognised; it reveals nothing about the secret."""
    return hmac.new(secret, b"keydyn secret", hashlib.sha256).hexdigest()


def _population(folder: Path, manifest: Manifest) -> PopulationModel | None:
    """Read the population with which all people were enrolled, if there is one."""
    if not manifest.population:
        return None
    advice = "enrol everybody again with --replace"
    return _file(folder, manifest.population, "population of everybody", advice, PopulationModel.parsed)


def _file(folder: Path, sha256: str, what: str, advice: str, parse: Callable[[bytes, Path], Read]) -> Read:
    """Read and parse a file, if it is the one that the manifest lists."""
    path = folder / file_of(sha256)
    try:
        contents = _contents(path)
    except FileNotFoundError:
        raise ValueError(f"{path}, the {what}, is missing: {advice}") from None
    except UnusableFileError as error:
        raise ValueError(f"{path}, the {what}, cannot be read: {error}; {advice}") from None
    if sha256 != hashlib.sha256(contents).hexdigest():
        raise ValueError(f"{path}, the {what}, is not the file that was written: {advice}")
    return parse(contents, path)


def _contents(path: Path) -> bytes:
    """Read a file of the folder itself; links are not followed."""
    return read_regular(path, LARGEST_FILE, links=False)


def _refuse_twins(people: Iterable[PersonEntry]) -> None:
    seen: dict[str, str] = {}
    for person in people:
        other = seen.setdefault(person.sha256, person.user)
        if other != person.user:
            raise ValueError(
                f"users {other} and {person.user} have the same samples: nobody could tell them apart"
            )


def _clean(folder: Path, key: bytes | None) -> None:
    """Remove files left behind by changes that the manifest does not list."""
    listed = read_manifest(folder, key).files if os.path.lexists(folder / MANIFEST) else set()
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in listed:
            path.unlink()


def storing_detector(name: str, population: PopulationModel | None = None) -> Detector:
    """The detector of this name, with its `population`; a `ValueError` if it stores no templates."""
    if name == PopulationDetector.name:
        return PopulationDetector(population=population)
    pattern = make_detector(name)
    if not pattern.stores_templates:
        raise ValueError(f"{name} cannot enrol users here; hmm, pohmm, pohmm-recommended and population can")
    if population is not None:
        raise ValueError(f"a population is for the detector population, not for {name}")
    return pattern


class InUseError(OSError):
    """Raised when another process is writing to the folder."""


@contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold the folder's lock, or another one in it; `InUseError` at once if another process holds it.

    The lock file is never removed: otherwise two processes could each hold a lock of that name.
    """
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        try:
            _take(handle)
        except OSError as error:
            if error.errno not in HELD:
                raise
            raise InUseError(
                f"another process is writing to {folder}; try again when it has finished"
            ) from None
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
