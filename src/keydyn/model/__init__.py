"""The partially observable hidden Markov model. It knows numbers and event types; nothing of keyboards."""

from keydyn.model.classifier import POHMMClassifier
from keydyn.model.criteria import Criterion
from keydyn.model.emissions import Emission, Family, family_names, register
from keydyn.model.families import Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.fitting import Iteration
from keydyn.model.many import fit_many
from keydyn.model.online import OnlineFilter, OnlineFilters
from keydyn.model.online_batch import OnlineBatch
from keydyn.model.pohmm import HMM, POHMM
from keydyn.model.predictive import NextEmission
from keydyn.model.result import FitResult
from keydyn.model.sequences import Sequences
from keydyn.model.storage import ModelFileError, load

__all__ = [
    "HMM",
    "POHMM",
    "Criterion",
    "Emission",
    "Exponential",
    "Family",
    "FitResult",
    "Gamma",
    "Iteration",
    "LogNormal",
    "LogStudent",
    "ModelFileError",
    "NextEmission",
    "Normal",
    "OnlineBatch",
    "OnlineFilter",
    "OnlineFilters",
    "POHMMClassifier",
    "Sequences",
    "Student",
    "family_names",
    "fit_many",
    "load",
    "register",
]
