"""The measurements of the study of relatives: every score and rank, and the cost of lost contexts.

An event that loses its key name has no context (docs/decisions/0023). For the POHMM its event type is
missing, for the partially-HMM its label. The context-HMM and the partly-HMM do not use key names; their
context is the previous event, which is withheld from them if it lost its name. Times are never lost, so that
all models score the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
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
from keydyn.evaluation.protocols.protocol import Protocol
from keydyn.evaluation.protocols.running import FittedSplit, enrolments, n_templates, scores_of
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces
from keydyn.lab.frame.score_datasets import inputs_of, scored_and_ranked, together
from keydyn.lab.frame.study_data import FirstFolds, Row, stream
from keydyn.model import ContextHMM, PartlyHMM, Sequences
from keydyn.model.data.sequences import as_sequences
from keydyn.model.data.vocabulary import MISSING, Types
from keydyn.model.relatives.contexts import Past, quantile_edges

Mask = NDArray[np.bool_]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS = 3
# The name of unknown contexts. It is a name so that it can be new in scoring.
WITHHELD = "withheld"
NEW_NAME = "unseen "


def lost_events(n_events: int, share: float, random: np.random.Generator) -> Mask:
    """A mask of a random share of the events; a larger share includes every smaller one."""
    order = random.permutation(n_events)
    lost = np.zeros(n_events, dtype=bool)
    lost[order[: round(share * n_events)]] = True
    return lost


def lost_types(sequences: Sequences, share: float, random: np.random.Generator) -> Mask:
    """A mask of all events of some random key names, which together come nearest to this share."""
    counts = np.bincount(sequences.codes[sequences.codes != MISSING], minlength=len(sequences.event_types))
    order = random.permutation(len(counts))
    reached = np.concatenate([[0], np.cumsum(counts[order])]) / max(counts.sum(), 1)
    names = order[: int(np.argmin(np.abs(reached - share)))] if share < 1.0 else order
    return np.isin(sequences.codes, names)


def with_codes(samples: Samples, lost: Mask, unseen: bool = False) -> Samples:
    """Samples in which the lost events have no names, or names that were never seen."""
    sequences = samples.sequences
    codes, types = np.where(lost, MISSING, sequences.codes), sequences.event_types
    if unseen:
        types = np.concatenate([types, [f"{NEW_NAME}{name}" for name in types.tolist()]])
        codes = np.where(lost & (sequences.codes != MISSING), sequences.codes + len(types) // 2, codes)
    return replace(samples, sequences=replace(sequences, codes=codes, event_types=types))


def after_lost(sequences: Sequences) -> Mask:
    """A mask of events whose previous event in the sequence has no name."""
    after = np.zeros(sequences.n_events, dtype=bool)
    after[1:] = sequences.codes[:-1] == MISSING
    after[sequences.offsets[:-1]] = False
    return after


@dataclass(frozen=True)
class IntervalBefore:
    """The bin of the previous event's interval, or `WITHHELD` if that event has no name."""

    edges: tuple[float, ...]
    feature: int

    def __call__(self, past: Past) -> Types:
        bins = np.searchsorted(np.array(self.edges), past.values[:, -1, self.feature], side="left")
        names = np.array([f"bin {n}" for n in range(len(self.edges) + 1)], dtype=object)[bins]
        return np.where(_nameless(past), WITHHELD, names)


def key_before(past: Past) -> Types:
    """The key of the previous event, or `WITHHELD` if that event has no name."""
    return np.where(_nameless(past), WITHHELD, past.events[:, -1])


def _nameless(past: Past) -> Mask:
    return np.asarray(past.events[:, -1] == None, dtype=bool)  # noqa: E711 (each of an array)


class WithholdingContext(ContextDetector):
    """The detector context-hmm, without access to the previous event if that has no name.

    As long as all events have names, it is the same detector. In estimation, events after a nameless one have
    a table of their own; in scoring, they use the pooled table if estimation had none.
    """

    def pattern(self, samples: Samples) -> ContextHMM:
        tau = interval(samples)
        X = samples.sequences.X
        context = IntervalBefore(quantile_edges(X[:, tau], np.ones(len(X)), BINS), tau)
        settings = published_settings(ContextHMM)
        return ContextHMM(emission_context=context, transition_context=context, **settings)


class KeyContext(ContextDetector):
    """A context-HMM whose context is the previous key, the only key it uses."""

    name: ClassVar[str] = "context-hmm-key"
    title: ClassVar[str] = "context-HMM (key before)"

    def pattern(self, samples: Samples) -> ContextHMM:
        settings = published_settings(ContextHMM)
        return ContextHMM(emission_context=key_before, transition_context=key_before, **settings)


class WithholdingPartlyHMM(PartlyHMM):
    """A partly-HMM without the previous value if its event has no name: its deviation is then zero."""

    def _as_sequences(self, X: Any, events: Any, lengths: ArrayLike | None) -> Sequences:
        return as_sequences(X, events, lengths)

    def _past(self, sequences: Sequences) -> Past:
        past = super()._past(sequences)
        return replace(past, last=np.where(after_lost(sequences)[:, None], np.nan, past.last))


class WithholdingPartly(PartlyDetector):
    """The detector partly-hmm, unchanged as long as all events have names."""

    def pattern(self, samples: Samples) -> PartlyHMM:
        return WithholdingPartlyHMM(previous_feature=interval(samples), **published_settings(PartlyHMM))


@dataclass(frozen=True)
class Losing:
    """A model with its treatment of lost names.

    `loses` says whether losing names changes anything. `unseen` is the treatment of a name that did not occur
    in estimation: "name" (a type of its own), "missing" (no label), or "" (the model uses no names).
    """

    detector: Detector
    loses: bool
    unseen: str


def losing_models() -> list[Losing]:
    """The five models, and the context-HMM with the previous key as its context."""
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


DETECTORS = ("hmm", "pohmm", "context-hmm", "partly-hmm", "partially-hmm")
ESTIMATION, SCORING, UNSEEN = "estimation", "scoring", "unseen"
SITUATIONS = (ESTIMATION, SCORING, UNSEEN)
# Texts in which names are removed, and the number of enrolments used of each.
FOLDS = {"fable": 2, "essay": 1, SIMULATED: 2}
# The duration of a fit relative to the POHMM's; used for the progress bar only.
COSTS = {"hmm": 1.0, "pohmm": 1.0, "context-hmm": 3.0, "partly-hmm": 4.0, "partially-hmm": 3.0}


def run_relatives(rows: Sequence[Row], seed: int, parts: Parts) -> tuple[pa.Table, pa.Table, pd.DataFrame]:
    """Scores and ranks of the five models on every row, and their figures on texts with lost contexts.

    Parts that were made from the same inputs are reused.
    """
    on_rows = [row_piece(row, make_detector(name)) for row in rows for name in DETECTORS]
    on_texts = [
        text_piece(row, model, seed) for row in rows if row.name in FOLDS for model in losing_models()
    ]
    made = run_pieces([*on_rows, *on_texts], parts)
    scores, ranks = (together({p.names[which]: made[p.names[which]] for p in on_rows}) for which in (0, 1))
    return scores, ranks, frame_of(made, on_texts)


def row_piece(row: Row, detector: Detector) -> Piece:
    """A piece with the scores and ranks of a detector on a row."""
    names = f"{row.name}-{detector.name}-scores", f"{row.name}-{detector.name}-ranks"
    events = len(row.samples.sequences.X)
    fitted = n_templates(row.protocol, detector, row.samples) * events / len(set(row.samples.users.tolist()))
    cost = fitted * COSTS[detector.name] + 0.02 * events * len(set(row.samples.users.tolist()))
    call = partial(row_tables, row, detector)
    return Piece(names, inputs_of(row, detector), [call], f"{row.name} · {detector.title}", cost)


def row_tables(row: Row, detector: Detector) -> tuple[pa.Table, pa.Table]:
    """All scores of a detector under the row's protocol, and the rank of every template at every event."""
    return scored_and_ranked(row, detector, enrolments(row.protocol, detector, row.samples))


def text_piece(row: Row, losing: Losing, seed: int) -> Piece:
    """A piece with the cost of lost contexts for a model on a text."""
    protocol = FirstFolds(row.protocol, FOLDS[row.name])
    detector = losing.detector
    n_fits = 1 + (len(SHARES) - 1) * (losing.loses + bool(losing.unseen))
    events = len(row.samples.sequences.X) * FOLDS[row.name] * n_fits
    inputs = inputs_of(row, detector) | {
        "lost": {"seed": seed, "shares": SHARES, "unseen": losing.unseen},
        "protocol": protocol.describe(),
    }
    name = f"{row.name}-{detector.name}-lost"
    call = partial(losses, row, losing, seed)
    return Piece((name,), inputs, [call], f"{row.name} · {detector.title}, contexts lost", 4.0 * events)


def losses(row: Row, losing: Losing, seed: int) -> pd.DataFrame:
    """A frame of dataset, detector, situation, share (requested), lost (of all events), user and figures."""
    samples, protocol = row.samples, FirstFolds(row.protocol, FOLDS[row.name])
    enrolled = enrolments(protocol, losing.detector, samples)
    whole = loss_figures(protocol, enrolled, samples)
    frames = []
    for situation in SITUATIONS:
        for share in SHARES:
            random = stream(seed, "lost names", row.name, situation == UNSEEN)
            if situation == UNSEEN:
                lost = lost_types(samples.sequences, share, random)
            else:
                lost = lost_events(samples.sequences.n_events, share, random)
            figures = whole
            touched = losing.unseen != "" if situation == UNSEEN else losing.loses
            if share > 0 and touched:
                learnt, asked = enrolled, samples
                if situation != SCORING:
                    learnt = enrolments(protocol, losing.detector, with_codes(samples, lost))
                if situation != ESTIMATION:
                    asked = with_codes(samples, lost, situation == UNSEEN and losing.unseen == "name")
                figures = loss_figures(protocol, learnt, asked)
            labels = {"dataset": row.name, "detector": losing.detector.name, "situation": situation}
            frames.append(figures.assign(**labels, share=share, lost=float(lost.mean()), touched=touched))
    return pd.concat(frames, ignore_index=True)


def loss_figures(protocol: Protocol, enrolled: list[FittedSplit], samples: Samples) -> pd.DataFrame:
    """Accuracy, equal error rate and log-likelihood per event of own samples, by user."""
    users = recognition(scores_of(protocol, enrolled, samples))[["acc", "eer"]]
    likelihood: dict[Any, list[float]] = {}
    for one in enrolled:
        asked = samples[one.split.query]
        for user, detector in zip(one.population.users.tolist(), one.population.detectors, strict=True):
            own_samples = asked[asked.users == user]
            events = own_samples.sequences.lengths
            likelihood.setdefault(user, []).append(
                float(log_likelihoods(detector, own_samples).sum() / events.sum())
            )
    means = pd.Series({user: float(np.mean(values)) for user, values in likelihood.items()})
    table = users.assign(log_likelihood=means)
    return table.rename_axis("user").reset_index().astype({"user": str})
