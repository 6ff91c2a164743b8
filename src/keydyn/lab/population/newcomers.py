"""People who enrol with a detector that was prepared elsewhere: on other people, or on another dataset."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Integers
from keydyn.detectors import Detector
from keydyn.detectors.templates import Population, fit_templates
from keydyn.evaluation.protocols.protocol import Split
from keydyn.evaluation.protocols.running import Enrolled, scores_of
from keydyn.evaluation.rates.recognition import recognition
from keydyn.evaluation.scores import Mask
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.dataset_rows import Row

Prepared = list[tuple[Detector, Mask]]
QUERIES = 50


def halves(samples: Samples) -> list[tuple[Mask, Mask]]:
    """Every other user is learnt from and the rest are asked, and the other way round; masks over samples."""
    odd: Mask = pd.factorize(samples.users)[0] % 2 == 1
    return [(odd, ~odd), (~odd, odd)]


def training_samples(row: Row) -> Mask:
    """Samples that train in any split of the row's protocol."""
    train: Mask = np.any([split.train for split in row.protocol.splits(row.samples)], axis=0)
    return train


def enrolments_with(prepared: Detector, row: Row, people: Mask, n: int | None = None) -> list[Enrolled]:
    """Every split of the row's protocol, but with these people alone, each enrolled with n training samples.

    `people` is a mask over the samples; without n all training samples enrol. Of each user `QUERIES` queries
    are asked at most, evenly spread.
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
        # All at once: short fits take less time together.
        templates = iter(fit_templates(prepared, groups))
    return [
        Enrolled(split, Population(users[columns], [next(templates) for _ in columns]), columns)
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
    """In which order each user's training samples enrol, (n,): those after the first query come first.

    The order is circular: where one sample is left out, every sample serves as often as any other.
    """
    number = samples.numbers
    first = int(number[split.query].min())
    place = (number - first) % (int(number.max()) + 1)
    # What does not train comes last.
    place[~split.train] = len(samples) + place[~split.train]
    order: Integers = pd.Series(place).groupby(samples.users).rank(method="first").to_numpy(np.int64) - 1
    return order


def newcomer_figures(prepared: Prepared, row: Row, n: int | None = None) -> pd.DataFrame:
    """user, acc and eer of all who are asked: each detector with the people that are asked with it."""
    enrolled = [one for detector, people in prepared for one in enrolments_with(detector, row, people, n)]
    return user_figures(recognition(scores_of(row.protocol, enrolled, row.samples)))


def user_figures(users: pd.DataFrame) -> pd.DataFrame:
    """user (as text), acc and eer: what is kept of each user's figures."""
    return users[["acc", "eer"]].rename_axis("user").reset_index().astype({"user": str})
