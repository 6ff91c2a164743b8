"""People who enrol with a detector that was prepared elsewhere: on other people, or on another dataset."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Integers
from keydyn.detectors import Detector
from keydyn.detectors.population import fit_population
from keydyn.evaluation.protocols import Split
from keydyn.evaluation.recognition import recognition
from keydyn.evaluation.running import Enrolled, scores_of
from keydyn.evaluation.scores import Mask
from keydyn.keystrokes.samples import Samples
from keydyn.studies.dataset_rows import Row

Prepared = list[tuple[Detector, Mask]]


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

    `people` is a mask over the samples; without n all training samples enrol.
    """
    samples, users = row.samples, pd.unique(row.samples.users)
    enrolled = []
    for split in row.protocol.splits(samples):
        train = split.train & people
        if n is not None:
            train &= enrolment_order(split, samples) < n
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            population = fit_population(prepared, samples[train])
        columns = pd.Index(users).get_indexer(pd.Index(population.users))
        some = Split(train, split.genuine & people, split.impostor & people)
        enrolled.append(Enrolled(some, population, columns.astype(np.int64)))
    return enrolled


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
