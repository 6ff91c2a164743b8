"""The judgement whether a sample was typed by hand: a likelihood ratio of typed against forged, and its rate.

The logarithm of the ratio is a weighted sum of the measures of `measures.py`, with weights learnt in the
laboratory from people and from forgeries of them (`keydyn.lab.typed_or_forged`). Each measure is standardised
by how much it varies among people, and by chance in samples of that length. If the measures of the samples
that a person enrolled with are known, it is compared with the value that they lead to expect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers, plain, without_counting
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
from keydyn.population.shared_parameters import Template

if TYPE_CHECKING:
    import pandas as pd

#: The files with what was learnt: to judge samples of anyone, and given the template of the claimed person.
ANYONE, CLAIMED = (Path(__file__).parent / f"hands_{name}.keydyn" for name in ("anyone", "claimed"))
# Samples with fewer keys that the population knows, or a smaller share of them, are not judged.
LEAST_KEYS, LEAST_KNOWN_SHARE = 40, 0.75
# A claim is rejected as forged only with this many keys or more. With 40 keys most forgeries pass unnoticed,
# whereas simulated typists, on which demonstrations rest, are often noticed; they may type fewer keys than
# this.
REJECTED_FROM = 100
# A standardised measure is limited to this size, so that one odd session is no proof.
FURTHEST = 3.0
# If the spread of intervals or holds is more than this many deviations below people's, it is too small for
# any hand, and each further deviation is evidence of this many nats. About one in a thousand samples of
# people goes that far.
TOO_EVEN, STEEP = 3.0, 5.0
# If more than this share of intervals is too quick for most hands, keys came in bursts, as they do in a few
# sessions of Essay and in hardly any of Aalto.
BURSTS = 0.04
# The number of enrolled keys that tell as much about a person's measures as people in general do.
LEAN = 100.0
# The number of keys in units of which lengths are measured, and those beyond which length has no effect.
USUAL, SHORTEST, LONGEST = 100.0, 40.0, 400.0
K = len(MEASURES)
SPREADS = tuple(MEASURES.index(f"spread of {times}") for times in ("intervals", "holds"))
_NO_MANNER: Floats = np.empty((0, K + 1))

# The number of the group that spreads belong to.
SPREAD = 0

#: Why a sample is taken for a forgery, by the group of measures that speaks most for it.
REASONS = (
    "forged: its times vary in another way than those of hands",
    "forged: its times do not follow the keys before and after as in people's typing",
    "forged: its times do not depend on each other as in people's typing",
    "forged: the same times return with the same keys",
    "forged: its keys do not overlap as in people's typing",
    "keys came in bursts: it is forged, or a connection delays its keys, so that its times say little",
)


class HandTables(NamedTuple):
    """A model in the form that compiled loops take: as in `Hands`, with logarithms of lengths and rates."""

    centre: Floats
    enrolled: Floats
    reach: Floats
    follows: Floats
    among: Floats
    chance: Floats
    precision: Floats
    weights: Floats
    lengths: Floats
    rates: Floats
    levels: Floats


class Weighed(NamedTuple):
    """Measures of n samples, weighed.

    `z`, (n, K), is how far they are from those usual for people, or expected from the person's manner, in
    units of people's deviations. `terms`, (n, P), are weighted: z within limits, their joint unusualness, it
    once more in proportion to the length, the length, and 1. `ratio`, (n,), is the weighted sum of terms;
    the levels were learnt from it. `even`, (n,), are nats against a hand for times that hardly vary, such
    as those that a model expects.
    """

    z: Floats
    terms: Floats
    ratio: Floats
    even: Floats

    @property
    def llr(self) -> Floats:
        """(n,) natural logarithms of the likelihood ratios of typed against forged."""
        return self.ratio - self.even


@dataclass(frozen=True, eq=False)
class Hands:
    """A model that tells typing by hand from forgeries, learnt from the measures of both.

    There are K measures, P terms, J lengths and Q rates; levels are given for fine clocks, then for coarse
    ones. A person's manner, (K + 1,), is the number of keys enrolled with, and their measures.
    """

    centre: Floats  # (K,)
    # (K,) each, for measures of enrolled samples: the usual value, the largest distance from it that counts,
    # and the share of the distance that is expected in the person's next sample
    enrolled: Floats
    reach: Floats
    follows: Floats
    # (K,) variance among people, and variance by chance for one key, to be divided by the number of keys
    among: Floats
    chance: Floats
    precision: Floats  # (K, K) inverse correlations of people's standardised measures
    weights: Floats  # (P,)
    lengths: Floats  # (J,)
    rates: Floats  # (Q,)
    levels: Floats  # (2, J, Q) the ratio below which each of these shares of people's samples lies

    def weighed(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Weighed:
        """The measures (n, K) of samples, weighed, given numbers of keys and the person's manner."""
        z, terms, ratios = np.empty(values.shape), np.empty((len(values), K + 4)), np.empty((2, len(values)))
        own = _NO_MANNER if manner is None else manner.reshape(-1, K + 1)
        if values.shape != (len(keys), K) or len(own) not in (0, 1, len(keys)):
            raise ValueError(f"measures {values.shape} do not fit {len(keys)} samples and {len(own)} people")
        arguments = plain(values), np.asarray(keys, dtype=np.int64), plain(own)
        fill_weighed(*arguments, self._tables, z, terms, ratios)
        return Weighed(z, terms, *ratios)

    def llr(self, values: Floats, keys: Integers, manner: Floats | None = None) -> Floats:
        """(n,) natural logarithms of the likelihood ratios of typed against forged."""
        return self.weighed(values, keys, manner).llr

    def rate(self, llr: float, keys: int, coarse: bool) -> float:
        """The share of people's samples with a ratio this low."""
        return rate_of(llr, keys, int(coarse), self._tables)

    @cached_property
    def _tables(self) -> HandTables:
        """The model in the form that the compiled loops take."""
        names = ("centre", "enrolled", "reach", "follows", "among", "chance", "precision", "weights")
        tables = {name: plain(getattr(self, name)) for name in (*names, "levels")}
        return HandTables(lengths=np.log(self.lengths), rates=np.log(self.rates), **tables)

    def judged(
        self,
        people: PopulationModel,
        samples: Samples,
        template: Template | None = None,
        alarms: float = ALARMS,
    ) -> list[Typed]:
        """Judge whether each sample was typed by hand, given a population and, if known, a template of it."""
        values, keys = measured(people, samples, template)
        lengths = samples.sequences.lengths
        weighed = self.weighed(values, keys, manner_of(template))
        bursts, counts = quick_share(values) > BURSTS, keys.tolist()
        ratios, found = weighed.llr.tolist(), []
        for n, one in enumerate(samples):
            llr, known = ratios[n], counts[n]
            if known < max(LEAST_KEYS, LEAST_KNOWN_SHARE * int(lengths[n])):
                found.append(NOT_JUDGED)
                continue
            rate = self.rate(llr, known, SampleTimes.of(one).tick > 0.0)
            if llr < 0.0 and rate <= alarms and bursts[n]:
                found.append(Typed("unsure", llr, rate, REASONS[-1]))
            elif llr < 0.0 and rate <= alarms:
                loudest = SPREAD if weighed.even[n] > 0.0 else _loudest(weighed.terms[n] * self.weights)
                found.append(Typed("no", llr, rate, REASONS[loudest]))
            else:
                found.append(Typed("yes" if llr > 0.0 else "unsure", llr, rate))
        return found

    def packed(self) -> bytes:
        """The contents of a file with the model."""
        return HANDS.packed({"measures": list(MEASURES)}, {name: getattr(self, name) for name in NAMES})


@without_counting
def fill_weighed(
    values: Floats,
    keys: Integers,
    manner: Floats,
    known: HandTables,
    z: Floats,
    terms: Floats,
    ratios: Floats,
) -> None:
    """Fill in what `Weighed` has; `manner` is of each sample, of all, or empty."""
    for n in range(len(values)):
        own, length = min(n, len(manner) - 1), min(max(float(keys[n]), SHORTEST), LONGEST) / USUAL
        unusual, ratio, even = 0.0, 0.0, 0.0
        for k in range(K):
            away = values[n, k] - known.centre[k]
            if own >= 0:
                reach, typed = known.reach[k], manner[own, 0]
                habit = min(max(manner[own, 1 + k] - known.enrolled[k], -reach), reach)
                away -= typed / (typed + LEAN) * known.follows[k] * habit
            # In units of people's deviations at this number of keys.
            z[n, k] = away / math.sqrt(known.among[k] + known.chance[k] / max(keys[n], 1))
            terms[n, k] = min(max(z[n, k], -FURTHEST), FURTHEST)
        for k in range(K):
            total = 0.0
            for j in range(K):
                total += terms[n, j] * known.precision[k, j]
            unusual += total * terms[n, k]
        terms[n, K] = math.log1p(unusual / K)
        terms[n, K + 2] = math.log(length)
        terms[n, K + 1] = terms[n, K + 2] * terms[n, K]
        terms[n, K + 3] = 1.0
        for p in range(K + 4):
            ratio += terms[n, p] * known.weights[p]
        for k in SPREADS:
            even += STEEP * max(-z[n, k] - TOO_EVEN, 0.0)
        ratios[0, n], ratios[1, n] = ratio, even


@without_counting
def rate_of(llr: float, keys: int, coarse: int, known: HandTables) -> float:
    """The share of people's samples of this length, by such a clock, with a ratio as low as this."""
    at, first, share = math.log(max(keys, 1)), 0, 0.0
    last = len(known.lengths) - 1
    while first < last and known.lengths[first + 1] <= at:
        first += 1
    if first < last and at > known.lengths[first]:
        share = (at - known.lengths[first]) / (known.lengths[first + 1] - known.lengths[first])
    before, after = known.levels[coarse, first], known.levels[coarse, min(first + 1, last)]
    low, rate = 0.0, known.rates[0]
    for q in range(len(known.rates)):
        level = before[q] + share * (after[q] - before[q])
        if llr < level:
            way = (llr - low) / (level - low) if q > 0 else 1.0
            return math.exp(rate + way * (known.rates[q] - rate))
        low, rate = level, known.rates[q]
    return math.exp(rate)


def _loudest(terms: Floats) -> int:
    """The group of measures that speaks most strongly against a hand."""
    return int(np.argmin(np.bincount(GROUPS, terms[:K])))


def with_manner(people: PopulationModel, template: Template, enrolled: Samples) -> Template:
    """The template with the measures of the samples it was enrolled with, taken as one sample."""
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
    """The person's manner, if it is known and consists of this version's measures."""
    return None if template is None or len(template.manner) != K + 1 else template.manner


def typed(sample: Samples | pd.DataFrame, alarms: float = ALARMS) -> Typed:
    """Judge whether one sample was typed by hand; no one needs to be enrolled.

    The answer is "no" for at most a share `alarms` of samples typed by people.

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
    """Judge whether one sample, claimed to be from the owner of a template, was typed by hand."""
    if sample.sequences.n_events < LEAST_KEYS:
        return NOT_JUDGED
    if isinstance(claimed, PopulationDetector):
        return typed_beside(claimed.people, claimed.template_, sample)[0]
    return _read(ANYONE).judged(_shipped(), with_times_alone(sample))[0]


def typed_beside(people: PopulationModel, template: Template, samples: Samples) -> list[Typed]:
    """Judge whether each sample, claimed to be from the owner of a template, was typed by hand.

    A forger imitates the owner, so the template tells what a hand would have done. If it lacks the measures
    of the enrolled samples, as templates of earlier versions do, samples are judged as anyone's.
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
    """The samples without features other than intervals and holds."""
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
