"""Running a detector under a protocol: every template is fitted, then every query scored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats, Integers
from keydyn.detectors import Detector, Population, make_detector
from keydyn.detectors.templates import fit_templates
from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.protocols.protocol import Protocol, Split
from keydyn.evaluation.scores import Mask, Queries, Scores
from keydyn.keystrokes.samples import Samples
from keydyn.model.data.vocabulary import Types
from keydyn.parallel import Progress, counting_on
from keydyn.short_repr import short_repr

# A template is identified by the split whose samples set its scales (−1: all samples), its user, and a digest
# of the numbers of its training samples, which takes much less room than the numbers.
Key = tuple[int, int, bytes]
# The size of a batch, whose training samples are copied: leaving one out of n copies nearly all n times.
EVENTS_AT_A_TIME = 4_000_000


@dataclass(frozen=True, eq=False)
class FittedSplit:
    """A split with its templates fitted.

    Attributes
    ----------
    split : its samples; population : the templates of the enrolled users
    columns : (u,) the indices of these users among all users of the samples
    """

    split: Split
    population: Population
    columns: Integers

    __repr__ = short_repr


def score_protocol(
    protocol: Protocol,
    detector: str | Detector,
    samples: Samples,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score every query of every split against every template of that split.

    Users are in the order of first appearance. `progress` is called with the number of templates fitted.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, score_protocol
    >>> from keydyn.keystrokes import Samples
    >>> samples = Samples.of(make_typists(4, 6))
    >>> score_protocol(Enrolment(samples=4), "manhattan", samples).raw.shape  # queries, people
    (8, 4)
    """
    return scores_of(protocol, enrolments(protocol, detector, samples, n_jobs, progress), samples, n_jobs)


def n_templates(protocol: Protocol, detector: str | Detector, samples: Samples) -> int:
    """The number of templates to fit, for a progress bar."""
    keys = _keys(protocol, make_detector(detector), protocol.splits(samples), samples)
    return len({key for of_split in keys for key in of_split})


def enrolments(
    protocol: Protocol,
    detector: str | Detector,
    samples: Samples,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    events_at_a_time: int = EVENTS_AT_A_TIME,
) -> list[FittedSplit]:
    """Fit the templates of every split of the protocol; those that several splits share are fitted once.

    Templates are fitted in batches whose training samples have about `events_at_a_time` events.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, enrolments
    >>> from keydyn.keystrokes import Samples
    >>> samples, protocol = Samples.of(make_typists(4, 6)), Enrolment(samples=4)
    >>> enrolled = enrolments(protocol, "manhattan", samples)
    >>> len(enrolled), enrolled[0].population.users.tolist()
    (1, [0, 1, 2, 3])
    """
    pattern, splits = make_detector(detector), protocol.splits(samples)
    keys = _keys(protocol, pattern, splits, samples)
    templates: dict[Key, Detector] = {}
    for scaled_by in dict.fromkeys(key[0] for of_split in keys for key in of_split):
        everyone = samples if scaled_by < 0 else samples[splits[scaled_by].train]
        prepared = pattern.prepare(everyone)
        for batch in _batches(keys, splits, samples, scaled_by, events_at_a_time):
            groups = [samples[which] for which in batch.values()]
            with warnings.catch_warnings():
                # Published settings limit iterations, and some fits reach the limit; `n_limited` counts them.
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = fit_templates(prepared, groups, n_jobs, counting_on(progress, len(templates)))
            templates.update(zip(batch, fitted, strict=True))
    _, users = samples.people
    return [
        FittedSplit(
            split,
            Population(users[[user for _, user, _ in of_split]], [templates[key] for key in of_split]),
            np.array([user for _, user, _ in of_split], dtype=np.int64),
        )
        for split, of_split in zip(splits, keys, strict=True)
    ]


def n_limited(enrolled: list[FittedSplit]) -> int:
    """The number of templates whose fit stopped at its limit of iterations."""
    templates = {id(one): one for split in enrolled for one in split.population.detectors}
    return sum(one.limited for one in templates.values())


def scores_of(
    protocol: Protocol, enrolled: list[FittedSplit], samples: Samples, n_jobs: int | None = None
) -> Scores:
    """Score every query against every template of its split."""
    raw = [one.population.score(samples[one.split.query], n_jobs) for one in enrolled]
    return _scores(protocol, enrolled, samples, raw)


def ranks_of(enrolled: list[FittedSplit], samples: Samples, n_jobs: int | None = None) -> EventRanks:
    """Rank the templates of each split at every event of its queries.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, enrolments, ranks_of
    >>> from keydyn.keystrokes import Samples
    >>> samples, protocol = Samples.of(make_typists(4, 6)), Enrolment(samples=4)
    >>> enrolled = enrolments(protocol, "hmm", samples)
    >>> queries = ranks_of(enrolled, samples)
    >>> queries.ranks.shape  # events, people
    (88, 4)
    """
    return EventRanks.joined(
        [_event_ranks(fold, one, samples, n_jobs)[0] for fold, one in enumerate(enrolled)]
    )


def scores_and_ranks(
    protocol: Protocol, enrolled: list[FittedSplit], samples: Samples
) -> tuple[Scores, EventRanks]:
    """Score and rank in one pass, for detectors whose score is the sum of their events' scores."""
    ranks, raw = [], []
    for fold, one in enumerate(enrolled):
        ranked, events = _event_ranks(fold, one, samples)
        ranks.append(ranked)
        raw.append(sums_after(events, ranked.offsets))
    return _scores(protocol, enrolled, samples, raw), EventRanks.joined(ranks)


def scores_after(
    protocol: Protocol,
    enrolled: list[FittedSplit],
    samples: Samples,
    n_keys: Sequence[int],
    n_jobs: int | None = None,
) -> list[Scores]:
    """Score the first n events of every query, for each n of `n_keys`; shorter queries count in full.

    For detectors whose score is the sum of their events' scores, as in `scores_and_ranks`.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import Enrolment, enrolments, scores_after
    >>> from keydyn.keystrokes import Samples
    >>> samples, protocol = Samples.of(make_typists(4, 6)), Enrolment(samples=4)
    >>> enrolled = enrolments(protocol, "hmm", samples)
    >>> [scores.raw.shape for scores in scores_after(protocol, enrolled, samples, n_keys=[5, 10])]
    [(8, 4), (8, 4)]
    """
    raw: list[list[Floats]] = [[] for _ in n_keys]
    for one in enrolled:
        asked = samples[one.split.query]
        events, offsets = one.population.score_events(asked, n_jobs), asked.sequences.offsets
        for blocks, n in zip(raw, n_keys, strict=True):
            blocks.append(sums_after(events, offsets, n))
    return [_scores(protocol, enrolled, samples, blocks) for blocks in raw]


def sums_after(events: Floats, offsets: Integers, n: int | None = None) -> Floats:
    """Sums of each sample's first n event scores (N, U), or of all; shorter samples count in full."""
    if n is not None:
        place = np.arange(len(events)) - np.repeat(offsets[:-1], np.diff(offsets))
        events = np.where((place < n)[:, None], events, 0.0)
    return np.add.reduceat(events, offsets[:-1], axis=0)


def _scores(
    protocol: Protocol, enrolled: list[FittedSplit], samples: Samples, raw_of: list[Floats]
) -> Scores:
    """Join the raw scores of each split's queries against its templates."""
    _, users = samples.people
    blocks = []
    for fold, (one, split_scores) in enumerate(zip(enrolled, raw_of, strict=True)):
        query = one.split.query
        asked = samples[query]
        raw = np.full((len(asked), len(users)), np.nan)
        raw[:, one.columns] = split_scores
        trials = _trials(one, asked.users, users)
        sessions = asked.index.get_level_values("session").to_numpy()
        blocks.append((asked.users, sessions, np.full(len(asked), fold), raw, trials))
    owners, sessions, folds, raw, trials = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Scores(owners, sessions, folds, users, raw, trials, protocol.normalisation)


def _event_ranks(
    fold: int, one: FittedSplit, samples: Samples, n_jobs: int | None = None
) -> tuple[EventRanks, Floats]:
    """The ranks of a split, and the event scores (N, u) that they come from."""
    _, users = samples.people
    asked = samples[one.split.query]
    events = one.population.score_events(asked, n_jobs)
    scores = np.full((len(asked.sequences.X), len(users)), np.nan)
    scores[:, one.columns] = events
    sessions = asked.index.get_level_values("session").to_numpy()
    queries = Queries(asked.users, sessions, np.full(len(asked), fold, dtype=np.int64), users)
    offsets, trials = asked.sequences.offsets, _trials(one, asked.users, users)
    return EventRanks.of_scores(queries, offsets, scores, trials), events


def _trials(one: FittedSplit, owners: Types, users: Types) -> Mask:
    """A mask of a split's comparisons that are trials (Q, U): genuine or impostor, with a template."""
    split, query = one.split, one.split.query
    is_owner = owners[:, None] == users[None, :]
    trials = np.where(is_owner, split.genuine[query, None], split.impostor[query, None])
    trials[:, np.setdiff1d(np.arange(len(users)), one.columns)] = False
    return trials


def _keys(protocol: Protocol, pattern: Detector, splits: list[Split], samples: Samples) -> list[list[Key]]:
    """The templates of each split, in the order of users."""
    codes = samples.people[0]
    from_training = protocol.prepared_on == "training samples" or pattern.learns_people
    by_split = pattern.needs_everyone and from_training
    return [
        [
            (n if by_split else -1, user, blake2b(which.tobytes(), digest_size=16).digest())
            for user, which in _training(split, codes)
        ]
        for n, split in enumerate(splits)
    ]


def _training(split: Split, codes: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each enrolled user with the numbers of the samples that the user's template learns from."""
    train = np.flatnonzero(split.train)
    train = train[np.argsort(codes[train], kind="stable")]
    users, begins = np.unique(codes[train], return_index=True)
    yield from zip(users.tolist(), np.split(train, begins[1:]), strict=True)


def _batches(
    keys: list[list[Key]], splits: list[Split], samples: Samples, scaled_by: int, events_at_a_time: int
) -> Iterator[dict[Key, Integers]]:
    """Yield batches of the templates with this scaling, each once, with the samples that they learn from."""
    codes, lengths = samples.people[0], samples.sequences.lengths
    seen: set[Key] = set()
    batch: dict[Key, Integers] = {}
    events = 0
    for n in range(len(splits)) if scaled_by < 0 else [scaled_by]:
        for key, (_, which) in zip(keys[n], _training(splits[n], codes), strict=True):
            if key in seen:
                continue
            seen.add(key)
            batch[key] = which
            events += int(lengths[which].sum())
            if events >= events_at_a_time:
                yield batch
                batch, events = {}, 0
    if batch:
        yield batch
