"""How good a detector is: protocols, error rates and how certain they are, continuous verification."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.evaluation.continuous.event_ranks import EventRanks
    from keydyn.evaluation.continuous.lockout import PenaltyAndReward, RankPenalty
    from keydyn.evaluation.continuous.penalty import TrustSettings, rank_penalty, ranks
    from keydyn.evaluation.continuous.rejection import Actions, Continuous, Times
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
    from keydyn.evaluation.rates.chosen_elsewhere import ChosenElsewhere, chosen_elsewhere, nearest_threshold
    from keydyn.evaluation.rates.confidence import (
        Rate,
        compare_with_best,
        mean_rate,
        signed_rank_p,
        trials_needed,
    )
    from keydyn.evaluation.rates.conventions import nearest_eer, nearest_fnmr_at_fmr
    from keydyn.evaluation.rates.detection_cost import (
        DetectionCost,
        actual_dcf,
        min_dcf,
    )
    from keydyn.evaluation.rates.error_curve import (
        ErrorCurve,
        equal_error_rate,
        fnmr_at_fmr,
        zero_miss_rate,
    )
    from keydyn.evaluation.rates.fairness import (
        error_rates_by,
        group_differences,
        group_rates,
        median_intervals,
    )
    from keydyn.evaluation.rates.identification import Identification, identification
    from keydyn.evaluation.rates.likelihood_ratios import cllr, min_cllr, reliability
    from keydyn.evaluation.rates.requirements import Shown, limit_shown, people_needed, upper_bound
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
    from keydyn.evaluation.score_files.writing import EXPORTS, write_scores
    from keydyn.evaluation.scored_claims import ScoredClaims
    from keydyn.evaluation.scores import Scores

__all__ = ["Actions", "Continuous", "EventRanks", "PenaltyAndReward", "RankPenalty"]
__all__ += ["Times", "TrustSettings", "rank_penalty", "ranks"]
__all__ += ["Chronological", "Enrolled", "Enrolment", "Failures", "KillourhyMaxion", "LeaveOneOut"]
__all__ += ["MonacoTappert", "OpenSet", "Protocol", "Split", "enrolments", "find_failures", "ranks_of"]
__all__ += ["score_protocol", "scores_after", "scores_and_ranks", "scores_of"]
__all__ += ["TITLES", "ErrorCurve", "Identification", "MeanCurve", "Rate", "Verification", "cllr"]
__all__ += ["compare_with_best", "equal_error_rate", "error_rates_by", "fnmr_at_fmr", "identification"]
__all__ += ["mean_curve", "mean_rate", "median_intervals", "min_cllr", "recognition", "reliability"]
__all__ += ["signed_rank_p", "trials_needed", "verification", "zero_miss_rate"]
__all__ += ["ChosenElsewhere", "DetectionCost", "ScoredClaims", "Scores", "SystemFigures", "actual_dcf"]
__all__ += ["chosen_elsewhere", "min_dcf", "nearest_eer"]
__all__ += ["EXPORTS", "nearest_fnmr_at_fmr", "nearest_threshold", "read_scores"]
__all__ += ["Shown", "group_differences", "group_rates", "limit_shown", "people_needed", "upper_bound"]
__all__ += ["write_scores"]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        ".continuous.event_ranks": "EventRanks",
        ".continuous.lockout": "PenaltyAndReward RankPenalty",
        ".continuous.penalty": "TrustSettings rank_penalty ranks",
        ".continuous.rejection": "Actions Continuous Times",
        ".protocols.failures": "Failures find_failures",
        ".protocols.protocol": "Chronological Enrolment KillourhyMaxion LeaveOneOut MonacoTappert "
        "OpenSet Protocol Split",
        ".protocols.running": "Enrolled enrolments ranks_of score_protocol scores_after scores_and_ranks "
        "scores_of",
        ".rates.chosen_elsewhere": "ChosenElsewhere chosen_elsewhere nearest_threshold",
        ".rates.confidence": "Rate compare_with_best mean_rate signed_rank_p trials_needed",
        ".rates.conventions": "nearest_eer nearest_fnmr_at_fmr",
        ".rates.detection_cost": "DetectionCost actual_dcf min_dcf",
        ".rates.error_curve": "ErrorCurve equal_error_rate fnmr_at_fmr zero_miss_rate",
        ".rates.fairness": "error_rates_by group_differences group_rates median_intervals",
        ".rates.identification": "Identification identification",
        ".rates.likelihood_ratios": "cllr min_cllr reliability",
        ".rates.requirements": "Shown limit_shown people_needed upper_bound",
        ".rates.system_figures": "SystemFigures",
        ".rates.verification": "TITLES MeanCurve Verification mean_curve recognition verification",
        ".score_files.reading": "read_scores",
        ".score_files.writing": "EXPORTS write_scores",
        ".scored_claims": "ScoredClaims",
        ".scores": "Scores",
    },
)
