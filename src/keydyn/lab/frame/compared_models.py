"""The models that the studies of fit compare, unfitted."""

from __future__ import annotations

from typing import Any

from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.model import HMM, POHMM

MODELS = ("hmm", "pohmm")
SETTINGS = ("published", "recommended")


def pattern(model: str, settings: str, **changes: Any) -> POHMM:
    """The HMM or POHMM of one feature with the published settings and density floor, or the recommended.

    `changes` replace individual parameters.
    """
    if model not in MODELS or settings not in SETTINGS:
        raise ValueError(
            f"there is no {settings!r} {model!r}: models are {', '.join(MODELS)}, "
            f"settings {', '.join(SETTINGS)}"
        )
    kind = HMM if model == "hmm" else POHMM
    if settings == "published":
        return kind.published(**changes)
    return kind(**(RecommendedPOHMM().pattern().get_params(deep=False) | changes))


def recorded_settings(model: str, settings: str) -> dict[str, str]:
    """The settings of a model as text, as run.json and saved parts record them."""
    return {key: repr(value) for key, value in pattern(model, settings).get_params(deep=False).items()}
