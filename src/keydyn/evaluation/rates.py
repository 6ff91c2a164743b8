"""Error rates from genuine and impostor scores; a higher score is more genuine."""

from __future__ import annotations

import numpy as np

from keydyn.model.arrays import Floats


def error_rates(genuine: Floats, impostor: Floats) -> tuple[Floats, Floats]:
    """False acceptance and false rejection at every distinct score, from strict to lax.

    The first point, (0, 1), accepts nobody; then a sample is accepted if it scores at least the threshold.
    """
    for name, scores in (("genuine", genuine), ("impostor", impostor)):
        if len(scores) == 0:
            raise ValueError(f"there are no {name} scores")
        if np.isnan(scores).any():
            raise ValueError(f"{name} score {int(np.argmax(np.isnan(scores)))} is NaN")
    thresholds = np.unique(np.concatenate([genuine, impostor]))[::-1]
    accepted = 1.0 - np.searchsorted(np.sort(impostor), thresholds, side="left") / len(impostor)
    rejected = np.searchsorted(np.sort(genuine), thresholds, side="left") / len(genuine)
    return np.concatenate([[0.0], accepted]), np.concatenate([[1.0], rejected])


def equal_error_rate(genuine: Floats, impostor: Floats) -> float:
    """Where false acceptance and false rejection cross, on straight lines between neighbouring points."""
    accepted, rejected = error_rates(genuine, impostor)
    after = int(np.argmax(accepted >= rejected))
    gap_before = rejected[after - 1] - accepted[after - 1]
    gap_after = accepted[after] - rejected[after]
    share = gap_before / (gap_before + gap_after)
    return float(accepted[after - 1] + share * (accepted[after] - accepted[after - 1]))


def zero_miss_rate(genuine: Floats, impostor: Floats) -> float:
    """False rejection at the strictest threshold that accepts no impostor (zero-miss false-alarm rate)."""
    accepted, rejected = error_rates(genuine, impostor)
    return float(rejected[accepted == 0.0].min())
