"""The partially observable hidden Markov model, for any numbers and event types, not only of keyboards."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.files import ModelFileError
    from keydyn.model.ask.inference import Criterion
    from keydyn.model.ask.next_emission import NextEmission
    from keydyn.model.ask.ngrams import NGrams
    from keydyn.model.check.goodness import GoodnessOfFit
    from keydyn.model.check.pseudo_residuals import ResidualTest, check_residuals
    from keydyn.model.classifier import POHMMClassifier
    from keydyn.model.criteria import TrainingCriterion
    from keydyn.model.data.input_forms import intervals
    from keydyn.model.data.sequences import Sequences
    from keydyn.model.families import Categorical, Exponential, Gamma, LogNormal, LogStudent, Normal, Student
    from keydyn.model.families.family import Emission, Family, family_names, register
    from keydyn.model.fit.fits import Iteration
    from keydyn.model.fit.many import fit_many
    from keydyn.model.fit.result import FitResult
    from keydyn.model.model_files import load
    from keydyn.model.pohmm import HMM, POHMM
    from keydyn.model.relatives.context_hmm import ContextHMM
    from keydyn.model.relatives.contexts import Bins, Labels, NoContext, Past
    from keydyn.model.relatives.partially_hmm import PartiallyHMM
    from keydyn.model.relatives.partly_hmm import PartlyHMM
    from keydyn.model.watch.online_batch import OnlineBatch, OnlineFilter

__all__ = [
    "HMM",
    "POHMM",
    "Bins",
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
    "NGrams",
    "NextEmission",
    "NoContext",
    "Normal",
    "OnlineBatch",
    "OnlineFilter",
    "POHMMClassifier",
    "PartiallyHMM",
    "PartlyHMM",
    "Past",
    "ResidualTest",
    "Sequences",
    "Student",
    "TrainingCriterion",
    "check_residuals",
    "family_names",
    "fit_many",
    "intervals",
    "load",
    "register",
]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "keydyn.files": "ModelFileError",
        ".model_files": "load",
        ".ask.inference": "Criterion",
        ".ask.next_emission": "NextEmission",
        ".ask.ngrams": "NGrams",
        ".check.goodness": "GoodnessOfFit",
        ".check.pseudo_residuals": "ResidualTest check_residuals",
        ".classifier": "POHMMClassifier",
        ".criteria": "TrainingCriterion",
        ".data.input_forms": "intervals",
        ".data.sequences": "Sequences",
        ".families": "Categorical Exponential Gamma LogNormal LogStudent Normal Student",
        ".families.family": "Emission Family family_names register",
        ".fit.fits": "Iteration",
        ".fit.many": "fit_many",
        ".fit.result": "FitResult",
        ".pohmm": "HMM POHMM",
        ".relatives.context_hmm": "ContextHMM",
        ".relatives.contexts": "Bins Labels NoContext Past",
        ".relatives.partially_hmm": "PartiallyHMM",
        ".relatives.partly_hmm": "PartlyHMM",
        ".watch.online_batch": "OnlineBatch OnlineFilter",
    },
)
