"""What the study of relatives measures, part by part: every score and rank, and what lost contexts cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.detectors import Detector, make_detector
from keydyn.evaluation.protocols.protocol import Protocol, Split
from keydyn.evaluation.protocols.running import Enrolled, enrolments, n_templates, scores_of
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.dataset_rows import Row
from keydyn.lab.frame.long_texts import stream
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces
from keydyn.lab.frame.score_datasets import inputs_of, scored_and_ranked, together
from keydyn.lab.relatives.lost_context import (
    SHARES,
    Losing,
    log_likelihoods,
    losing_models,
    lost_events,
    lost_types,
    with_codes,
)

DETECTORS = ("hmm", "pohmm", "context-hmm", "partly-hmm", "partially-hmm")
ESTIMATION, SCORING, UNSEEN = "estimation", "scoring", "unseen"
SITUATIONS = (ESTIMATION, SCORING, UNSEEN)
# Texts in which names get lost, and how many of the enrolments of each are used.
FOLDS = {"fable": 2, "essay": 1, SIMULATED: 2}
# How much longer than the POHMM's a fit takes; for the progress bar alone.
COSTS = {"hmm": 1.0, "pohmm": 1.0, "context-hmm": 3.0, "partly-hmm": 4.0, "partially-hmm": 3.0}


@dataclass(frozen=True)
class FirstFolds(Protocol):
    """Another protocol, of which only the first enrolments are used: less work, the same kind of figure."""

    inner: Protocol
    folds: int

    name: ClassVar[str] = "first-folds"
    title: ClassVar[str] = "First enrolments"

    def __post_init__(self) -> None:
        for name in ("impostors", "normalisation", "prepared_on", "least"):
            object.__setattr__(self, name, getattr(self.inner, name))

    @property
    def split(self) -> str:
        return f"{self.inner.split}; the first {self.folds} enrolments alone"

    def divided(self, samples: Samples) -> list[Split]:
        return self.inner.divided(samples)[: self.folds]


def run_relatives(rows: Sequence[Row], seed: int, parts: Parts) -> tuple[pa.Table, pa.Table, pd.DataFrame]:
    """Scores and ranks of the five models on every row, and the figures of lost contexts on texts.

    Parts that were made from the same inputs are read, not made again.
    """
    on_rows = [row_piece(row, make_detector(name)) for row in rows for name in DETECTORS]
    on_texts = [
        text_piece(row, model, seed) for row in rows if row.name in FOLDS for model in losing_models()
    ]
    made = run_pieces([*on_rows, *on_texts], parts)
    scores, ranks = (together({p.names[which]: made[p.names[which]] for p in on_rows}) for which in (0, 1))
    return scores, ranks, frame_of(made, on_texts)


def row_piece(row: Row, detector: Detector) -> Piece:
    """Scores and ranks of a detector on a row."""
    names = f"{row.name}-{detector.name}-scores", f"{row.name}-{detector.name}-ranks"
    events = len(row.samples.sequences.X)
    fitted = n_templates(row.protocol, detector, row.samples) * events / len(set(row.samples.users.tolist()))
    cost = fitted * COSTS[detector.name] + 0.02 * events * len(set(row.samples.users.tolist()))
    call = partial(row_tables, row, detector)
    return Piece(names, inputs_of(row, detector), [call], f"{row.name} · {detector.title}", cost)


def row_tables(row: Row, detector: Detector) -> tuple[pa.Table, pa.Table]:
    """Every score of a detector under the row's protocol, and the rank of every template at every event."""
    return scored_and_ranked(row, detector, enrolments(row.protocol, detector, row.samples))


def text_piece(row: Row, losing: Losing, seed: int) -> Piece:
    """What lost contexts cost a model on a text."""
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
    """dataset, detector, situation, share (asked for), lost (of all events), user and three figures."""
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


def loss_figures(protocol: Protocol, enrolled: list[Enrolled], samples: Samples) -> pd.DataFrame:
    """Accuracy, equal error rate and log-likelihood per event of their own samples, for each user."""
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
