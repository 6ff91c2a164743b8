"""Claims whose truth is known, from which a calibration is learnt.

Each person is enrolled with some samples and tested with others, as themselves and as a stranger who claims
to be each of the other people. In the cohort neither the claimed person nor the typist counts, so that it
does not know the stranger. Scores are taken after several numbers of keys and at a sample's end, since the
meaning of a score depends on how much was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.calibration import HIGHEST, LOWEST, open_set_scores
from keydyn.decisions.calibration.sequential import ALLOWED, increments, suspicion
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.detectors.detector import Detector
from keydyn.detectors.templates import fit_templates
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

# Numbers of keys after which scores are taken, if samples are longer.
LENGTHS = (10, 20, 40, 80, 160, 320, 640)
# A sample shorter than this share of the median length does not count as whole.
SHORT = 0.75
# A person with this many samples or more is enrolled with the earlier half and tested with the later half;
# with fewer, each sample is left out and tested in turn.
MANY = 8
# The most samples of each person that are tested per enrolment, evenly spread.
QUERIES = 10
# The most people who are tested, and the most who make up the cohort.
LARGEST_ASKED, LARGEST_COHORT = 300, 100
# The most members of the cohort that a watched session is compared with, key by key.
WATCHED_BESIDE = 24
LEAST_PEOPLE = 10
# With fewer trials of either kind, nothing can be learnt about a number of keys.
LEAST_TRIALS = 20
# People who have typed less than this share of an amount are not enrolled with it.
NEARLY = 0.9
MS_PER_HOUR = 3.6e6
# Numbers of keys to enrol with for which scores are calibrated, if people have typed more.
AMOUNTS = (50, 200, 800)
# In a smaller cohort, a member who is enrolled could not be compared with anyone.
SMALLEST_COHORT = 2


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of claims after several numbers of keys."""

    lengths: Integers  # (G,) numbers of keys; the last stands for whole samples, and is their median length
    scores: Floats  # (n, G) open-set scores; NaN where the sample is shorter
    # (n,) the numbers of the people
    claimed: Integers
    typist: Integers
    # (N,) suspicion at each key of the genuine samples, concatenated (see `sequential`)
    suspicion: Floats = field(default_factory=lambda: np.zeros(0))
    # Where these samples begin
    offsets: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    hours: Floats = field(default_factory=lambda: np.zeros(0))  # (N,) since the beginning of the sample

    __repr__ = short_repr

    @property
    def genuine(self) -> Truths:
        """(n,) whether each claim is true."""
        same: Truths = self.claimed == self.typist
        return same

    @property
    def n_people(self) -> int:
        """The number of people tested."""
        return len(np.unique(self.typist))

    @property
    def enough(self) -> bool:
        """Whether a calibration can be learnt: enough trials of both kinds at some number of keys."""
        there = np.isfinite(self.scores)
        return bool(
            np.minimum(there[self.genuine].sum(axis=0), there[~self.genuine].sum(axis=0)).max()
            >= LEAST_TRIALS
        )


class Cohort(NamedTuple):
    """Templates that claims are compared with, and the numbers of their people, −1 for people not tested."""

    templates: tuple[Detector, ...]
    people: Integers


@dataclass(frozen=True, eq=False)
class Typists:
    """The people who are tested, with their samples."""

    samples: Samples  # what they typed
    people: Integers  # (n,) the number of the person who typed each sample
    lengths: Integers  # (G,) the numbers of keys after which their samples are scored

    @classmethod
    def of(cls, samples: Samples) -> Typists:
        """Take the people of these samples; a `ValueError` if they are too few for a calibration."""
        people, users = samples.people
        several = int((np.bincount(people, minlength=len(users)) > 1).sum())
        if several < LEAST_PEOPLE:
            raise ValueError(
                f"a calibration needs {LEAST_PEOPLE} people or more with two samples or more each; "
                f"there {'is' if several == 1 else 'are'} {several}"
            )
        return cls(samples, people, lengths_for(samples))

    def some(self, most: int = LARGEST_ASKED) -> Integers:
        """The numbers of the people, or of at most `most` of them, evenly spread."""
        return spread(np.unique(self.people), most)

    def amounts(self) -> dict[int, int | None]:
        """Numbers of keys to enrol with; None, under the median number, stands for all keys of a person."""
        enrolled = np.mean([enrol for enrol, _ in _held_out(self.samples, self.people)], axis=0)
        keys = np.bincount(self.people, enrolled * self.samples.sequences.lengths)
        median = int(np.median(keys[keys > 0]))
        return {**{n: n for n in AMOUNTS if n <= SHORT * median}, median: None}

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
    amount: int | None = None,
) -> Trials:
    """Score claims of each person in `asked` to be each of these people.

    A person with a single sample claims to be the others only. `pattern` is the detector, prepared on other
    people. With an `amount`, people are enrolled with this number of keys; those who have typed fewer are not
    enrolled, but their samples are tested.
    """
    samples, people = typists.samples, typists.people
    nobody = np.zeros(0, dtype=np.int64)
    parts = [Trials(typists.lengths, np.zeros((0, len(typists.lengths))), nobody, nobody)]
    least = NEARLY * (amount or 1)
    for enrol, ask in _held_out(samples, people):
        typed = np.bincount(people, enrol * samples.sequences.lengths)
        enrolled = [int(u) for u in asked if typed[u] >= least]
        if not enrolled:
            # All people tested have a single sample, or have typed too little.
            continue
        groups = [samples[enrol & (people == u)].first_keys(amount) for u in enrolled]
        templates = fit_templates(pattern, groups, n_jobs)
        for typist in asked.tolist():
            chosen = spread(np.flatnonzero(ask & (people == typist)), QUERIES)
            if len(chosen) == 0:
                continue
            query = samples[chosen]
            events = type(pattern).score_events_many([*templates, *cohort.templates], query)
            # In the cohort neither the typist nor the person claimed counts.
            counts = (cohort.people != typist) & (cohort.people != np.array(enrolled)[:, None])
            scores = _scores_after(events, query, typists.lengths, counts)
            trials = Trials(
                typists.lengths, scores, np.tile(enrolled, len(query)), np.full(len(scores), typist)
            )
            if typist in enrolled:
                counted = spread(np.flatnonzero(cohort.people != typist), WATCHED_BESIDE) + len(enrolled)
                own = events[:, [enrolled.index(typist), *counted.tolist()]]
                offsets = query.sequences.offsets
                level, hours = suspicion_of(own, offsets), hours_of(query)
                trials = replace(trials, suspicion=level, offsets=offsets, hours=hours)
            parts.append(trials)
    return together(parts)


def together(parts: Sequence[Trials]) -> Trials:
    """Join the trials of several runs of `claims` with the same lengths."""
    names = ("scores", "claimed", "typist", "suspicion", "hours")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    keys = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(keys)]).astype(np.int64)
    return Trials(parts[0].lengths, offsets=offsets, **joined)


def suspicion_of(terms: Floats, offsets: Integers) -> Floats:
    """Page's sum at each key, from terms under the claimed template (first column) and the cohort."""
    return suspicion(increments(np.clip(terms, LOWEST, HIGHEST), offsets), offsets, allowed=ALLOWED)


def hours_of(samples: Samples) -> Floats:
    """(N,) hours of typing since each sample's first key."""
    intervals = np.nan_to_num(times_of(samples)[:, 0])
    total = np.cumsum(intervals)
    starts = samples.sequences.offsets[:-1]
    hours: Floats = (total - np.repeat(total[starts], samples.sequences.lengths)) / MS_PER_HOUR
    return hours


def _held_out(samples: Samples, people: Integers) -> Iterator[tuple[Truths, Truths]]:
    """Yield masks of the samples to enrol with and to test; a person's only sample is always tested."""
    counts = np.bincount(people)[people]
    numbers, many = samples.numbers, counts >= MANY
    later = numbers >= (counts + 1) // 2
    few = counts[~many]
    for turn in range(max(int(few.max()) if len(few) else 1, 1)):
        ask = np.where(many, later & (turn == 0), numbers == turn)
        enrol = np.where(many, ~later, numbers != turn)
        yield enrol, ask


def spread(chosen: Integers, most: int) -> Integers:
    """At most `most` of the chosen numbers, evenly spread from the first to the last."""
    if len(chosen) <= most:
        return chosen
    return chosen[np.linspace(0, len(chosen) - 1, most).round().astype(np.int64)]


def _scores_after(events: Floats, query: Samples, lengths: Integers, counts: Truths) -> Floats:
    """(n U, G) open-set scores of first keys, from `events` (N, U + C); `counts` (U, C) masks the cohort."""
    from keydyn.evaluation.protocols.running import sums_after

    offsets, keys = query.sequences.offsets, query.sequences.lengths
    n, U = len(query), len(counts)
    scores = np.full((n, U, len(lengths)), np.nan)
    for g, length in enumerate(lengths.tolist()):
        whole = g == len(lengths) - 1
        sums = sums_after(events, offsets, None if whole else length)
        for u in range(U):
            after = keys if whole else np.full(n, length)
            own = open_set_scores(sums[:, [u]], sums[:, U:][:, counts[u]], after)[:, 0]
            scores[:, u, g] = np.where(keys >= (SHORT * length if whole else length), own, np.nan)
    return scores.reshape(n * U, len(lengths))
