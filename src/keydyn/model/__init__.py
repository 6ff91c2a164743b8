"""The partially observable hidden Markov model. It knows numbers and event types; nothing of keyboards."""

from keydyn.model.bootstrap import Bootstrap
from keydyn.model.classifier import POHMMClassifier
from keydyn.model.criteria import Criterion
from keydyn.model.emissions import Emission, Family, family_names, register
from keydyn.model.families import Categorical, Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.fitting import Iteration
from keydyn.model.goodness import GoodnessOfFit
from keydyn.model.many import fit_many
from keydyn.model.online import OnlineFilter, OnlineFilters
from keydyn.model.online_batch import OnlineBatch
from keydyn.model.pohmm import HMM, POHMM
from keydyn.model.predictive import NextEmission
from keydyn.model.relatives import (
    Bins,
    ContextHMM,
    Labels,
    NoContext,
    PartiallyHMM,
    PartlyHMM,
    Past,
    register_context,
)
from keydyn.model.residuals import ResidualTest, check_residuals
from keydyn.model.result import FitResult
from keydyn.model.sequences import Sequences
from keydyn.model.storage import ModelFileError, load

__all__ = [
    "HMM",
    "POHMM",
    "Bins",
    "Bootstrap",
    "Categorical",
    "ContextHMM",
    "Criterion",
    "Emission",
    "Exponential",
    "Family",
    "FitResult",
    "Gamma",
    "GoodnessOfFit",
    "Iteration",
    "Labels",
    "LogNormal",
    "LogStudent",
    "ModelFileError",
    "NextEmission",
    "NoContext",
    "Normal",
    "OnlineBatch",
    "OnlineFilter",
    "OnlineFilters",
    "POHMMClassifier",
    "PartiallyHMM",
    "PartlyHMM",
    "Past",
    "ResidualTest",
    "Sequences",
    "Student",
    "check_residuals",
    "family_names",
    "fit_many",
    "load",
    "register",
    "register_context",
]
