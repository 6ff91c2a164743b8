"""Claims in one place, judged by what was learnt in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.amounts import Calibrations
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.trials import spread
from keydyn.decisions.decision import evidence
from keydyn.detectors import Detector, PopulationDetector
from keydyn.keystrokes.samples import Samples

# Samples that people enrol with, and the most that each is asked about.
AMOUNTS, ASKED = (1, 5, 10), 5


class Split(NamedTuple):
    """Who enrols with what, and what is asked about."""

    enrol: Samples
    ask: Samples
    users: Integers  # (U,) numbers of the people
    keys: Integers  # (U,) keystrokes that each enrolled with
    typist: Integers  # (n,) number of the person who typed each sample asked about


def amounts_for(samples: Samples) -> tuple[int, ...]:
    """The numbers of samples that most people can enrol with, two or more being left to ask about."""
    counts = np.unique(pd.factorize(samples.users)[0], return_counts=True)[1]
    return tuple(n for n in AMOUNTS if n + 2 <= np.median(counts))


def split(samples: Samples, amount: int, most: int = ASKED) -> Split:
    """The first samples of each person enrol; later ones, the same for all amounts, are asked about."""
    people, numbers = pd.factorize(samples.users)[0], samples.numbers
    first = max(amounts_for(samples), default=amount)
    asked = np.concatenate(
        [spread(np.flatnonzero((people == u) & (numbers >= first)), most) for u in np.unique(people)]
    )
    enrol = np.flatnonzero(numbers < amount)
    keys = np.bincount(people[enrol], samples.sequences.lengths[enrol]).astype(np.int64)
    return Split(samples[enrol], samples[asked], np.unique(people), keys, people[asked])


def templates_of(background: Background, enrol: Samples) -> dict[str, Detector]:
    """The template of each person, in order of their numbers."""
    pattern = background.pattern
    if not isinstance(pattern, PopulationDetector):
        raise TypeError(f"people are enrolled with a population, not with {pattern.name}")
    users = pd.unique(enrol.users)
    carried = map(pattern.carrying, pattern.people.enrol_each(enrol))
    return dict(zip(map(str, users), carried, strict=True))


def claims_of(background: Background, samples: Samples, amount: int) -> pd.DataFrame:
    """Every sample asked about in the name of every person, who enrolled with this number of samples."""
    found = split(samples, amount)
    scores = background.scores(templates_of(background, found.enrol), found.ask)
    keys = known_keys(background, found.ask)
    llr, rates = meanings(background.calibrations, scores, keys, found.keys)
    n, U = scores.shape
    return pd.DataFrame(
        {
            "claimed": np.tile(found.users, n).astype(np.int32),
            "typist": np.repeat(found.typist, U).astype(np.int32),
            "sample": np.repeat(np.arange(n), U).astype(np.int32),
            "keys": np.repeat(keys, U).astype(np.int32),
            "enrolled_keys": np.tile(found.keys, n).astype(np.int32),
            "score": scores.ravel().astype(np.float32),
            "llr": llr.ravel().astype(np.float32),
            "rate": rates.ravel().astype(np.float32),
        }
    )


def known_keys(background: Background, samples: Samples) -> Integers:
    """(n,) keystrokes of each sample that tell something."""
    return np.array([max(one.known, 1) for one in evidence(samples, background.pattern)], dtype=np.int64)


def meanings(
    calibrations: Calibrations, scores: Floats, keys: Integers, enrolled: Integers
) -> tuple[Floats, Floats]:
    """(n, U) likelihood ratios and false-match rates of scores (n, U), by keys (n,) and by enrolment (U,)."""
    n, U = scores.shape
    found = calibrations.meanings(scores.ravel(), np.repeat(keys, U), np.tile(enrolled, n))
    return found.llr.reshape(n, U), found.false_match.reshape(n, U)


def labelled(frames: Mapping[tuple[str, str, int], pd.DataFrame]) -> pd.DataFrame:
    """All claims, with where they were learnt and tried, and the number of samples enrolled."""
    parts = [
        frame.assign(dataset_from=source, dataset_to=target, enrolled=np.int32(amount))
        for (source, target, amount), frame in frames.items()
    ]
    return pd.concat(parts, ignore_index=True)
