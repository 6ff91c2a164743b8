"""Measures decisions on claims of strangers and of enrolled people in the verification study.

People are divided into five folds. For every pair of folds, the population, the cohort and the calibration
are learnt from the people of the other three, themselves divided into folds. Ten people of one fold of the
pair are enrolled and those of the other are strangers, and vice versa. Nothing is learnt from anyone who
types or is claimed, and the strangers are entirely unknown. The operating point is the default one, fixed in
advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.calibration.trials import lengths_for, spread
from keydyn.decisions.decision import Targets
from keydyn.decisions.verifier import Verifier
from keydyn.detectors import PopulationDetector
from keydyn.detectors.templates import fit_templates
from keydyn.evaluation.protocols.running import sums_after
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study_data import Row, stream

FOLDS = 5
# Number of people enrolled at a time.
ENROLLED = 10
# Evenly spread: samples per person that the background learns from, enrolments, and queries per person.
BACKGROUND, SPLITS, QUERIES = 40, 4, 10
# Samples to enrol with: all training samples of the protocol, or a single one.
ALL, ONE = "all", "one"
WHOLE = 0
TARGETS = (0.001, 0.01, 0.05, 0.1)


@dataclass(frozen=True, eq=False)
class Setting:
    """A background, the people enrolled and the strangers; people are given by their numbers."""

    background: Background
    enrolled: Integers
    strangers: Integers


def folds_of(row: Row, seed: int) -> tuple[Integers, Integers]:
    """The person's number for each sample, and the fold of each person."""
    people, users = pd.factorize(row.samples.users)
    return people, stream(seed, "strangers", row.name).permutation(len(users)) % FOLDS


def pairs() -> list[tuple[int, int]]:
    """All pairs of folds."""
    return list(combinations(range(FOLDS), 2))


def background_of(row: Row, seed: int, held_out: Sequence[int]) -> Background:
    """The background learnt from the people outside these folds."""
    people, folds = folds_of(row, seed)
    return Background.learnt(
        PopulationDetector(), row.samples[background_samples(row, people, folds, held_out)]
    )


def background_samples(row: Row, people: Integers, folds: Integers, held_out: Sequence[int]) -> Integers:
    """Some samples of each person outside these folds, among those that the protocol uses."""
    used = np.any([split.train | split.query for split in row.protocol.splits(row.samples)], axis=0)
    others = used & ~np.isin(folds[people], held_out)
    return _spread(np.flatnonzero(others), people, BACKGROUND)


def strangers_piece(row: Row, pair: tuple[int, int], seed: int) -> Piece:
    """A piece with the claims and identifications made while the people of two folds are held out."""
    stem = f"{row.name}-strangers-{pair[0]}{pair[1]}"
    names = (f"{stem}-claims", f"{stem}-identified")
    inputs = inputs_of(row, PopulationDetector()) | {
        "seed": seed,
        "people": [FOLDS, ENROLLED, pair],
        "samples of each": [BACKGROUND, SPLITS, QUERIES],
    }
    cost = float(min(row.samples.sequences.n_events, BACKGROUND * 51 * row.samples.sequences.lengths.mean()))
    what = f"{row.name} · strangers {pair[0] + 1} and {pair[1] + 1}"
    return Piece(names, inputs, [partial(_strangers, row, pair, seed)], what, cost)


def _strangers(row: Row, pair: tuple[int, int], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    background = background_of(row, seed, pair)
    people, folds = folds_of(row, seed)
    claims, identified = [], []
    for own, other in (pair, pair[::-1]):
        # In a large fold, different people are enrolled for different strangers.
        enrolled = np.sort(np.roll(np.flatnonzero(folds == own), other)[:ENROLLED])
        setting = Setting(background, enrolled, np.flatnonzero(folds == other))
        for number, (train, ask) in enumerate(_asked(row, people, setting)):
            claims += [
                frame.assign(split=number, pair=f"{own}{other}")
                for frame in _claims(row, people, setting, train, ask)
            ]
            identified.append(_identified(row, people, setting, train, ask))
    return pd.concat(claims, ignore_index=True), pd.concat(identified, ignore_index=True)


def _asked(row: Row, people: Integers, setting: Setting) -> Iterator[tuple[Truths, Integers]]:
    """Some splits of the protocol: a mask of the samples that enrol, and the numbers of the queries."""
    splits = row.protocol.splits(row.samples)
    for n in np.unique(np.linspace(0, len(splits) - 1, SPLITS).round().astype(np.int64)).tolist():
        split = splits[n]
        own = split.genuine & np.isin(people, setting.enrolled)
        strange = split.impostor & np.isin(people, setting.strangers)
        yield split.train, _spread(np.flatnonzero(own | strange), people, QUERIES)


def _claims(
    row: Row, people: Integers, setting: Setting, train: Truths, ask: Integers
) -> Iterator[pd.DataFrame]:
    """The claims of the queries: the typist's own name or, for strangers, that of each enrolled person."""
    samples, background = row.samples, setting.background
    query, lengths = samples[ask], lengths_for(samples)
    for with_samples, n in ((ALL, None), (ONE, 1)):
        groups = [samples[np.flatnonzero(train & (people == u))[:n]] for u in setting.enrolled]
        templates = fit_templates(background.pattern, groups)
        events = type(background.pattern).score_events_many([*templates, *background.others], query)
        for length in (*lengths[:-1].tolist(), WHOLE) if n is None else (WHOLE,):
            raw, keys = _after(events, query, length)
            scores = open_set_scores(raw[:, : len(templates)], raw[:, len(templates) :], keys)
            amount = int(np.median([group.sequences.n_events for group in groups]))
            asked = AskedSamples(setting, people[ask], query, amount)
            yield _decided(asked, scores, keys).assign(enrolled=with_samples, length=length)


class AskedSamples(NamedTuple):
    """Queries with their typists, and the number of keys that the claimed people enrolled with."""

    setting: Setting
    typist: Integers
    query: Samples
    enrolled: int


def _decided(asked_of: AskedSamples, scores: Floats, keys: Integers) -> pd.DataFrame:
    setting, typist, query, enrolled = asked_of
    own = typist[:, None] == setting.enrolled[None, :]
    # Enrolled people claim only their own names, because they are not strangers.
    asked = own | np.isin(typist, setting.strangers)[:, None]
    n, u = np.nonzero(asked & (keys > 0)[:, None])
    chosen = scores[n, u]
    meanings = setting.background.calibrations.at(enrolled).meanings(chosen, keys[n])
    return pd.DataFrame(
        {
            "claimed": setting.enrolled[u],
            "typist": typist[n],
            "session": query.index.get_level_values("session").to_numpy()[n].astype(str),
            "genuine": own[n, u],
            "keys": keys[n],
            "score": chosen,
            "llr": meanings.llr,
            "false_match_rate": meanings.false_match,
            "answer": Targets().answers(meanings),
        }
    )


def _identified(row: Row, people: Integers, setting: Setting, train: Truths, ask: Integers) -> pd.DataFrame:
    """The result of identifying each sample among the enrolled people."""
    verifier = Verifier.of(setting.background)
    verifier.enrol_many({str(u): row.samples[train & (people == u)] for u in setting.enrolled.tolist()})
    found = verifier.identify_many(row.samples[ask])
    return pd.DataFrame(
        {
            "typist": people[ask],
            "stranger": np.isin(people[ask], setting.strangers),
            "right": [one.user == str(u) for one, u in zip(found, people[ask], strict=True)],
            "named": [not one.nobody for one in found],
            "first": [one.candidates[0].user == str(u) for one, u in zip(found, people[ask], strict=True)],
        }
    )


def _after(events: Floats, query: Samples, length: int) -> tuple[Floats, Integers]:
    """Log-likelihoods of each sample's first keys, and their number; 0 if the sample is too short."""
    offsets, lengths = query.sequences.offsets, query.sequences.lengths
    if length == WHOLE:
        return sums_after(events, offsets), lengths
    return sums_after(events, offsets, length), np.where(lengths >= length, length, 0)


def _spread(chosen: Integers, people: Integers, most: int) -> Integers:
    """At most this many samples of each person, evenly spread from the first to the last."""
    of_each = [spread(chosen[people[chosen] == u], most) for u in np.unique(people[chosen])]
    return np.sort(np.concatenate(of_each))
