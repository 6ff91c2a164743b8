"""The measurements of the population study, part by part.

Scores and ranks follow the paper's protocol; there are also scores of an open set. Everything else is in a
long table of accuracy and equal error rate, one row per user and setting:

- keystrokes: scores of the first N keys of each query
- enrolment: half of the people enrol with N samples; the population is learnt from the other half
- people: the same, with fewer people to learn from
- parts: the population model without one of its parts
- across: people of one dataset, with a population learnt from another
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Integers
from keydyn.detectors import Detector, PopulationDetector
from keydyn.detectors.templates import Population, fit_templates
from keydyn.evaluation.continuous.rejection import Continuous, continuous
from keydyn.evaluation.protocols.protocol import OpenSet, Split
from keydyn.evaluation.protocols.running import (
    FittedSplit,
    enrolments,
    scores_after,
    scores_and_ranks,
    scores_of,
)
from keydyn.evaluation.scores import Mask
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.names import OPEN
from keydyn.lab.frame.resuming import Found, Parts, Piece, frame_of, run_pieces
from keydyn.lab.frame.score_datasets import (
    detector_for,
    inputs_of,
    score_table,
    scored_and_ranked,
    together,
    user_figures,
    with_limited,
)
from keydyn.lab.frame.study_data import Row, stream
from keydyn.lab.population.changed_typing import typing_changes

Prepared = list[tuple[Detector, Mask]]
QUERIES = 50


def halves(samples: Samples) -> list[tuple[Mask, Mask]]:
    """Masks of the samples to learn from and to test: every other user, and vice versa."""
    odd: Mask = pd.factorize(samples.users)[0] % 2 == 1
    return [(odd, ~odd), (~odd, odd)]


def training_samples(row: Row) -> Mask:
    """A mask of the samples that train in any split of the row's protocol."""
    train: Mask = np.any([split.train for split in row.protocol.splits(row.samples)], axis=0)
    return train


def enrolments_with(prepared: Detector, row: Row, people: Mask, n: int | None = None) -> list[FittedSplit]:
    """Every split of the row's protocol with these people only, each enrolled with n training samples.

    `people` is a mask over the samples; without n, all training samples enrol. At most `QUERIES` queries per
    user are used, evenly spread.
    """
    samples = row.samples
    codes, users = pd.factorize(samples.users)
    splits, groups, who = [], [], []
    for split in row.protocol.splits(samples):
        train, asked = split.train & people, people & _some_queries(split.query, codes)
        if n is not None:
            train &= enrolment_order(split, samples) < n
        splits.append(Split(train, split.genuine & asked, split.impostor & asked))
        who.append(np.unique(codes[train]))
        groups += [samples[train & (codes == u)] for u in who[-1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # All templates are fitted at once, because short fits take less time together.
        templates = iter(fit_templates(prepared, groups))
    return [
        FittedSplit(split, Population(users[columns], [next(templates) for _ in columns]), columns)
        for split, columns in zip(splits, who, strict=True)
    ]


def _some_queries(query: Mask, codes: Integers) -> Mask:
    """At most `QUERIES` of each user's queries, evenly spread."""
    place = pd.Series(query).groupby(codes).cumsum().to_numpy() - 1
    n_queries = np.bincount(codes, query)[codes]
    step = np.maximum(1, np.ceil(n_queries / QUERIES)).astype(np.int64)
    some: Mask = query & (place % step == 0)
    return some


def enrolment_order(split: Split, samples: Samples) -> Integers:
    """The order in which each user's training samples enrol, (n,), beginning after the first query.

    The order is circular, so that in leave-one-out protocols all samples are used equally often.
    """
    number = samples.numbers
    first = int(number[split.query].min())
    place = (number - first) % (int(number.max()) + 1)
    # Samples that do not train come last.
    place[~split.train] = len(samples) + place[~split.train]
    order: Integers = pd.Series(place).groupby(samples.users).rank(method="first").to_numpy(np.int64) - 1
    return order


def newcomer_figures(prepared: Prepared, row: Row, n: int | None = None) -> pd.DataFrame:
    """A frame of user, acc and eer for everyone tested, with each detector's own people."""
    enrolled = [one for detector, people in prepared for one in enrolments_with(detector, row, people, n)]
    return user_figures(scores_of(row.protocol, enrolled, row.samples))


POPULATION = PopulationDetector.name
DETECTORS = ("pohmm", "pohmm-recommended", POPULATION)
KEYSTROKES, ENROLMENT, PEOPLE, PARTS, ACROSS = "keystrokes", "enrolment", "people", "parts", "across"
# The default datasets, without mobile with its sensors, which takes long and leaves little to gain.
DATASETS = ("password", "keypad", "mobile", "fable", "essay")
# The number of groups of users, each of which in turn is unknown to the system.
GROUPS = 5
N_KEYS = (5, 7, 10, 20, 50, 100, 200)
N_SAMPLES = (1, 2, 3, 5, 10, 20)
N_PEOPLE = (2, 5, 10, 20)
# The number of random draws of people to learn from, for each number of people.
DRAWS = 2
# The parts that can be removed from the population model, with the settings that do it.
WITHOUT: dict[str, dict[str, Any]] = {
    **{part: {"without": (part,)} for part in ("low rank", "scales", "slopes", "contexts", "tempo", "tails")},
    "states": {"hidden_states": False},
}
# Datasets between which a population can be transferred, with free or copied text on a keyboard.
TEXTS = ("fable", "essay")
COLUMNS = ("what", "dataset", "detector", "setting", "number", "draw", "user", "acc", "eer")


@dataclass(frozen=True)
class Extent:
    """The amount of work: detectors, numbers of people to learn from, draws, and parts to remove."""

    detectors: Sequence[str] = DETECTORS
    n_people: Sequence[int] = N_PEOPLE
    draws: int = DRAWS
    without: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: WITHOUT)


WHOLE = Extent()


@dataclass(frozen=True, eq=False)
class PopulationMeasured:
    """All measurements that the report is made from.

    Attributes
    ----------
    scores, ranks : tables as in `score_table` and `rank_table`; names of open sets end with `OPEN`
    users : a frame of `COLUMNS`; `number` counts keys, samples or people, `setting` names any other setting;
        for parts, there is also the rejection time, amrt
    changes : changes of each user's typing, in datasets whose queries are later than the training samples
    """

    scores: pa.Table
    ranks: pa.Table
    users: pd.DataFrame
    changes: pd.DataFrame


def run_population(
    rows: Sequence[Row], seed: int, parts: Parts, extent: Extent = WHOLE
) -> PopulationMeasured:
    """Run all measurements; parts that were made from the same inputs are reused."""
    compared = [(row, detector_for(row.name, name)) for row in rows for name in extent.detectors]
    closed = [closed_piece(row, detector) for row, detector in compared]
    opened = [open_piece(row, detector) for row, detector in compared]
    of_users = [
        *(enrolment_piece(row, detector) for row, detector in compared),
        *(people_piece(row, seed, extent) for row in rows),
        *(part_piece(row, part, changes) for row in rows for part, changes in extent.without.items()),
        *(across_piece(*pair) for pair in permutations([row for row in rows if row.name in TEXTS], 2)),
    ]
    made = run_pieces([*closed, *opened, *of_users], parts)
    scores = together({piece.names[0]: made[piece.names[0]] for piece in (*closed, *opened)})
    ranks = together({piece.names[1]: made[piece.names[1]] for piece in closed})
    users = pd.concat([frame_of(made, closed, 2), frame_of(made, of_users)], ignore_index=True)
    changes = [typing_changes(row.samples, row.protocol).assign(dataset=row.name) for row in rows]
    return PopulationMeasured(scores, ranks, users, pd.concat(changes, ignore_index=True))


def closed_piece(row: Row, detector: Detector) -> Piece:
    """A piece with scores and ranks under the paper's protocol, and the figures of the first N keys."""
    stem = f"{row.name}-{detector.name}"
    names = (f"{stem}-scores", f"{stem}-ranks", f"{stem}-{KEYSTROKES}")
    inputs = inputs_of(row, detector) | {"keys": N_KEYS}
    return Piece(
        names, inputs, [partial(_closed, row, detector)], f"{row.name} · {detector.title}", 3.0 * _events(row)
    )


def open_piece(row: Row, detector: Detector) -> Piece:
    """A piece with the scores of an open set."""
    name = f"{row.name}-{detector.name}-open"
    protocol = OpenSet(row.protocol, GROUPS)
    inputs = inputs_of(row, detector) | {"protocol": protocol.describe()}
    cost = _events(row) * (GROUPS if detector.learns_people else 2)
    call = partial(_open, row, protocol, detector)
    return Piece((name,), inputs, [call], f"{row.name} · {detector.title}, open set", cost)


def enrolment_piece(row: Row, detector: Detector) -> Piece:
    """A piece with the figures of newcomers by the number of samples they enrol with."""
    name = f"{row.name}-{detector.name}-{ENROLMENT}"
    inputs = inputs_of(row, detector) | {"samples": N_SAMPLES}
    what = f"{row.name} · {detector.title}, few samples"
    return Piece((name,), inputs, [partial(_enrolment, row, detector)], what, 2.0 * _events(row))


def people_piece(row: Row, seed: int, extent: Extent = WHOLE) -> Piece:
    """A piece with the figures of newcomers by the number of people the population is learnt from."""
    name = f"{row.name}-{PEOPLE}"
    detector = PopulationDetector()
    numbers = {"people": extent.n_people, "draws": extent.draws, "seed": seed}
    inputs = inputs_of(row, detector) | numbers
    call = partial(_people, row, detector, seed, extent)
    return Piece((name,), inputs, [call], f"{row.name} · few people to learn from", 4.0 * _events(row))


def part_piece(row: Row, part: str, changes: Mapping[str, Any]) -> Piece:
    """A piece with the figures of the population model without one of its parts, by the paper's protocol."""
    detector = PopulationDetector(**changes)
    name = f"{row.name}-without-{part.replace(' ', '-')}"
    call = partial(_part, row, part, detector)
    return Piece((name,), inputs_of(row, detector), [call], f"{row.name} · without {part}", _events(row))


def across_piece(learnt: Row, asked: Row) -> Piece:
    """A piece with the figures of one dataset's people, given the population of another."""
    name = f"{asked.name}-learnt-from-{learnt.name}"
    detector = PopulationDetector()
    inputs = inputs_of(asked, detector) | {"learnt from": [learnt.name, learnt.fingerprint]}
    call = partial(_across, learnt, asked, detector)
    return Piece((name,), inputs, [call], f"{asked.name} · learnt from {learnt.name}", _events(asked))


def _closed(row: Row, detector: Detector) -> tuple[Found, ...]:
    enrolled = enrolments(row.protocol, detector, row.samples)
    longest = int(row.samples.sequences.lengths.max())
    n_keys = [*(n for n in N_KEYS if n < longest), longest]
    first = scores_after(row.protocol, enrolled, row.samples, n_keys)
    frames = [
        _labelled(KEYSTROKES, row, detector, user_figures(of), number=n)
        for n, of in zip(n_keys, first, strict=True)
    ]
    return (*scored_and_ranked(row, detector, enrolled), pd.concat(frames, ignore_index=True))


def _open(row: Row, protocol: OpenSet, detector: Detector) -> Found:
    enrolled = enrolments(protocol, detector, row.samples)
    scores = scores_of(protocol, enrolled, row.samples)
    table = score_table(scores, row.name + OPEN, detector.name, protocol.name)
    return with_limited(table, enrolled)


def _enrolment(row: Row, detector: Detector) -> Found:
    train = training_samples(row)
    prepared = [
        (detector.prepare(row.samples[learnt & train]), asked) for learnt, asked in halves(row.samples)
    ]
    frames = [
        _labelled(ENROLMENT, row, detector, newcomer_figures(prepared, row, n), number=n)
        for n in _up_to_all(row, N_SAMPLES)
    ]
    return pd.concat(frames, ignore_index=True)


def _people(row: Row, detector: Detector, seed: int, extent: Extent) -> Found:
    samples, train, frames = row.samples, training_samples(row), []
    everyone = min(len(set(samples.users[learnt].tolist())) for learnt, _ in halves(samples))
    enrolled = _up_to_all(row, (1,))
    for n in [*(n for n in extent.n_people if n < everyone), everyone]:
        for draw in range(extent.draws if n < everyone else 1):
            prepared: Prepared = []
            for number, (learnt, asked) in enumerate(halves(samples)):
                random = stream(seed, "people", row.name, n, draw, number)
                drawn = random.choice(pd.unique(samples.users[learnt]), n, replace=False)
                known = learnt & train & np.isin(samples.users, drawn)
                prepared.append((detector.prepare(samples[known]), asked))
            for count in enrolled:
                figures = newcomer_figures(prepared, row, count)
                frames.append(
                    _labelled(PEOPLE, row, detector, figures, setting=str(count), number=n, draw=draw)
                )
    return pd.concat(frames, ignore_index=True)


def _part(row: Row, part: str, detector: Detector) -> Found:
    enrolled = enrolments(row.protocol, detector, row.samples)
    scores, ranks = scores_and_ranks(row.protocol, enrolled, row.samples)
    times = user_times(continuous(ranks, replicates=1))
    frame = _labelled(PARTS, row, detector, user_figures(scores), setting=part)
    return frame.assign(amrt=times.loc[frame["user"]].to_numpy())


def _across(learnt: Row, asked: Row, detector: Detector) -> Found:
    prepared = detector.prepare(learnt.samples)
    everyone = np.ones(len(asked.samples), dtype=bool)
    figures = newcomer_figures([(prepared, everyone)], asked)
    return _labelled(ACROSS, asked, detector, figures, setting=learnt.name)


def user_times(watched: Continuous) -> pd.Series[float]:
    """Each user's mean rejection time over samples, with users as text."""
    times = watched.per_sample.dropna(subset="rejection_time")
    return times.groupby(times["user"].astype(str), sort=False)["rejection_time"].mean()


def _up_to_all(row: Row, counts: Sequence[int]) -> list[int]:
    """The counts below the number of training samples, and that number itself."""
    splits, users = row.protocol.splits(row.samples), row.samples.users
    most = min(int(np.bincount(pd.factorize(users[split.train])[0]).min()) for split in splits)
    return [*(n for n in counts if n < most), most]


def _labelled(what: str, row: Row, detector: Detector, figures: pd.DataFrame, **more: Any) -> pd.DataFrame:
    """Figures of users with the remaining `COLUMNS`; `more` are the setting, the number and the draw."""
    labels: dict[str, Any] = {"what": what, "dataset": row.name, "detector": detector.name}
    labels |= {"setting": "", "number": np.nan, "draw": 0} | more
    return figures.assign(**labels).astype({"number": np.float64})[list(COLUMNS)]


def _events(row: Row) -> float:
    """The amount of data to learn from under the row's protocol; used for the progress bar only."""
    splits, lengths = row.protocol.splits(row.samples), row.samples.sequences.lengths
    return float(sum(int(lengths[split.train].sum()) for split in splits))
