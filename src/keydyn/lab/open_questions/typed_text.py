"""The text that people type as evidence, in addition to its timing: P(x | Ω), P(Ω) and P(x, Ω).

Also finds samples of the same text, and removes typing errors from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from keydyn.arrays import Floats, Integers, Truths
from keydyn.detectors import Detector, Population, make_detector
from keydyn.evaluation.continuous.rejection import continuous
from keydyn.evaluation.protocols.protocol import Protocol
from keydyn.evaluation.protocols.running import FittedSplit, enrolments, ranks_of, scores_after
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples
from keydyn.model import Sequences
from keydyn.model.ask.ngrams import NGrams

TIMES, TEXT, BOTH = "P(x | Ω)", "P(Ω)", "P(x, Ω)"
EVIDENCE = (TIMES, TEXT, BOTH)
# The model of a person's times, and the order of the model of their text (pairs, as in the event chain).
DETECTOR, ORDER = "pohmm", 2


class TimesAndText(Detector):
    """A template of a person's timing and text; the score uses one of them or both."""

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
    """The recognition by each kind of evidence and number of first keys: one row per user.

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


def _texts_of(one: FittedSplit, samples: Samples) -> list[NGrams]:
    """A model of the text typed by each enrolled user; all models know the keys of all samples."""
    training = samples[one.split.train]
    people: Any = training.users
    return [
        NGrams.learn(training[people == user].sequences, ORDER, samples.sequences.event_types)
        for user in one.population.users.tolist()
    ]


def _using(name: str, one: FittedSplit, texts: list[NGrams]) -> FittedSplit:
    """An enrolment whose templates score by this kind of evidence."""
    templates: list[Detector] = [
        TimesAndText(times if name != TEXT else None, text if name != TIMES else None)
        for times, text in zip(one.population.detectors, texts, strict=True)
    ]
    return replace(one, population=Population(one.population.users, templates))


# The length of the runs of keys compared, and the share of the shorter sample's runs that two samples of the
# same text have in common.
RUN, SHARED = 4, 0.5
# Runs of up to this many keys may agree by accident.
ACCIDENT = 2
# The least number of people who share all their texts in a group.
LEAST = 5
ERASER = "backspace"
# Keys that add to the text, apart from single letters, digits and signs.
PRINTING = ("space", "comma", "period", "quote", "semicolon", "slash", "dash", "enter")


def kept_keys(sequences: Sequences) -> Truths:
    """A mask (N,) of the keys that add to the text and are not erased later.

    A backspace erases the last remaining key; in an empty text it does nothing.
    """
    names = sequences.event_types.astype(str)
    prints = np.array([len(name) == 1 or name in PRINTING for name in names.tolist()], dtype=bool)
    written, erased = prints[sequences.codes], (names == ERASER)[sequences.codes]
    steps = written.astype(np.int64) - erased
    kept = np.zeros(len(steps), dtype=bool)
    for first, end in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True):
        level = np.cumsum(steps[first:end])
        # The level never falls below zero, since erasing in an empty text has no effect.
        level = level - np.minimum(np.minimum.accumulate(level), 0)
        least_later = np.minimum.accumulate(level[::-1])[::-1]
        kept[first:end] = written[first:end] & (least_later >= level)
    return kept


def with_keys(samples: Samples, kept: Truths) -> Samples:
    """The samples reduced to the keys in a mask (N,), each with its times."""
    sequences = samples.sequences
    counts = np.add.reduceat(kept.astype(np.int64), sequences.offsets[:-1])
    if (counts == 0).any():
        user, session = samples.names[int(np.argmin(counts))]
        raise ValueError(f"user {user}, session {session}: nothing is left of the sample")
    offsets = np.concatenate([[0], np.cumsum(counts)])
    parts = sequences.X[kept], sequences.codes[kept], sequences.event_types, offsets
    left = Sequences.of_checked(*parts, sequences.feature_names, sequences.names)
    return Samples(samples.names, left, samples.emission)


def shared_runs(samples: Samples) -> Integers:
    """The number (n, n) of distinct runs of four keys that two samples share, after undoing errors."""
    text = with_keys(samples, kept_keys(samples.sequences)).sequences
    last = np.repeat(text.offsets[1:], text.lengths)
    begins = np.flatnonzero(np.arange(text.n_events) + RUN <= last)
    runs = np.zeros(len(begins), dtype=np.int64)
    for k in range(RUN):
        runs = runs * len(text.event_types) + text.codes[begins + k]
    sample = np.repeat(np.arange(len(text)), text.lengths)[begins]
    distinct, column = np.unique(runs, return_inverse=True)
    pairs = np.unique(np.stack([sample, column]), axis=1)
    there = csr_array((np.ones(pairs.shape[1], dtype=np.int64), pairs), shape=(len(text), len(distinct)))
    common: Integers = (there @ there.T).toarray()
    return common


def passages(samples: Samples) -> Integers:
    """The number of each sample's text, (n,); samples of the same text have the same number.

    Two samples are of the same text if they share half of the runs of the shorter one, or if a chain of such
    samples connects them.
    """
    common = shared_runs(samples)
    runs = np.diag(common)
    same = (common > 0) & (common >= SHARED * np.minimum(runs[:, None], runs[None, :]))
    number: Integers = connected_components(csr_array(same.astype(np.int64)), directed=False)[1].astype(
        np.int64
    )
    return number


def groups_of_same_texts(samples: Samples) -> list[Samples]:
    """Groups of people who typed the same texts; the n-th samples in a group are of the same text.

    Only texts typed by at least two people count.
    """
    number, (person, _) = passages(samples), samples.people
    typists = np.bincount(np.unique(np.stack([number, person]), axis=1)[0])
    groups: dict[tuple[int, ...], list[int]] = {}
    for u in range(int(person.max()) + 1):
        own = np.flatnonzero(person == u)
        own = own[np.argsort(number[own], kind="stable")]
        if (typists[number[own]] > 1).all():
            groups.setdefault(tuple(number[own].tolist()), []).extend(own.tolist())
    found = [samples[np.array(members)] for members in groups.values()]
    return [one for one in found if len(one.people[1]) >= LEAST]


def of_common_text(samples: Samples) -> Samples:
    """The samples as if everyone had typed the common text, from where a sample joins it to where it leaves.

    The common text is that of the sample that shares most with the others of its passage. Slips and additions
    are left out; keys that were omitted in typing have missing times.
    """
    number, common = passages(samples), shared_runs(samples)
    text = with_keys(samples, kept_keys(samples.sequences)).sequences
    values, codes = [], []
    for s in range(len(samples)):
        members = np.flatnonzero(number == number[s])
        model = members[int(np.argmax(common[np.ix_(members, members)].sum(axis=0)))]
        right, own = text[int(model)], text[s]
        matcher = SequenceMatcher(None, right.codes.tolist(), own.codes.tolist(), autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size > ACCIDENT]
        if not blocks:
            user, session = samples.names[s]
            raise ValueError(f"user {user}, session {session}: the sample has nothing of the common text")
        X = np.full((right.n_events, right.n_features), np.nan)
        for block in blocks:
            X[block.a : block.a + block.size] = own.X[block.b : block.b + block.size]
        stretch = slice(blocks[0].a, blocks[-1].a + blocks[-1].size)
        values.append(X[stretch])
        codes.append(right.codes[stretch])
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in codes])])
    parts = np.concatenate(values), np.concatenate(codes), text.event_types, offsets
    return Samples(
        samples.names, Sequences.of_checked(*parts, text.feature_names, text.names), samples.emission
    )
