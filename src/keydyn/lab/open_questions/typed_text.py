"""What people type as evidence, beside how they type it: P(x | Ω), P(Ω) and P(x, Ω) under one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.detectors import Detector, Population, make_detector
from keydyn.evaluation.continuous.rejection import continuous
from keydyn.evaluation.protocols.protocol import Protocol
from keydyn.evaluation.protocols.running import Enrolled, enrolments, ranks_of, scores_after
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples
from keydyn.model.ask.ngrams import NGrams

TIMES, TEXT, BOTH = "P(x | Ω)", "P(Ω)", "P(x, Ω)"
EVIDENCE = (TIMES, TEXT, BOTH)
# The model of a person's times, and the order of the model of their text: pairs, as in the event chain.
DETECTOR, ORDER = "pohmm", 2


class Typed(Detector):
    """A template of how a person types and of what they type, of which the score uses one or both."""

    name: ClassVar[str] = "typed"
    title: ClassVar[str] = "Times and text"
    scores_events: ClassVar[bool] = True

    def __init__(self, times: Detector | None = None, text: NGrams | None = None) -> None:
        self.times = times
        self.text = text

    def fit(self, samples: Samples) -> Self:
        return self

    def score(self, samples: Samples) -> Floats:
        scores: Floats = np.add.reduceat(self.score_events(samples), samples.sequences.offsets[:-1])
        return scores

    def score_events(self, samples: Samples) -> Floats:
        scores = np.zeros(samples.sequences.n_events)
        if self.times is not None:
            scores += self.times.score_events(samples)
        if self.text is not None:
            scores += self.text.log_probabilities(samples.sequences)
        return scores


def evidence(protocol: Protocol, samples: Samples, lengths: Sequence[int]) -> pd.DataFrame:
    """How well each evidence recognises people, by the first keys of a sample: one row per user.

    Columns: `evidence`; `keys`; `whole`, whether these are all keys of the longest samples; `user`; `acc`,
    `eer` and `eer_open` as in `recognition`; `rejection`, the mean over the user's samples of the maximum
    rejection time, for whole samples.
    """
    enrolled = enrolments(protocol, make_detector(DETECTOR), samples, n_jobs=1)
    texts = [_texts_of(one, samples) for one in enrolled]
    longest = samples.sequences.longest
    asked = sorted({*(n for n in lengths if n < longest), longest})
    frames = []
    for name in EVIDENCE:
        templates = [_using(name, one, text) for one, text in zip(enrolled, texts, strict=True)]
        watched = continuous(ranks_of(templates, samples, n_jobs=1), replicates=1).per_sample
        rejection = watched.groupby("user", sort=False)["rejection_time"].mean()
        for n, scores in zip(asked, scores_after(protocol, templates, samples, asked, n_jobs=1), strict=True):
            found = recognition(scores)[["acc", "eer", "eer_open"]].rename_axis("user").reset_index()
            times = found["user"].map(rejection) if n == longest else np.nan
            frames.append(found.assign(evidence=name, keys=n, whole=n == longest, rejection=times))
    return pd.concat(frames, ignore_index=True).astype({"user": str})


def _texts_of(one: Enrolled, samples: Samples) -> list[NGrams]:
    """What each enrolled user has typed for enrolment; all models know the keys of all samples."""
    training = samples[one.split.train]
    people: Any = training.users
    return [
        NGrams.learn(training[people == user].sequences, ORDER, samples.sequences.event_types)
        for user in one.population.users.tolist()
    ]


def _using(name: str, one: Enrolled, texts: list[NGrams]) -> Enrolled:
    """An enrolment whose templates score by this evidence."""
    templates: list[Detector] = [
        Typed(times if name != TEXT else None, text if name != TIMES else None)
        for times, text in zip(one.population.detectors, texts, strict=True)
    ]
    return replace(one, population=Population(one.population.users, templates))
