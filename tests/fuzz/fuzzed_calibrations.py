"""Files of calibrations and fingerprints with any values under a right digest."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from keydyn.decisions.calibration import Calibration
from keydyn.decisions.copies import Fingerprints, copy_evidence
from keydyn.decisions.files import (
    parsed_calibration,
    parsed_fingerprints,
    write_calibration,
    write_fingerprints,
)
from keydyn.decisions.operating_point import Targets
from keydyn.decisions.shipped import shipped_background
from keydyn.keystrokes.samples import Samples
from keydyn.model import ModelFileError
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.keydyn"
        write_calibration(path, shipped_background().calibration)
        contents = path.read_bytes()
        write_fingerprints(path, Fingerprints.of(everybody(), SECRET))
        return [contents, path.read_bytes()]


def values() -> Target:
    """What is read answers every question without NaN."""
    parts = [unpacked(contents) for contents in files()]

    def case(generator: Generator) -> bytes:
        return changed_file(generator, parts, lambda name: True)

    return Target("calibrations and fingerprints, values", case, _judged)


def _judged(contents: bytes, folder: Path) -> str:
    try:
        if b"Fingerprints" in contents:
            _match(parsed_fingerprints(contents, "case.keydyn"))
        else:
            _ask(parsed_calibration(contents, "case.keydyn"))
    except ModelFileError:
        return "refused"
    return "read, every question answered"


def _match(found: Fingerprints) -> None:
    refuse_nan("copy_evidence", copy_evidence(everybody(), found, SECRET))
    assert len(found.added(found)) <= 2 * len(found)


def _ask(found: Calibration) -> None:
    scores, keys = np.array([-1e6, -3.0, 0.0, 5.0, 1e6]), np.array([1, 8, 40, 90, 10**6])
    refuse_nan("llr", found.llr(scores, keys))
    refuse_nan("false_match_rates", found.false_match_rates(scores, keys))
    refuse_nan("false_non_match_rates", found.false_non_match_rates(scores, keys))
    refuse_nan("lockout_level", np.array([found.lockout_level(rate) for rate in (0.01, 1.0, 100.0)]))
    assert set(Targets().answers(found, scores, keys)) <= {"accept", "reject", "unsure"}
    for score in scores.tolist():
        rate = found.false_match_rate(score, 40)
        assert 0 <= rate.low <= rate.value <= rate.high <= 1
