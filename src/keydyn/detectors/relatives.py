"""Detectors that wrap the relatives of the POHMM, each with the closest equivalent of the published settings.

Two states, log-normal times, the density floor, the start values and the stopping rule are those of
`HMM.published()`. There is no smoothing, because there are no marginals to smooth towards. What each model
adds to the HMM comes from the preceding press-press interval, or from the key.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from keydyn.arrays import Floats
from keydyn.detectors.detector import Detector, register
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.timing import GROUPS, key_group
from keydyn.model import POHMM, ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model.data.vocabulary import Types

ACTIVE, PASSIVE = "active", "passive"
# Keys inside a word; the others begin, end or correct it, and people pause there.
ACTIVE_GROUPS = ("left_letter", "right_letter", "digit")
Relative = ContextHMM | PartlyHMM | PartiallyHMM


class RelativeDetector(Detector):
    """A relative of the POHMM fitted to all samples of a user; `model` replaces the detector's pattern."""

    scores_events: ClassVar[bool] = True

    def __init__(self, model: Relative | None = None) -> None:
        self.model = model

    def pattern(self, samples: Samples) -> Relative:
        """The unfitted model for samples with these features."""
        raise NotImplementedError

    def given(self, samples: Samples) -> dict[str, Any]:
        """Further arguments that the model takes with samples, besides their values."""
        return {}

    def fit(self, samples: Samples) -> Self:
        pattern = self.pattern(samples) if self.model is None else self.model
        parameters = pattern.get_params(deep=False) | {"emission": list(samples.emission)}
        self.model_ = type(pattern)(**parameters).fit(samples.sequences, **self.given(samples))
        return self

    @property
    def limited(self) -> bool:
        return self.model_.stop_reason_ == "max_iter"

    def score(self, samples: Samples) -> Floats:
        return self.model_.score_sequences(samples.sequences, **self.given(samples))

    def score_events(self, samples: Samples) -> Floats:
        return self.model_.score_samples(samples.sequences, **self.given(samples))


@register
class ContextDetector(RelativeDetector):
    """The context-HMM: thirds of the preceding interval select the emission and transition tables."""

    name: ClassVar[str] = "context-hmm"
    title: ClassVar[str] = "context-HMM"

    def pattern(self, samples: Samples) -> ContextHMM:
        return ContextHMM(context_feature=interval(samples), **published_settings(ContextHMM))


@register
class PartlyDetector(RelativeDetector):
    """The continuous partly-HMM: locations are linear in the preceding value, transitions are logits."""

    name: ClassVar[str] = "partly-hmm"
    title: ClassVar[str] = "partly-HMM"

    def pattern(self, samples: Samples) -> PartlyHMM:
        return PartlyHMM(previous_feature=interval(samples), **published_settings(PartlyHMM))


@register
class PartiallyDetector(RelativeDetector):
    """The partially-HMM: the key is an uncertain label of active or passive typing.

    It is taken as given which events have a label, so that models differ only in their likelihood of values
    and labels.
    """

    name: ClassVar[str] = "partially-hmm"
    title: ClassVar[str] = "partially-HMM"

    def pattern(self, samples: Samples) -> PartiallyHMM:
        settings = published_settings(PartiallyHMM)
        return PartiallyHMM(p_observed=None, state_labels=(ACTIVE, PASSIVE), **settings)

    def given(self, samples: Samples) -> dict[str, Any]:
        return {"labels": key_labels(samples)}


def published_settings(kind: type[Relative]) -> dict[str, Any]:
    """The published settings that a relative shares with the POHMM."""
    published, known = POHMM.published().get_params(deep=False), kind().get_params(deep=False)
    return {name: value for name, value in published.items() if name in known and name != "emission"}


def interval(samples: Samples) -> int:
    """The index of the press-press interval among the features; 0 if there is none."""
    names = samples.sequences.feature_names or ()
    return names.index("tau") if "tau" in names else 0


def key_labels(samples: Samples) -> Types:
    """Label each event: active for letters and digits, passive for other keys, None for unknown keys.

    Event types may also be groups of keys, or pairs of keys, in which the later key counts. Whole numbers,
    such as positions, have no label.
    """
    types = samples.sequences.event_types
    named = np.empty(len(types) + 1, dtype=object)
    for n, name in enumerate(types.tolist()):
        if isinstance(name, str):
            key = name.rsplit(" ", 1)[-1] or name
            group = key if key in GROUPS else key_group(key)
            named[n] = ACTIVE if group in ACTIVE_GROUPS else PASSIVE
    labels: Types = named[samples.sequences.codes]
    return labels
