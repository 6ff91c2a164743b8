"""Whether a hand typed a sample: a likelihood ratio of typed against forged, and how rare it is in people.

It is a weighted sum of the measures of `measures.py`, learnt in the laboratory from people and from
forgeries of them (`keydyn.lab.typed_or_forged`). A measure is compared with people's of as many keys: how
much it varies among people, and by chance in a sample of that length. Where it is known what the samples were
like that a person enrolled with, it is compared with what that leads to expect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers
from keydyn.decisions.decision import ALARMS, NOT_JUDGED, Typed
from keydyn.decisions.liveness.measures import GROUPS, MEASURES, measured, quick_share
from keydyn.decisions.liveness.not_typed import SampleTimes, times_of
from keydyn.detectors.detector import Detector
from keydyn.detectors.population_detector import PopulationDetector
from keydyn.files import Kind, Tensor, Tensors, Values, declared, finite, within
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples, families_of
from keydyn.model.data.sequences import Sequences
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.model import PopulationModel
from keydyn.population.parameters import Template

if TYPE_CHECKING:
    import pandas as pd

#: What tells typing from forgeries beside anyone, and beside the template of the person who is claimed.
ANYONE, CLAIMED = (Path(__file__).parent / f"hands_{name}.keydyn" for name in ("anyone", "claimed"))
# Samples with fewer keys that the population knows, or a smaller share of them, are not judged.
LEAST_KEYS, LEAST_KNOWN_SHARE = 40, 0.75
# A claim is rejected as forged from this many keys on. Of 40 keys, most forgeries are not noticed; simulated
# typists, on which demonstrations rest, often are, and may type fewer than this.
REJECTED_FROM = 100
# A standardised measure counts up to this size, so that one odd session is no proof.
FURTHEST = 3.0
# Beyond this many deviations below people's, the spread of intervals or of holds is too small for any hand,
# and each further one is evidence of this many nats. About one in a thousand samples of people goes that far.
TOO_EVEN, STEEP = 3.0, 5.0
# Where more intervals than this share are too quick for most hands, keys came in bursts, as they do in a few
# sessions of Essay and in hardly any of Aalto.
BURSTS = 0.04
# Enrolled keys that say as much about a person's measures as those of people in general.
LEAN = 100.0
# The number of keys by which lengths are measured, and those at which weights stop changing.
USUAL, SHORTEST, LONGEST = 100.0, 40.0, 400.0
K = len(MEASURES)
SPREADS = [MEASURES.index(f"spread of {times}") for times in ("intervals", "holds")]

# The number of the group that spreads belong to.
SPREAD = 0

#: Why a sample is taken for a forgery, by the group of measures that says so most.
REASONS = (
    "forged: its times vary in another way than those of hands",
    "forged: its times do not follow the keys before and after as in people's typing",
    "forged: its times do not depend on each other as in people's typing",
    "forged: the same times return with the same keys",
    "forged: its keys do not overlap as in people's typing",
    "keys came in bursts: it is forged, or a connection delays its keys, so that its times say little",
)


@dataclass(frozen=True, eq=False)
class Hands:
    """What people's measures are like, what weight each has, and how low people's ratios are.

    K measures, P terms, J lengths, Q rates; levels are those of fine clocks, then of coarse ones. A person's
    manner is the number of keys enrolled with, and the measures of these, (K + 1,).
    """

    centre: Floats  # (K,)
    # (K,) each of enrolled samples: the usual value, how far from it one counts, and how much of its distance
    # is to be expected of the person's next sample
    enrolled: Floats
    reach: Floats
    follows: Floats
    # (K,) variance among people, and the part that falls with the number of keys, of one key
    among: Floats
    chance: Floats
    precision: Floats  # (K, K) inverse correlations of people's standardised measures
    weights: Floats  # (P,)
    lengths: Floats  # (J,)
    rates: Floats  # (Q,)
    levels: Floats  # (2, J, Q) the ratio below which a share of people's samples are

    def standardised(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n, K) measures in people's deviations at these numbers of keys, beside the person's manner."""
        return _limited(self.away(values, manner) / self.deviations(keys))

    def deviations(self, keys: Integers) -> Floats:
        """(n, K) people's standard deviations at these numbers of keys."""
        return np.asarray(np.sqrt(self.among + self.chance / np.maximum(keys, 1)[:, None]))

    def away(self, values: Floats, manner: Floats | None = None) -> Floats:
        """(n, K) measures without what people's are usually, or what the person's manner leads to expect."""
        away = values - self.centre
        if manner is None:
            return away
        enrolled, typed = manner[..., 1:], manner[..., :1]
        own = np.minimum(np.maximum(enrolled - self.enrolled, -self.reach), self.reach)
        return np.asarray(away - typed / (typed + LEAN) * self.follows * own)

    def terms(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n, P) what the weights are of: measures, how unusual all are together, the length."""
        return self._terms(self.standardised(values, keys, manner), keys)

    def _terms(self, z: Floats, keys: Integers) -> Floats:
        terms = np.ones((len(z), K + 4))
        terms[:, :K] = z
        terms[:, K] = unusual = np.log1p(((z @ self.precision) * z).sum(axis=1) / K)
        terms[:, K + 2] = longer = np.log(np.minimum(np.maximum(keys, SHORTEST), LONGEST) / USUAL)
        terms[:, K + 1] = longer * unusual
        return terms

    def llr(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n,) natural logarithms of the likelihood ratios of typed against forged."""
        terms, even = self._parts(values, keys, manner)
        return np.asarray(terms.sum(axis=1) - even)

    def _parts(self, values: Floats, keys: Integers, manner: Floats | None) -> tuple[Floats, Floats]:
        """(n, P) what each term adds to the ratios, and (n,) what `too_even` takes from them."""
        z = self.away(values, manner) / self.deviations(keys)
        return self._terms(_limited(z), keys) * self.weights, _too_even(z)

    def weighed(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n,) what was learnt of the ratios, of which levels are."""
        return np.asarray(self.terms(values, keys, manner) @ self.weights)

    def too_even(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n,) nats against a hand where times hardly vary, as with those that a model expects."""
        return _too_even(self.away(values, manner) / self.deviations(keys))

    def rate(self, llr: float, keys: int, coarse: bool) -> float:
        """The share of people's samples whose ratio is as low."""
        place = float(np.interp(math.log(keys), np.log(self.lengths), np.arange(len(self.lengths))))
        low = int(place)
        first, second = self.levels[int(coarse), [low, min(low + 1, len(self.lengths) - 1)]]
        levels = first + (place - low) * (second - first)
        return float(np.exp(np.interp(llr, levels, np.log(self.rates))))

    def judged(
        self,
        people: PopulationModel,
        samples: Samples,
        template: Template | None = None,
        alarms: float = ALARMS,
    ) -> list[Typed]:
        """Whether a hand typed each of these samples, as a population, and a template of it, see them."""
        values, keys = measured(people, samples, template)
        lengths = samples.sequences.lengths
        terms, even = self._parts(values, keys, manner_of(template))
        bursts = quick_share(values) > BURSTS
        ratios, found = (terms.sum(axis=1) - even).tolist(), []
        for n, one in enumerate(samples):
            llr, known = ratios[n], int(keys[n])
            if known < max(LEAST_KEYS, LEAST_KNOWN_SHARE * int(lengths[n])):
                found.append(NOT_JUDGED)
                continue
            rate = self.rate(llr, known, SampleTimes.of(one).tick > 0.0)
            if llr < 0.0 and rate <= alarms and bursts[n]:
                found.append(Typed("unsure", llr, rate, REASONS[-1]))
            elif llr < 0.0 and rate <= alarms:
                loudest = SPREAD if even[n] > 0.0 else _loudest(terms[n])
                found.append(Typed("no", llr, rate, REASONS[loudest]))
            else:
                found.append(Typed("yes" if llr > 0.0 else "unsure", llr, rate))
        return found

    def packed(self) -> bytes:
        """The contents of a file."""
        return HANDS.packed({"measures": list(MEASURES)}, {name: getattr(self, name) for name in NAMES})


def _limited(z: Floats) -> Floats:
    """Measures in deviations, up to the furthest that counts."""
    return np.minimum(np.maximum(z, -FURTHEST), FURTHEST)


def _too_even(z: Floats) -> Floats:
    """(n,) nats against a hand, of measures in deviations."""
    return np.asarray(STEEP * np.maximum(-z[:, SPREADS] - TOO_EVEN, 0.0).sum(axis=1))


def _loudest(terms: Floats) -> int:
    """The group of measures that speaks loudest against a hand."""
    return int(np.argmin(np.bincount(GROUPS, terms[:K])))


def with_manner(people: PopulationModel, template: Template, enrolled: Samples) -> Template:
    """The template with the measures of the samples that it was enrolled with, taken as one."""
    sequences = enrolled.sequences
    if sequences.n_events == 0:
        return template
    X = np.array(sequences.X)
    # There is no interval between two samples.
    X[sequences.offsets[:-1], list(sequences.feature_names or ()).index(INTERVAL)] = np.nan
    ends = np.array([0, sequences.n_events])
    one = Sequences(X, sequences.codes, sequences.event_types, ends, sequences.feature_names)
    values, keys = measured(people, Samples([("", 0)], one, enrolled.emission), template)
    return replace(template, manner=np.concatenate([keys, values[0]]))


def manner_of(template: Template | None) -> Floats | None:
    """A person's manner, if it is known and of this version's measures."""
    return None if template is None or len(template.manner) != K + 1 else template.manner


def typed(sample: Samples | pd.DataFrame, alarms: float = ALARMS) -> Typed:
    """Whether a hand typed one sample at all; nobody needs to be enrolled.

    At most a share `alarms` of people's samples get the answer "no".

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import typed
    >>> typed(make_typists(1, 1, "free", 20)).answer  # too short to tell
    'unsure'
    """
    if not 0.0 < alarms < 1.0:
        raise ValueError(f"alarms must lie between 0 and 1, not {alarms}")
    samples = recorded_samples(sample)
    if len(samples) != 1:
        raise ValueError(f"typed takes one sample, not {len(samples)}")
    return _read(ANYONE).judged(_shipped(), with_times_alone(samples), None, alarms)[0]


def typed_in_name_of(claimed: Detector, sample: Samples) -> Typed:
    """Whether a hand typed one sample that is claimed to be from the owner of a template."""
    if sample.sequences.n_events < LEAST_KEYS:
        return NOT_JUDGED
    if isinstance(claimed, PopulationDetector):
        return typed_beside(claimed.people, claimed.template_, sample)[0]
    return _read(ANYONE).judged(_shipped(), with_times_alone(sample))[0]


def typed_beside(people: PopulationModel, template: Template, samples: Samples) -> list[Typed]:
    """Whether a hand typed each of these samples, which are claimed to be from a template's owner.

    A forger imitates the owner, so that the template says what a hand would have done. Where it does not say
    what the enrolled samples were like, as those of earlier versions, samples are judged beside anyone.
    """
    if manner_of(template) is None:
        return _read(ANYONE).judged(_shipped(), with_times_alone(samples))
    return _read(CLAIMED).judged(people, samples, template)


@lru_cache(maxsize=2)
def _read(path: Path) -> Hands:
    return HANDS.parsed(files.read(path), path)


@lru_cache(maxsize=1)
def _shipped() -> PopulationModel:
    return PopulationModel.shipped()


def with_times_alone(samples: Samples) -> Samples:
    """The samples without further features."""
    if samples.sequences.feature_names == (HOLD, INTERVAL):
        return samples
    sequences, features = samples.sequences, (HOLD, INTERVAL)
    parts = times_of(samples)[:, ::-1], sequences.codes, sequences.event_types, sequences.offsets
    return Samples(samples.names, Sequences(*parts, features), families_of(features))


def _declared(values: Values) -> dict[str, Tensor]:
    positive = within(1e-9, 1e9)
    return {
        "centre": Tensor((K,), finite),
        "enrolled": Tensor((K,), finite),
        "reach": Tensor((K,), within(0.0, 1e9)),
        "follows": Tensor((K,), within(0.0, 2.0)),
        "among": Tensor((K,), positive),
        "chance": Tensor((K,), within(0.0, 1e9)),
        "precision": Tensor((K, K), finite),
        "weights": Tensor((K + 4,), finite),
        "lengths": Tensor(("J",), within(1.0, 1e6)),
        "rates": Tensor(("Q",), within(1e-9, 1.0)),
        "levels": Tensor((2, "J", "Q"), finite),
    }


def _built(values: Values, tensors: Tensors) -> Hands:
    if values["measures"] != list(MEASURES):
        raise ValueError("its measures are not those of this version")
    for name in ("lengths", "rates", "levels"):
        if tensors[name].shape[-1] < 2 or not (np.diff(tensors[name]) > 0.0).all():
            raise ValueError(f"{name} must increase, and have two entries or more")
    return Hands(**tensors)


NAMES = tuple(one.name for one in fields(Hands))
HANDS = declared(Kind("Hands", {"measures": files.many(files.text)}, _declared, _built))
