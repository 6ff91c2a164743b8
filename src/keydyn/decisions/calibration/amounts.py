"""Calibrations for different amounts of typing at enrolment.

A template from one sentence is less certain than one from fifty, so the same score means something else.
Calibrations are learnt for several amounts of typing and interpolated between them, on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.calibration import TENSORS, Calibration, Meanings
from keydyn.decisions.calibration.trials import Trials
from keydyn.files import Kind, Tensor, Tensors, Values, declared, or_empty, within
from keydyn.short_repr import short_repr

# Interpolation steps from one amount to the next. If amounts differ by a factor of 4, rounding to a step
# changes an amount by a factor of at most 1.07.
STEPS = 10
_PER_AMOUNT = TENSORS.keys() - {"lengths"}


@dataclass(frozen=True, eq=False)
class Calibrations:
    """Calibrations of scores for several amounts of typing at enrolment; immutable.

    Attributes
    ----------
    enrolled : (E,) numbers of keys, rising
    each : the calibration for each of them
    population : SHA-256 of the population that the scores come from; empty if it is known otherwise
    unsure : standard deviation, in units of the score, of the difference between strangers' scores here and
        where the calibration was learnt; 0 if it was learnt here

    Examples
    --------
    >>> from keydyn.decisions import shipped_background
    >>> calibrations = shipped_background().calibrations
    >>> little, much = calibrations.at(enrolled=50), calibrations.at(enrolled=800)
    >>> one = 1.0  # the same score says more beside a template that is certain
    >>> bool(little.false_non_match_rates([one], [80]) > much.false_non_match_rates([one], [80]))
    True
    """

    enrolled: Integers
    each: tuple[Calibration, ...]
    population: str = ""
    unsure: float = 0.0
    # Caches of calibrations by step, and of steps by number of keys
    _made: dict[int, Calibration] = field(default_factory=dict, init=False, repr=False)
    _steps: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Check the parts; a `ValueError` says what is wrong with them."""
        rising = len(self.enrolled) > 0 and self.enrolled[0] >= 1 and (np.diff(self.enrolled) > 0).all()
        if not rising or len(self.each) != len(self.enrolled):
            raise ValueError("enrolled must rise, one number per calibration")
        if any(not np.array_equal(one.lengths, self.each[0].lengths) for one in self.each):
            raise ValueError("all amounts need the same numbers of keys in a calibration")
        if not 0.0 <= self.unsure < np.inf:
            raise ValueError(f"unsure must be 0 or more in a calibration, not {self.unsure}")

    @classmethod
    def learn(cls, trials: Mapping[int, Trials], unsure: float = 0.0) -> Calibrations:
        """Learn from trials of people who enrolled with these numbers of keys, leaving out too few trials."""
        found = {keys: Calibration.learn(some) for keys, some in sorted(trials.items()) if some.enough}
        if not found:
            # Raises the error that says what is missing.
            Calibration.learn(next(iter(trials.values())))
        common = set.intersection(*(set(one.lengths.tolist()) for one in found.values()))
        each = tuple(one.only(np.isin(one.lengths, sorted(common))) for one in found.values())
        return cls(np.array(list(found), dtype=np.int64), each, unsure=unsure)

    @property
    def n_people(self) -> int:
        """The number of people whose samples made the trials."""
        return max(one.n_people for one in self.each)

    @property
    def lengths(self) -> Integers:
        """(G,) the sample lengths, in keys, for which scores are calibrated."""
        return self.each[0].lengths

    @property
    def typical(self) -> Calibration:
        """The calibration for the middle one of the amounts."""
        return self.at(int(self.enrolled[len(self.enrolled) // 2]))

    def at(self, enrolled: int) -> Calibration:
        """The calibration for a person who enrolled with this number of keys."""
        if enrolled not in self._steps:
            self._steps[enrolled] = int(self._step(enrolled))
        return self._of_step(self._steps[enrolled])

    def meanings(self, scores: Floats, keys: Integers, enrolled: Integers) -> Meanings:
        """Return the meanings of scores (n,).

        `keys` are the numbers of keys of the samples, and `enrolled` those that the claimed people enrolled
        with; each is (n,), or one number for all.
        """
        steps, keys = (np.broadcast_to(each, scores.shape) for each in (self._step(enrolled), keys))
        found = np.empty((len(Meanings._fields), len(scores)))
        for step in set(steps.tolist()):
            same = np.flatnonzero(steps == step)
            found[:, same] = self._of_step(step).meanings(scores[same], keys[same])
        return Meanings(*found)

    def _step(self, enrolled: Integers | int) -> Integers:
        """The places of numbers of keys on the way from the first amount to the last, in steps."""
        places = np.interp(np.log(np.maximum(enrolled, 1)), self._places, np.arange(len(self._places)))
        return np.rint(places * STEPS).astype(np.int64)

    def _of_step(self, step: int) -> Calibration:
        if step not in self._made:
            before, rest = divmod(step, STEPS)
            found = self.each[before]
            if rest:
                found = found.towards(self.each[before + 1], rest / STEPS)
            self._made[step] = found.moved(0.0, self.unsure)
        return self._made[step]

    def lockout_level(self, per_hour: float, enrolled: Iterable[int] | None = None) -> float:
        """The highest lock-out level of people who enrolled with these numbers of keys, or with any."""
        amounts = self.enrolled.tolist() if enrolled is None else list(enrolled)
        return max(self.at(keys).lockout_level(per_hour) for keys in amounts)

    def moved(self, shift: float, unsure: float) -> Calibrations:
        """The calibrations for strangers who score higher by `shift`, known with deviation `unsure`."""
        return replace(self, each=tuple(one.moved(shift, 0.0) for one in self.each), unsure=unsure)

    @cached_property
    def _places(self) -> Floats:
        places: Floats = np.log(self.enrolled.astype(np.float64))
        return places

    def packed(self) -> bytes:
        """The contents of a file with the calibrations."""
        return CALIBRATIONS.packed(*self._parts())

    @property
    def sha256(self) -> str:
        """SHA-256 of the calibrations."""
        return CALIBRATIONS.digest(*self._parts())

    def _parts(self) -> tuple[Values, Tensors]:
        values: Values = {"population": self.population, "unsure": self.unsure}
        tensors: Tensors = {"enrolled": self.enrolled, "lengths": self.lengths}
        tensors |= {name: np.stack([getattr(one, name) for one in self.each]) for name in _PER_AMOUNT}
        tensors["n_people"] = np.array([one.n_people for one in self.each], dtype=np.int64)
        tensors["hours"] = np.array([one.hours for one in self.each])
        return values, tensors


def _declared(values: Values) -> dict[str, Tensor]:
    """The tensors of E calibrations, one per amount."""
    counts = Tensor(("E",), within(1, files.MOST_COUNTED), np.int64)
    each = {name: replace(TENSORS[name], shape=("E", *TENSORS[name].shape)) for name in _PER_AMOUNT}
    hours = Tensor(("E",), within(0, files.MOST_COUNTED))
    return {"enrolled": counts, "lengths": TENSORS["lengths"], "n_people": counts, "hours": hours, **each}


def _built(values: Values, tensors: Tensors) -> Calibrations:
    people, hours = tensors["n_people"].tolist(), tensors["hours"].tolist()
    each = tuple(
        Calibration(
            lengths=tensors["lengths"].copy(),
            n_people=people[e],
            hours=hours[e],
            **{name: tensors[name][e].copy() for name in _PER_AMOUNT},
        )
        for e in range(len(tensors["enrolled"]))
    )
    return Calibrations(tensors["enrolled"], each, values["population"], values["unsure"])


_FIELDS = {"population": or_empty(files.sha256), "unsure": files.number}
CALIBRATIONS = declared(Kind("Calibrations", _FIELDS, _declared, _built))
