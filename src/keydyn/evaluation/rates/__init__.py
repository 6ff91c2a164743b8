"""Error rates: curves, intervals, comparisons, and whose errors they are."""

from keydyn.evaluation.rates.error_curve import (
    ErrorCurve,
    equal_error_rate,
    fnmr_at_fmr,
    zero_miss_rate,
    zero_rejection_rate,
)

__all__ = ["ErrorCurve", "equal_error_rate", "fnmr_at_fmr", "zero_miss_rate", "zero_rejection_rate"]
