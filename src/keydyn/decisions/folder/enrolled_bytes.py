"""Enrolled people and backgrounds as bytes, to be stored in a database rather than in a folder.

Each is a safetensors file whose tensors are the contents of the files that a folder would have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats
from keydyn.decisions.calibration.amounts import CALIBRATIONS
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.comparisons import COMPARISONS, Comparisons
from keydyn.decisions.enrolled import Enrolled
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.files import Field, Kind, Tensor, Tensors, Values, declared, whole
from keydyn.population import PopulationModel
from keydyn.population.saved import bounded

TEMPLATES = ("template", "enrolment", "previous")
# If updates have changed nothing but the means, only the means of the enrolment are stored.
MOVED_FROM = "moved_from"
# The largest contents that are read, in bytes.
LARGEST_STORED = 1 << 28


class _Parts(NamedTuple):
    """Values that describe stored files, and the contents of the files by name."""

    about: Values
    contents: dict[str, bytes]


def template_bytes(one: Enrolled) -> bytes:
    """Pack a person's templates, and how much they were learnt from, without the fingerprints.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier, template_bytes
    >>> enrolled = Verifier.shipped().enrolled(make_typists(1, 5, "free", 80))
    >>> type(template_bytes(enrolled))
    <class 'bytes'>
    """
    moved_from = _moved_from(one)
    names = TEMPLATES if moved_from is None else ("template", "previous")
    templates = {name: getattr(one, name) for name in names}
    contents = {name: each.packed_template() for name, each in templates.items() if each is not None}
    if moved_from is not None:
        contents[MOVED_FROM] = moved_from.astype("<f8").tobytes()
    if len(one.comparisons):
        contents["comparisons"] = one.comparisons.packed()
    about = {"detector": one.template.name, "samples": one.samples, "keys": one.keys}
    return _packed(PERSON, about, contents)


def enrolled_of(
    contents: bytes, pattern: Detector, fingerprints: Fingerprints, sensors: tuple[str, ...] = ()
) -> Enrolled:
    """Restore the person from the result of `template_bytes`, with these fingerprints.

    `pattern` is the detector of the background that the person was enrolled with. A `ValueError` says what is
    wrong with the contents, or that they belong to another population.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Verifier, enrolled_of, template_bytes
    >>> verifier = Verifier.shipped()
    >>> enrolled = verifier.enrolled(make_typists(1, 5, "free", 80))
    >>> again = enrolled_of(template_bytes(enrolled), verifier.background.pattern, enrolled.fingerprints)
    >>> again.samples == enrolled.samples
    True
    """
    parts = _parsed(contents, PERSON)
    detector = parts.about["detector"]
    if detector != pattern.name:
        raise ValueError(f"the template is of the detector {detector!r}, not of {pattern.name}")
    features = sorted(["duration", "tau", *sensors])
    own, means = parts.contents.pop("comparisons", None), parts.contents.pop(MOVED_FROM, None)
    comparisons = Comparisons.none() if own is None else COMPARISONS.parsed(own, "the comparisons")
    templates: dict[str, Any] = {
        name: pattern.with_template(file, f"the {name}", features) for name, file in parts.contents.items()
    }
    if means is not None:
        templates["enrolment"] = _enrolment(templates["template"], means)
    about = {name: parts.about[name] for name in ("samples", "keys")}
    return Enrolled(**about, fingerprints=fingerprints, comparisons=comparisons, **templates)


def _moved_from(one: Enrolled) -> Floats | None:
    """The means of the enrolment, if there were updates and they changed nothing but the means."""
    now, then = one.template, one.enrolment
    if not isinstance(now, PopulationDetector) or not isinstance(then, PopulationDetector):
        return None
    mine, first = vars(now.template_), vars(then.template_)
    same = all(np.array_equal(mine[name], first[name]) for name in mine if name != "mean")
    return then.template_.mean if same else None


def _enrolment(now: Detector, means: bytes) -> Detector:
    """Restore the template of the enrolment from its means and the current template."""
    first = np.frombuffer(means, "<f8").astype(np.float64)
    if not isinstance(now, PopulationDetector) or first.shape != now.template_.mean.shape:
        raise ValueError("the means of the enrolment are not those of the template")
    bounded(MOVED_FROM, first)
    return now.carrying(replace(now.template_, mean=first))


def background_bytes(background: Background) -> bytes:
    """Pack a population with its calibration, without the cohort.

    Examples
    --------
    >>> from keydyn.decisions import background_bytes, shipped_background
    >>> type(background_bytes(shipped_background()))
    <class 'bytes'>
    """
    calibrations = background.own_calibrations
    packed = {"population": background.population.packed(), "calibration": calibrations.packed()}
    return _packed(BACKGROUND, {}, packed)


def background_of(contents: bytes) -> Background:
    """Restore a background from the result of `background_bytes`; a `ValueError` says what is wrong.

    Examples
    --------
    >>> from keydyn.decisions import background_bytes, background_of, shipped_background
    >>> background = shipped_background()
    >>> background_of(background_bytes(background)).population.sha256 == background.population.sha256
    True
    """
    parts = _parsed(contents, BACKGROUND).contents
    people = PopulationModel.parsed(parts["population"], "the population")
    calibrations = CALIBRATIONS.parsed(parts["calibration"], "the calibration")
    if calibrations.population != people.sha256:
        raise ValueError("the calibration is that of another population")
    return Background(PopulationDetector(population=people), (), calibrations)


_BYTES = Tensor((None,), files.unbounded, np.uint8)


def _kind(name: str, fields: dict[str, Field], contents: dict[str, Tensor]) -> Kind[_Parts]:
    """Declare a kind of file whose arrays are the contents of other files."""

    def build(values: Values, tensors: Tensors) -> _Parts:
        return _Parts(values, {name: tensors[name].tobytes() for name in contents if name in tensors})

    return declared(Kind(name, fields, lambda values: contents, build))


PERSON = _kind(
    "EnrolledPerson",
    {"detector": files.text, "samples": whole(1), "keys": whole(1)},
    {
        name: replace(_BYTES, group=None if name == "template" else name)
        for name in (*TEMPLATES, MOVED_FROM, "comparisons")
    },
)
BACKGROUND = _kind("Background", {}, {"population": _BYTES, "calibration": _BYTES})


def _packed(kind: Kind[_Parts], about: Values, contents: dict[str, bytes]) -> bytes:
    tensors = {name: np.frombuffer(file, dtype=np.uint8) for name, file in contents.items()}
    return kind.packed(about, tensors)


def _parsed(contents: bytes, kind: Kind[_Parts]) -> _Parts:
    if len(contents) > LARGEST_STORED:
        raise ValueError(f"there are {len(contents):,} bytes, more than {LARGEST_STORED:,}")
    return kind.parsed(contents, "what is stored")
