"""Adjusting a calibration that was learnt elsewhere by comparisons among a place's own people.

When people are enrolled, their samples are scored under the templates of the others: every such comparison is
a claim that is known to be false. If strangers at this place score higher or lower than those from whom the
calibration was learnt, the calibration is shifted along the score. The shift is a posterior mean: without
comparisons it is 0, as uncertain as places differ, and with many people it is the one that they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.amounts import Calibrations
from keydyn.decisions.calibration.calibration import RATES, Calibration
from keydyn.evaluation.rates.confidence import Claims, Rate
from keydyn.files import Kind, Tensor, Tensors, Values, declared, many, text, within
from keydyn.short_repr import short_repr

# Rates of strangers at which the place is compared with the calibration.
AT_RATES = (0.1, 0.05, 0.02)
# With fewer people nothing is learnt from them.
LEAST_PEOPLE = 3
# Standard deviation between one person's strangers and all, in units of the score. It keeps a handful of
# people who agree by chance from being taken as certain.
ONE_PERSON = 0.3
ARRAYS = ("scores", "keys", "enrolled")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Scores of one person's samples as claims to be other people; immutable.

    Attributes
    ----------
    claimed : the name of the person claimed in each
    scores, keys : (n,) the open-set score and the number of keys of each
    enrolled : (n,) the number of keys with which the person claimed was enrolled
    """

    claimed: tuple[str, ...]
    scores: Floats
    keys: Integers
    enrolled: Integers

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Check that the parts belong together, and make them read-only."""
        for array in (self.scores, self.keys, self.enrolled):
            if array.shape != (len(self.claimed),):
                raise ValueError(f"{len(self.claimed)} comparisons have {array.shape} values")
            array.flags.writeable = False

    @classmethod
    def none(cls) -> Comparisons:
        """No comparisons."""
        return cls((), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.claimed)

    def without(self, user: str) -> Comparisons:
        """The comparisons that do not claim to be this user."""
        if user not in self.claimed:
            return self
        left = np.array([name != user for name in self.claimed])
        names = tuple(name for name in self.claimed if name != user)
        return Comparisons(names, self.scores[left], self.keys[left], self.enrolled[left])

    def packed(self) -> bytes:
        """The contents of a file with the comparisons."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return COMPARISONS.packed({"claimed": list(self.claimed)}, arrays)


def _built(values: Values, tensors: Tensors) -> Comparisons:
    return Comparisons(tuple(values["claimed"]), **tensors)


_COUNTS = Tensor(("n",), within(1, files.MOST_COUNTED), np.int64)
COMPARISONS: Kind[Comparisons] = declared(
    Kind(
        "Comparisons",
        {"claimed": many(text)},
        lambda values: {"scores": Tensor((len(values["claimed"]),)), "keys": _COUNTS, "enrolled": _COUNTS},
        _built,
    )
)


class _All(NamedTuple):
    """The comparisons of several people, each person given by a number."""

    typist: Integers
    claimed: Integers
    scores: Floats
    keys: Integers
    enrolled: Integers

    @classmethod
    def of(cls, people: Mapping[str, Comparisons]) -> _All:
        users = {user: n for n, user in enumerate(people)}
        each = [Comparisons.none(), *people.values()]
        claimed = np.array([users.get(name, -1) for one in each for name in one.claimed], dtype=np.int64)
        typist = np.repeat(np.arange(-1, len(people)), [len(one) for one in each])
        joined = (np.concatenate([getattr(one, name) for one in each]) for name in ARRAYS)
        # Claims to be people who are no longer enrolled do not count.
        return cls(*(array[claimed >= 0] for array in (typist, claimed, *joined)))

    @property
    def people(self) -> Integers:
        """The numbers of all people who type or are claimed."""
        return np.unique(np.concatenate([self.typist, self.claimed]))

    def by_amount(self, calibrations: Calibrations) -> Iterator[tuple[Truths, Calibration]]:
        """For each amount enrolled with, a mask of the comparisons, (n,), and the calibration."""
        for amount in np.unique(self.enrolled).tolist():
            yield self.enrolled == amount, calibrations.at(amount)


@dataclass(frozen=True)
class OwnPlace:
    """The difference between strangers' scores at a place and elsewhere, estimated from its own people.

    Attributes
    ----------
    people, comparisons : the number of people compared, and of comparisons
    shift, unsure : by how much strangers score higher than where the calibration was learnt, and the standard
        deviation of that estimate, in units of the score
    """

    people: int
    comparisons: int
    shift: float
    unsure: float


def own_place(calibrations: Calibrations, people: Mapping[str, Comparisons]) -> OwnPlace:
    """Estimate from these people's comparisons the shift of a calibration that was learnt elsewhere."""
    every, unsure = _All.of(people), calibrations.unsure
    there, count = every.people, len(every.scores)
    if len(there) < LEAST_PEOPLE or unsure == 0.0:
        return OwnPlace(len(there), count, 0.0, unsure)
    excess = _excess(calibrations, every)
    found = _shift(excess, np.ones(count, dtype=bool))
    # The jackknife over people, each left out as typist and as the person claimed.
    left = np.array([_shift(excess, (every.typist != n) & (every.claimed != n)) for n in there.tolist()])
    n = len(there)
    variance = (n - 1) / n * float(((left - left.mean()) ** 2).sum()) + ONE_PERSON**2 / n
    share = unsure**2 / (unsure**2 + variance)
    return OwnPlace(n, count, share * found, float(np.sqrt(share * variance)))


def own_rate(
    calibrations: Calibrations, people: Mapping[str, Comparisons], false_match: float
) -> Rate | None:
    """The share of comparisons that would be accepted at this target; None with too few people."""
    every = _All.of(people)
    if len(every.people) < LEAST_PEOPLE:
        return None
    accepted = np.zeros(len(every.scores), dtype=bool)
    for here, calibration in every.by_amount(calibrations):
        rates = calibration.false_match_rates(every.scores[here], every.keys[here])
        accepted[here] = rates <= false_match
    return Claims(every.claimed, every.typist).rate(accepted)


def _excess(calibrations: Calibrations, every: _All) -> Floats:
    """(n, R) differences of each score from those that the calibration states for `AT_RATES`."""
    places = [int(np.argmin(np.abs(RATES - rate))) for rate in AT_RATES]
    excess = np.empty((len(every.scores), len(places)))
    for here, calibration in every.by_amount(calibrations):
        at, keys = np.log(calibration.lengths.astype(np.float64)), np.log(every.keys[here])
        for r, place in enumerate(places):
            excess[here, r] = every.scores[here] - np.interp(keys, at, calibration.impostor[:, place])
    return excess


def _shift(excess: Floats, which: Truths) -> float:
    """The shift that makes observed shares agree with stated ones, averaged over rates; 0 without data."""
    if not which.any():
        return 0.0
    shifts = [np.quantile(excess[which, r], 1.0 - rate) for r, rate in enumerate(AT_RATES)]
    return float(np.mean(shifts))
