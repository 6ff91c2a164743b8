"""Calibrations, enrolled people and fingerprints with any values under a right digest."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from keydyn.decisions.calibration.amounts import CALIBRATIONS
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.decision import Targets
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.folder.enrolled_bytes import PERSON, enrolled_of, template_bytes
from keydyn.decisions.liveness.copies import (
    MARK,
    Fingerprints,
    copy_evidence,
    fingerprints_bytes,
    fingerprints_of,
)
from keydyn.decisions.verifier import Verifier
from keydyn.keystrokes.samples import Samples
from tests.fuzz.fuzzed_models import changed_file, unpacked
from tests.fuzz.questions import refuse_nan
from tests.fuzz.targets import Generator, Target
from tests.population.simulated import people

SECRET = bytes(range(16))


@cache
def everybody() -> Samples:
    """Whose fingerprints are kept, and who is asked about."""
    return Samples.of(people(n_people=2, n_samples=2, n_keys=8), first="missing")


@cache
def files() -> list[bytes]:
    person = Verifier.shipped().enrolled(everybody()[:2])
    return [shipped_background().calibrations.packed(), template_bytes(person)]


@cache
def words() -> np.ndarray:
    """Fingerprints, without their mark and checksum."""
    return np.frombuffer(fingerprints_bytes(Fingerprints.of(everybody(), SECRET)), dtype="<u4")[2:]


def values() -> Target:
    """What is read answers every question without NaN."""
    parts = [unpacked(contents) for contents in files()]

    def case(generator: Generator) -> bytes:
        if generator.random() < 0.3:
            return _changed_words(generator)
        return changed_file(generator, parts, lambda name: True)

    return Target("calibrations, people and fingerprints, values", case, _judged)


def _changed_words(generator: Generator) -> bytes:
    """Fingerprints with a word changed, most often one that counts, and words cut off or added."""
    changed = np.array(words())
    place = int(generator.integers(0, 5 if generator.random() < 0.7 else len(changed)))
    changed[place] = generator.choice([0, 1, 5, changed[place] + 1, 2**31, 2**32 - 1])
    if generator.random() < 0.3:
        changed = np.resize(changed, int(generator.integers(1, 2 * len(changed))))
    contents = changed.astype("<u4").tobytes()
    return MARK + crc32(contents).to_bytes(4, "little") + contents


def _judged(contents: bytes, folder: Path) -> str:
    try:
        if contents.startswith(MARK):
            _match(fingerprints_of(contents))
        elif PERSON.name.encode() in contents:
            _score(enrolled_of(contents, shipped_background().pattern, Fingerprints.none()))
        else:
            found = CALIBRATIONS.parsed(contents, "case.keydyn")
            for enrolled in (1, 50, 120, 10**6):
                _ask(found.at(enrolled))
    except ValueError:
        return "refused"
    return "read, every question answered"


def _score(found: Enrolled) -> None:
    refuse_nan("score", found.template.score(everybody()))


def _match(found: Fingerprints) -> None:
    refuse_nan("copy_evidence", copy_evidence(everybody(), found, SECRET))
    assert len(found.added(found)) <= 2 * len(found)


def _ask(found: Calibration) -> None:
    scores, keys = np.array([-1e6, -3.0, 0.0, 5.0, 1e6]), np.array([1, 8, 40, 90, 10**6])
    refuse_nan("llr", found.llr(scores, keys))
    refuse_nan("false_match_rates", found.false_match_rates(scores, keys))
    refuse_nan("false_non_match_rates", found.false_non_match_rates(scores, keys))
    refuse_nan("lockout_level", np.array([found.lockout_level(rate) for rate in (0.01, 1.0, 100.0)]))
    assert set(Targets().answers(found.meanings(scores, keys))) <= {"accept", "reject", "unsure"}
    for score in scores.tolist():
        rate = found.false_match_rate(score, 40)
        assert 0 <= rate.low <= rate.value <= rate.high <= 1
