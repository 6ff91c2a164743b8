"""Error rates of answers, as stated by a calibration and as counted, for strangers who imitate no one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from keydyn.arrays import Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import Calibration, MatchRate
from keydyn.decisions.calibration.trials import Cohort, Trials, Typists, claims, lengths_for
from keydyn.decisions.decision import ACCEPT, LEAST_KEYSTROKES, Targets
from keydyn.evaluation.rates.confidence import Claims, Rate
from keydyn.keystrokes.samples import Samples
from keydyn.short_repr import short_repr

# With fewer people there is no interval: drawing from a handful says little about others.
LEAST_FOR_INTERVAL = 5


@dataclass(frozen=True)
class StatedRates:
    """The error rates that a calibration states for samples with a number of keys.

    Attributes
    ----------
    accepted_strangers : the share of strangers accepted, with its interval; None if the calibration cannot
        state a share as small as the target, so that no claim is accepted
    refused_genuine : the share of genuine samples that are not accepted: rejected or unsure
    """

    keys: int
    accepted_strangers: MatchRate | None
    refused_genuine: float


@dataclass(frozen=True)
class CountedRates:
    """The rates counted among samples with a number of keys; None where there are no such samples."""

    keys: int
    accepted_strangers: Rate | None
    refused_genuine: Rate | None

    __repr__ = short_repr


def stated_rates(calibration: Calibration, at: Targets) -> list[StatedRates]:
    """The stated rates for each number of keys in the calibration that suffices for a decision.

    Examples
    --------
    >>> from keydyn.decisions import Targets, shipped_background, stated_rates
    >>> calibration = shipped_background().calibrations.at(enrolled=250)
    >>> rates = stated_rates(calibration, Targets(false_match=0.01))
    >>> rates[-1].keys > rates[0].keys, rates[-1].refused_genuine < rates[0].refused_genuine
    (True, True)
    """
    found = []
    for keys in calibration.lengths[calibration.lengths >= LEAST_KEYSTROKES].tolist():
        threshold = calibration.threshold(at.false_match, keys)
        if not np.isfinite(threshold):
            found.append(StatedRates(keys, None, 1.0))
            continue
        refused = calibration.false_non_match_rates(np.array([threshold]), np.array([keys]))
        found.append(StatedRates(keys, calibration.false_match_rate(threshold, keys), float(refused[0])))
    return found


def claims_among(background: Background, samples: Samples) -> Trials:
    """Score claims of all people to be each other and themselves; no one is enrolled with the samples tested.

    A `ValueError` unless there are two people or more, with two samples or more each. The population must
    have been learnt from others; otherwise the claims are easier to judge than those of people it does not
    know.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import claims_among, recorded_samples, shipped_background
    >>> trials = claims_among(shipped_background(), recorded_samples(make_typists(3, 3, "free", 80)))
    >>> int(trials.genuine.sum())
    9
    """
    people, names = samples.people
    if (np.bincount(people, minlength=1) < 2).any() or len(names) < 2:
        raise ValueError("two people or more are needed, with two samples or more each")
    places = {name: place for place, name in enumerate(names)}
    members = np.array([places.get(name, -1) for name in background.members] or [-1], dtype=np.int64)
    typists = Typists(samples, people, lengths_for(samples))
    return claims(background.pattern, typists, np.arange(len(names)), Cohort(background.others, members))


def counted_rates(trials: Trials, calibration: Calibration, at: Targets) -> list[CountedRates]:
    """Count the error rates among claims, by the number of keys; each sample tested is one trial.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import Targets, claims_among, counted_rates
    >>> from keydyn.decisions import recorded_samples, shipped_background
    >>> background, samples = shipped_background(), recorded_samples(make_typists(3, 3, "free", 80))
    >>> calibration = background.calibrations.at(enrolled=160)
    >>> rates = counted_rates(claims_among(background, samples), calibration, Targets())
    >>> rates[0].accepted_strangers.trials
    9
    """
    found = []
    for g, keys in enumerate(trials.lengths.tolist()):
        here = np.isfinite(trials.scores[:, g])
        answers = at.answers(calibration.meanings(trials.scores[here, g], np.array(keys)))
        accepted = np.array([answer == ACCEPT for answer in answers], dtype=bool)
        genuine = trials.genuine[here]
        pairs = np.stack([trials.claimed[here], trials.typist[here]])
        # A sample is one trial, however many people it claims to be: each claims its own typist once.
        n = int(genuine.sum())
        strangers = _rate(pairs[:, ~genuine], accepted[~genuine], n)
        found.append(CountedRates(keys, strangers, _rate(pairs[:, genuine], ~accepted[genuine], n)))
    return found


def _rate(pairs: Integers, counted: Truths, trials: int) -> Rate | None:
    if len(counted) == 0:
        return None
    claims = Claims(*pairs)
    if claims.n_people < LEAST_FOR_INTERVAL:
        return Rate(float(counted.mean()), None, None, trials)
    return replace(claims.rate(counted), trials=trials)
