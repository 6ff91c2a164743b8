"""Contexts that get lost: which events lose theirs, and what each model then knows (docs/decisions/0023).

An event that loses its key name has no context. To the POHMM its event type is missing, to the partially-HMM
its label. The context-HMM and the partly-HMM have no key names; their context is the event before, which is
withheld from them if it lost its name. Times are never lost: all models score the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keydyn.arrays import Floats
from keydyn.detectors import Detector, make_detector
from keydyn.detectors.relatives import (
    ContextDetector,
    PartiallyDetector,
    PartlyDetector,
    interval,
    published_settings,
)
from keydyn.keystrokes.samples import Samples
from keydyn.model import ContextHMM, PartlyHMM, Sequences
from keydyn.model.data.sequences import as_sequences
from keydyn.model.data.vocabulary import MISSING, Types
from keydyn.model.relatives.contexts import Past, quantile_edges

Mask = NDArray[np.bool_]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS = 3
# The name of contexts of which nothing is known. It is a name, so that it can be new in scoring.
WITHHELD = "withheld"
UNSEEN = "unseen "


def lost_events(n_events: int, share: float, random: np.random.Generator) -> Mask:
    """A share of the events, chosen at random; a larger share includes every smaller one."""
    order = random.permutation(n_events)
    lost = np.zeros(n_events, dtype=bool)
    lost[order[: round(share * n_events)]] = True
    return lost


def lost_types(sequences: Sequences, share: float, random: np.random.Generator) -> Mask:
    """All events of some key names, chosen at random, as many as come nearest to this share."""
    counts = np.bincount(sequences.codes[sequences.codes != MISSING], minlength=len(sequences.event_types))
    order = random.permutation(len(counts))
    reached = np.concatenate([[0], np.cumsum(counts[order])]) / max(counts.sum(), 1)
    names = order[: int(np.argmin(np.abs(reached - share)))] if share < 1.0 else order
    return np.isin(sequences.codes, names)


def with_codes(samples: Samples, lost: Mask, unseen: bool = False) -> Samples:
    """Samples in which these events have lost their names, or have names that were never seen."""
    sequences = samples.sequences
    codes, types = np.where(lost, MISSING, sequences.codes), sequences.event_types
    if unseen:
        types = np.concatenate([types, [f"{UNSEEN}{name}" for name in types.tolist()]])
        codes = np.where(lost & (sequences.codes != MISSING), sequences.codes + len(types) // 2, codes)
    return replace(samples, sequences=replace(sequences, codes=codes, event_types=types))


def after_lost(sequences: Sequences) -> Mask:
    """Events that follow, in their sequence, one without a name."""
    after = np.zeros(sequences.n_events, dtype=bool)
    after[1:] = sequences.codes[:-1] == MISSING
    after[sequences.offsets[:-1]] = False
    return after


@dataclass(frozen=True)
class IntervalBefore:
    """The bin of the event before, `WITHHELD` where that has no name."""

    edges: tuple[float, ...]
    feature: int

    def __call__(self, past: Past) -> Types:
        bins = np.searchsorted(np.array(self.edges), past.values[:, -1, self.feature], side="left")
        names = np.array([f"bin {n}" for n in range(len(self.edges) + 1)], dtype=object)[bins]
        return np.where(_nameless(past), WITHHELD, names)


def key_before(past: Past) -> Types:
    """The key of the event before, `WITHHELD` where that has no name."""
    return np.where(_nameless(past), WITHHELD, past.events[:, -1])


def _nameless(past: Past) -> Mask:
    return np.asarray(past.events[:, -1] == None, dtype=bool)  # noqa: E711 (each of an array)


class WithholdingContext(ContextDetector):
    """The detector context-hmm, from which the event before is withheld if it has no name.

    It is the same detector while all events have names. In estimation, events after a nameless one have a
    table of their own; in scoring they use the pooled one if estimation had none.
    """

    def pattern(self, samples: Samples) -> ContextHMM:
        tau = interval(samples)
        X = samples.sequences.X
        context = IntervalBefore(quantile_edges(X[:, tau], np.ones(len(X)), BINS), tau)
        settings = published_settings(ContextHMM)
        return ContextHMM(emission_context=context, transition_context=context, **settings)


class KeyContext(ContextDetector):
    """A context-HMM whose contexts are the key before: the only key that it may look at."""

    name: ClassVar[str] = "context-hmm-key"
    title: ClassVar[str] = "context-HMM (key before)"

    def pattern(self, samples: Samples) -> ContextHMM:
        settings = published_settings(ContextHMM)
        return ContextHMM(emission_context=key_before, transition_context=key_before, **settings)


class WithholdingPartlyHMM(PartlyHMM):
    """A partly-HMM without the value before if its event has no name: its deviation is zero."""

    def _as_sequences(self, X: Any, events: Any, lengths: ArrayLike | None) -> Sequences:
        return as_sequences(X, events, lengths)

    def _past(self, sequences: Sequences) -> Past:
        past = super()._past(sequences)
        return replace(past, last=np.where(after_lost(sequences)[:, None], np.nan, past.last))


class WithholdingPartly(PartlyDetector):
    """The detector partly-hmm, the same while all events have names."""

    def pattern(self, samples: Samples) -> PartlyHMM:
        return WithholdingPartlyHMM(previous_feature=interval(samples), **published_settings(PartlyHMM))


@dataclass(frozen=True)
class Losing:
    """A model and what becomes of lost names in it.

    `loses` says whether losing names changes anything. `unseen` says how the model takes a name that
    estimation did not have: as "name" (a type of its own), as "missing" (no label), or "" (it has no names).
    """

    detector: Detector
    loses: bool
    unseen: str


def losing_models() -> list[Losing]:
    """The five models, and the context-HMM with the key before as its context."""
    return [
        Losing(make_detector("hmm"), False, ""),
        Losing(make_detector("pohmm"), True, "name"),
        Losing(WithholdingContext(), True, ""),
        Losing(KeyContext(), True, "name"),
        Losing(WithholdingPartly(), True, ""),
        Losing(PartiallyDetector(), True, "missing"),
    ]


def log_likelihoods(detector: Detector, samples: Samples) -> Floats:
    """ln P(x | contexts) of each sample; for the partially-HMM without the ln P of its labels."""
    scores = detector.score(samples)
    if isinstance(detector, PartiallyDetector):
        nothing = samples.sequences.with_values(np.full_like(samples.sequences.X, np.nan))
        alone: Floats = detector.score(replace(samples, sequences=nothing))
        return np.asarray(scores - alone)
    return scores
