"""How good a detector is: protocols, error rates and how certain they are, continuous verification."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.evaluation.continuous.event_ranks import EventRanks
    from keydyn.evaluation.continuous.lockout import PenaltyAndReward, RankPenalty
    from keydyn.evaluation.continuous.online import OnlinePenalties, OnlinePenalty, OnlineTrusts
    from keydyn.evaluation.continuous.penalty import rank_penalty, ranks
    from keydyn.evaluation.continuous.rejection import Actions, Continuous, Times
    from keydyn.evaluation.continuous.trust import TrustSettings
    from keydyn.evaluation.protocols.failures import Failures, find_failures
    from keydyn.evaluation.protocols.protocol import (
        Chronological,
        Enrolment,
        KillourhyMaxion,
        LeaveOneOut,
        MonacoTappert,
        OpenSet,
        Protocol,
        Split,
    )
    from keydyn.evaluation.protocols.running import (
        Enrolled,
        enrolments,
        ranks_of,
        score_protocol,
        scores_after,
        scores_and_ranks,
        scores_of,
    )
    from keydyn.evaluation.rates.confidence import Rate, mean_rate, trials_needed
    from keydyn.evaluation.rates.error_curve import (
        ErrorCurve,
        equal_error_rate,
        fnmr_at_fmr,
        zero_miss_rate,
        zero_rejection_rate,
    )
    from keydyn.evaluation.rates.fairness import error_rates_by, median_intervals
    from keydyn.evaluation.rates.identification import Identification, identification
    from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr, reliability
    from keydyn.evaluation.rates.recognition import recognition
    from keydyn.evaluation.rates.significance import compare_with_best, signed_rank_p
    from keydyn.evaluation.rates.verification import TITLES, MeanCurve, Verification, mean_curve, verification
    from keydyn.evaluation.scores import Scores

_MODULES = {
    "EventRanks": "continuous.event_ranks",
    "PenaltyAndReward": "continuous.lockout",
    "RankPenalty": "continuous.lockout",
    "OnlinePenalties": "continuous.online",
    "OnlinePenalty": "continuous.online",
    "OnlineTrusts": "continuous.online",
    "rank_penalty": "continuous.penalty",
    "ranks": "continuous.penalty",
    "Actions": "continuous.rejection",
    "Continuous": "continuous.rejection",
    "Times": "continuous.rejection",
    "TrustSettings": "continuous.trust",
    "Failures": "protocols.failures",
    "find_failures": "protocols.failures",
    "Chronological": "protocols.protocol",
    "Enrolment": "protocols.protocol",
    "KillourhyMaxion": "protocols.protocol",
    "LeaveOneOut": "protocols.protocol",
    "MonacoTappert": "protocols.protocol",
    "OpenSet": "protocols.protocol",
    "Protocol": "protocols.protocol",
    "Split": "protocols.protocol",
    "Enrolled": "protocols.running",
    "enrolments": "protocols.running",
    "ranks_of": "protocols.running",
    "score_protocol": "protocols.running",
    "scores_after": "protocols.running",
    "scores_and_ranks": "protocols.running",
    "scores_of": "protocols.running",
    "Rate": "rates.confidence",
    "mean_rate": "rates.confidence",
    "trials_needed": "rates.confidence",
    "ErrorCurve": "rates.error_curve",
    "equal_error_rate": "rates.error_curve",
    "fnmr_at_fmr": "rates.error_curve",
    "zero_miss_rate": "rates.error_curve",
    "zero_rejection_rate": "rates.error_curve",
    "error_rates_by": "rates.fairness",
    "median_intervals": "rates.fairness",
    "Identification": "rates.identification",
    "identification": "rates.identification",
    "cllr": "rates.likelihood_ratios",
    "min_cllr": "rates.likelihood_ratios",
    "reliability": "rates.likelihood_ratios",
    "recognition": "rates.recognition",
    "compare_with_best": "rates.significance",
    "signed_rank_p": "rates.significance",
    "MeanCurve": "rates.verification",
    "TITLES": "rates.verification",
    "Verification": "rates.verification",
    "mean_curve": "rates.verification",
    "verification": "rates.verification",
    "Scores": "scores",
}
__all__ = [
    "TITLES",
    "Actions",
    "Chronological",
    "Continuous",
    "Enrolled",
    "Enrolment",
    "ErrorCurve",
    "EventRanks",
    "Failures",
    "Identification",
    "KillourhyMaxion",
    "LeaveOneOut",
    "MeanCurve",
    "MonacoTappert",
    "OnlinePenalties",
    "OnlinePenalty",
    "OnlineTrusts",
    "OpenSet",
    "PenaltyAndReward",
    "Protocol",
    "RankPenalty",
    "Rate",
    "Scores",
    "Split",
    "Times",
    "TrustSettings",
    "Verification",
    "cllr",
    "compare_with_best",
    "enrolments",
    "equal_error_rate",
    "error_rates_by",
    "find_failures",
    "fnmr_at_fmr",
    "identification",
    "mean_curve",
    "mean_rate",
    "median_intervals",
    "min_cllr",
    "rank_penalty",
    "ranks",
    "ranks_of",
    "recognition",
    "reliability",
    "score_protocol",
    "scores_after",
    "scores_and_ranks",
    "scores_of",
    "signed_rank_p",
    "trials_needed",
    "verification",
    "zero_miss_rate",
    "zero_rejection_rate",
]


def __getattr__(name: str) -> Any:
    """Import a module only when one of its names is needed."""
    if name in _MODULES:
        return getattr(import_module(f"keydyn.evaluation.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keydyn.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
