"""Evaluation of detectors: protocols, error rates with their uncertainty, and continuous verification."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.evaluation.continuous.event_ranks import EventRanks
    from keydyn.evaluation.continuous.lockout import PenaltyAndReward, RankPenalty
    from keydyn.evaluation.continuous.penalty import TrustSettings, ranks
    from keydyn.evaluation.continuous.rejection import Continuous
    from keydyn.evaluation.protocols.failures import Failures, find_failures
    from keydyn.evaluation.protocols.protocol import (
        Chronological,
        Enrolment,
        LeaveOneOut,
        MonacoTappert,
        OpenSet,
        Protocol,
    )
    from keydyn.evaluation.protocols.running import (
        FittedSplit,
        enrolments,
        ranks_of,
        score_protocol,
        scores_after,
    )
    from keydyn.evaluation.rates.confidence import Rate, compare_with_best, trials_needed
    from keydyn.evaluation.rates.conventions import nearest_eer
    from keydyn.evaluation.rates.detection_cost import DetectionCost, min_dcf
    from keydyn.evaluation.rates.error_curve import ErrorCurve
    from keydyn.evaluation.rates.fairness import error_rates_by
    from keydyn.evaluation.rates.identification import IdentificationRates, identification
    from keydyn.evaluation.rates.likelihood_ratios import min_cllr
    from keydyn.evaluation.rates.requirements import limit_shown, people_needed
    from keydyn.evaluation.rates.system_figures import SystemFigures
    from keydyn.evaluation.rates.verification import (
        TITLES,
        MeanCurve,
        Verification,
        mean_curve,
        recognition,
        verification,
    )
    from keydyn.evaluation.score_files.reading import read_scores
    from keydyn.evaluation.score_files.writing import write_scores
    from keydyn.evaluation.scored_claims import ScoredClaims
    from keydyn.evaluation.scores import Scores

__all__ = ["TITLES", "Chronological", "Continuous", "DetectionCost", "Enrolment", "ErrorCurve"]
__all__ += ["EventRanks", "Failures", "FittedSplit", "IdentificationRates", "LeaveOneOut", "MeanCurve"]
__all__ += ["MonacoTappert", "OpenSet", "PenaltyAndReward", "Protocol", "RankPenalty", "Rate"]
__all__ += ["ScoredClaims", "Scores", "SystemFigures", "TrustSettings", "Verification"]
__all__ += ["compare_with_best", "enrolments", "error_rates_by", "find_failures", "identification"]
__all__ += ["limit_shown", "mean_curve", "min_cllr", "min_dcf", "nearest_eer", "people_needed", "ranks"]
__all__ += ["ranks_of", "read_scores", "recognition", "score_protocol", "scores_after", "trials_needed"]
__all__ += ["verification", "write_scores"]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".continuous.event_ranks": "EventRanks",
        ".continuous.lockout": "PenaltyAndReward RankPenalty",
        ".continuous.penalty": "TrustSettings ranks",
        ".continuous.rejection": "Continuous",
        ".protocols.failures": "Failures find_failures",
        ".protocols.protocol": "Chronological Enrolment LeaveOneOut MonacoTappert OpenSet Protocol",
        ".protocols.running": "FittedSplit enrolments ranks_of score_protocol scores_after",
        ".rates.confidence": "Rate compare_with_best trials_needed",
        ".rates.conventions": "nearest_eer",
        ".rates.detection_cost": "DetectionCost min_dcf",
        ".rates.error_curve": "ErrorCurve",
        ".rates.fairness": "error_rates_by",
        ".rates.identification": "IdentificationRates identification",
        ".rates.likelihood_ratios": "min_cllr",
        ".rates.requirements": "limit_shown people_needed",
        ".rates.system_figures": "SystemFigures",
        ".rates.verification": "TITLES MeanCurve Verification mean_curve recognition verification",
        ".score_files.reading": "read_scores",
        ".score_files.writing": "write_scores",
        ".scored_claims": "ScoredClaims",
        ".scores": "Scores",
    },
)
