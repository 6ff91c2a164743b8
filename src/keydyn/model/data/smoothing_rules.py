"""Parameter smoothing (Section 3.7): estimates that rest on few events lean on the marginals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Rule = str | float | None
PARTS = ("start", "transitions", "emission")


@dataclass(frozen=True)
class Smoothing:
    """How each kind of parameter is smoothed.

    Each of `start`, `transitions`, `emission` is "frequency" (the paper's weights), a fixed share between 0
    and 1 that the marginal gets, or None. `weights` says what becomes of the transition weights 1/(1 + …)
    when they add up to more than one: "proper" scales them to one, "published" lets the estimate's own
    weight be negative and clips the result at zero.
    """

    start: Rule = "frequency"
    transitions: Rule = "frequency"
    emission: Rule = "frequency"
    weights: str = "proper"

    @classmethod
    def of(cls, smoothing: Any, weights: str = "proper") -> Smoothing:
        """From the estimator's parameter: one rule for all, or a dict by kind."""
        if weights not in ("proper", "published"):
            raise ValueError(f"transition_weights must be 'proper' or 'published', not {weights!r}")
        if isinstance(smoothing, Mapping):
            unknown = set(smoothing) - set(PARTS)
            if unknown:
                raise ValueError(f"smoothing has no {sorted(unknown)}; its keys are {', '.join(PARTS)}")
            rules = {part: _rule(smoothing.get(part)) for part in PARTS}
        else:
            rules = dict.fromkeys(PARTS, _rule(smoothing))
        return cls(**rules, weights=weights)

    @property
    def published(self) -> bool:
        return self.weights == "published"

    @property
    def acts(self) -> bool:
        return any(rule is not None for rule in (self.start, self.transitions, self.emission))


def _rule(value: Any) -> Rule:
    if value is None or (isinstance(value, str) and value == "frequency"):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise ValueError(
            f"smoothing must be 'frequency', None, a share from 0 to 1, or a dict of these, not {value!r}"
        )
    return float(value) or None
