"""Claims whose truth is known, from which a calibration is learnt.

People who are not enrolled claim to be each other, as strangers would. Each person is enrolled with some
samples and tested with others. A person who claims to be another is a stranger: unknown to the cohort, in
which neither the claimed person nor the typist counts. Scores are taken after several numbers of keys as well
as at a sample's end, since what a score means depends on how much was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.sequential import increments, suspicion
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.detectors import Detector
from keydyn.detectors.templates import fit_templates
from keydyn.evaluation.protocols.running import sums_after
from keydyn.keystrokes.samples import Samples
from keydyn.parallel import Progress

# Numbers of keys after which scores are taken, as far as samples are longer.
LENGTHS = (10, 20, 40, 80, 160, 320, 640)
# A sample of less than this share of the median length is not whole.
SHORT = 0.75
# From this many samples on, the earlier half enrols and the later half asks; with fewer, each is left out in
# turn.
MANY = 8
# Queries of each person in each enrolment, evenly spread.
QUERIES = 10
# The most people who are asked, and the most who make up the cohort.
LARGEST_ASKED, LARGEST_COHORT = 300, 100
LEAST_PEOPLE = 10
MS_PER_HOUR = 3.6e6
# Log-likelihoods are tempered before they are compared: keys of one sample tell less than independent ones.
TEMPER = 0.5
# Scores of samples that no template explains at all, so that a score is always a number.
LOWEST, HIGHEST = -1e6, 1e6
# In a smaller cohort, a member who is enrolled could not be compared with anyone.
SMALLEST_COHORT = 2


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of claims after several numbers of keys."""

    lengths: Integers  # (G,) numbers of keys; the last stands for whole samples, and is their median length
    scores: Floats  # (n, G) open-set scores; NaN where the sample is shorter
    # (n,) numbers of people
    claimed: Integers
    typist: Integers
    # (N,) at each key of the genuine samples, one after the other (see `sequential`)
    suspicion: Floats = field(default_factory=lambda: np.zeros(0))
    # Where these samples begin
    offsets: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    hours: Floats = field(default_factory=lambda: np.zeros(0))  # (N,) hours of typing since then

    @property
    def genuine(self) -> Truths:
        """Which claims are true."""
        same: Truths = self.claimed == self.typist
        return same

    @property
    def n_people(self) -> int:
        """The number of people asked."""
        return len(np.unique(self.typist))


class Cohort(NamedTuple):
    """Templates that claims are compared with, and the number of each one's person, −1 if not asked."""

    templates: tuple[Detector, ...]
    people: Integers


@dataclass(frozen=True, eq=False)
class Typists:
    """People who are asked."""

    samples: Samples  # what they typed
    people: Integers  # (n,) the number of the person who typed each sample
    lengths: Integers  # (G,) the numbers of keys after which their samples are scored

    @classmethod
    def of(cls, samples: Samples) -> Typists:
        """The people of these samples; a `ValueError` if a calibration needs more of them."""
        people, users = pd.factorize(samples.users)
        several = int((np.bincount(people, minlength=len(users)) > 1).sum())
        if several < LEAST_PEOPLE:
            raise ValueError(
                f"a calibration needs {LEAST_PEOPLE} people or more with two samples or more each; "
                f"there {'is' if several == 1 else 'are'} {several}"
            )
        return cls(samples, people, lengths_for(samples))

    def some(self, most: int = LARGEST_ASKED) -> Integers:
        """The numbers of the people, or of some of very many, evenly spread."""
        return spread(np.unique(self.people), most)

    def names(self, people: Integers) -> tuple[str, ...]:
        """The names of the people with these numbers."""
        return tuple(str(self.samples.users[np.argmax(self.people == u)]) for u in people.tolist())


def lengths_for(samples: Samples) -> Integers:
    """The numbers of keys after which samples like these are scored."""
    whole = int(np.median(samples.sequences.lengths))
    return np.array([*(n for n in LENGTHS if n <= SHORT * whole), whole], dtype=np.int64)


def claims(
    pattern: Detector,
    typists: Typists,
    asked: Integers,
    cohort: Cohort,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Trials:
    """Let each person asked claim to be each of them; a person with a single sample, only the others.

    `pattern` is the detector, prepared on other people. `progress` is called with the number of people who
    were asked, over all enrolments.
    """
    samples, people = typists.samples, typists.people
    nobody = np.zeros(0, dtype=np.int64)
    parts = [Trials(typists.lengths, np.zeros((0, len(typists.lengths))), nobody, nobody)]
    done = 0
    for enrol, ask in _held_out(samples, people):
        enrolled = [int(u) for u in asked if (enrol & (people == u)).any()]
        if not enrolled:
            # All who are asked have a single sample.
            done += len(asked)
            continue
        templates = fit_templates(pattern, [samples[enrol & (people == u)] for u in enrolled], n_jobs)
        for typist in asked.tolist():
            chosen = spread(np.flatnonzero(ask & (people == typist)), QUERIES)
            done += 1
            if progress is not None:
                progress(done)
            if len(chosen) == 0:
                continue
            query = samples[chosen]
            events = type(pattern).score_events_many([*templates, *cohort.templates], query)
            # Which of the cohort count for each claim: neither the typist nor the person claimed.
            counts = (cohort.people != typist) & (cohort.people != np.array(enrolled)[:, None])
            scores = _scores_after(events, query, typists.lengths, counts)
            trials = Trials(
                typists.lengths, scores, np.tile(enrolled, len(query)), np.full(len(scores), typist)
            )
            if typist in enrolled:
                counted = np.flatnonzero(cohort.people != typist) + len(enrolled)
                own = events[:, [enrolled.index(typist), *counted.tolist()]]
                offsets = query.sequences.offsets
                level, hours = suspicion_of(own, offsets), hours_of(query)
                trials = replace(trials, suspicion=level, offsets=offsets, hours=hours)
            parts.append(trials)
    return together(parts)


def together(parts: Sequence[Trials]) -> Trials:
    """The trials of several runs of `claims`, with the same lengths."""
    names = ("scores", "claimed", "typist", "suspicion", "hours")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    keys = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(keys)]).astype(np.int64)
    return Trials(parts[0].lengths, offsets=offsets, **joined)


def suspicion_of(terms: Floats, offsets: Integers) -> Floats:
    """Page's sum at each key, from its terms under the claimed template, first column, and the cohort."""
    return suspicion(increments(np.clip(terms, LOWEST, HIGHEST), offsets), offsets)


def hours_of(samples: Samples) -> Floats:
    """(N,) hours of typing since each sample's first key."""
    intervals = np.nan_to_num(times_of(samples)[:, 0])
    total = np.cumsum(intervals)
    starts = samples.sequences.offsets[:-1]
    hours: Floats = (total - np.repeat(total[starts], samples.sequences.lengths)) / MS_PER_HOUR
    return hours


def _held_out(samples: Samples, people: Integers) -> Iterator[tuple[Truths, Truths]]:
    """Which samples enrol and which ask, in turn; a person with a single one only asks."""
    counts = np.bincount(people)[people]
    numbers, many = samples.numbers, counts >= MANY
    later = numbers >= (counts + 1) // 2
    few = counts[~many]
    for turn in range(max(int(few.max()) if len(few) else 1, 1)):
        ask = np.where(many, later & (turn == 0), numbers == turn)
        enrol = np.where(many, ~later, numbers != turn)
        yield enrol, ask


def spread(chosen: Integers, most: int) -> Integers:
    """At most this many of them, evenly spread from the first to the last."""
    if len(chosen) <= most:
        return chosen
    return chosen[np.linspace(0, len(chosen) - 1, most).round().astype(np.int64)]


def _scores_after(events: Floats, query: Samples, lengths: Integers, counts: Truths) -> Floats:
    """(n U, G) open-set scores of first keys, from `events` (N, U + C); `counts` (U, C) says who counts."""
    offsets, keys = query.sequences.offsets, query.sequences.lengths
    n, U = len(query), len(counts)
    scores = np.full((n, U, len(lengths)), np.nan)
    for g, length in enumerate(lengths.tolist()):
        whole = g == len(lengths) - 1
        sums = sums_after(events, offsets, None if whole else length)
        for u in range(U):
            own = open_set_scores(sums[:, [u]], sums[:, U:][:, counts[u]])[:, 0]
            scores[:, u, g] = np.where(keys >= (SHORT * length if whole else length), own, np.nan)
    return scores.reshape(n * U, len(lengths))


def open_set_scores(claimed: Floats, cohort: Floats, left_out: Truths | None = None) -> Floats:
    """(n, U) tempered log-likelihood under each claimed template, less the cohort's log-mean.

    `claimed` (n, U) and `cohort` (n, C) have the log-likelihoods of the same samples. `left_out` (n, C) says
    which of the cohort do not count for a sample; one must remain.
    """
    if cohort.shape[1] == 0:
        raise ValueError("there is nobody in the cohort")
    others = TEMPER * cohort if left_out is None else np.where(left_out, -np.inf, TEMPER * cohort)
    count = cohort.shape[1] if left_out is None else (~left_out).sum(axis=1)
    if np.any(count == 0):
        raise ValueError("everybody in the cohort is left out")
    largest = others.max(axis=1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(all="ignore"):
        total = np.log(np.exp(others - largest[:, None]).sum(axis=1)) + largest
        scores = TEMPER * claimed - (total - np.log(count))[:, None]
    # Neither the claimed person nor anyone in the cohort explains the sample: nothing speaks for the claim.
    scores[np.isnan(scores)] = LOWEST
    clipped: Floats = np.clip(scores, LOWEST, HIGHEST)
    return clipped
