"""The ways to watch a session that are compared: each with the settings among which it may choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.sequential import faded, increments, suspicion, wald_bounds
from keydyn.evaluation.continuous.penalty import ranks, window_penalty
from keydyn.evaluation.continuous.trust import HIGHEST, TrustSettings, trust
from keydyn.lab.verification.watch_comparison import Way

WINDOWS = (10, 25, 50)
TURNING = (0.5, 0.6, 0.7)
RATIO_KEEPS = (0.9, 0.95, 0.98)
KEEPS, LEASTS = (0.8, 0.9, 0.95), (-2.0, -3.0)
# Wald's test begins again where strangers would be accepted this often; its other bound is the limit sought.
FALSE_ACCEPTS = (0.1, 0.01)
_STEPS = [f"keep {keep:g}, least {least:g}" for keep in KEEPS for least in LEASTS]
# The variants of each way in words, in their order.
SETTINGS = {
    "rank penalty": [f"window {window}" for window in WINDOWS],
    "trust": [f"turning {turning:g}" for turning in TURNING],
    "ratio with forgetting": [f"keep {keep:g}" for keep in RATIO_KEEPS],
    "Wald's test": [f"{steps}, false accept {rate:g}" for steps in _STEPS for rate in FALSE_ACCEPTS],
    "Page's sum": _STEPS,
}


def ways_to_watch(
    terms: Floats, offsets: Integers, evidence: Callable[[Floats, Floats], Floats]
) -> dict[str, list[Way]]:
    """All of them, by their names, from the terms (N, 1 + C) of all sessions, the claimed person's first."""
    ranked = ranks(terms)
    return {
        "rank penalty": [fixed(window_penalty(ranked, offsets, window)[:, 0]) for window in WINDOWS],
        "trust": [
            fixed(HIGHEST - trust(ranked, offsets, TrustSettings(turning=turning))[:, 0])
            for turning in TURNING
        ],
        "ratio with forgetting": [fixed(-evidence(*faded(terms, offsets, keep))) for keep in RATIO_KEEPS],
        "Wald's test": [
            fixed(suspicion(steps, offsets, wald_bounds(rate, 1e-6).accept))
            for steps in _steps(terms, offsets)
            for rate in FALSE_ACCEPTS
        ],
        "Page's sum": [fixed(suspicion(steps, offsets)) for steps in _steps(terms, offsets)],
    }


def _steps(terms: Floats, offsets: Integers) -> Iterator[Floats]:
    for keep in KEEPS:
        for least in LEASTS:
            yield increments(terms, offsets, keep, least)


def fixed(levels: Floats) -> Way:
    """Nothing is learnt from the sessions but the limit."""

    def levels_whatever_is_learnt_from(_: Truths) -> Floats:
        return levels

    return levels_whatever_is_learnt_from
