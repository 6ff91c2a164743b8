"""Enrolled people: a model for each, the thresholds at which a claim is believed, and the folder for both."""

from keydyn.enrolment.authentication import read_key
from keydyn.enrolment.enrolled import Enrolled
from keydyn.enrolment.enrolling import enrol, n_fits, n_steps
from keydyn.enrolment.evidence import Evidence, evidence
from keydyn.enrolment.folder import changing, load_enrolled, read_manifest
from keydyn.enrolment.manifest import Manifest, Person

__all__ = [
    "Enrolled",
    "Evidence",
    "Manifest",
    "Person",
    "changing",
    "enrol",
    "evidence",
    "load_enrolled",
    "n_fits",
    "n_steps",
    "read_key",
    "read_manifest",
]
