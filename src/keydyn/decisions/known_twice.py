"""Search for people known under two names: pairs of users who are likely the same person.

A person who takes part again under another name looks like an impostor who is always accepted. All pairs of
users are compared: the samples of each, cut to the same length, are scored under the template of the other,
relative to the templates of all others. The likeness of a pair is the smaller one of its two directions.
Almost all pairs are of different people, so the pairs themselves show how alike different people get, and how
many pairs would be named by chance. Where times of typing are known, two users can be one person only if they
typed soon after one another and never at the same time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.trials import spread
from keydyn.keystrokes.cleaning import CleaningRules, clean
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.quality import twice_in_words
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel

# Log-likelihoods are tempered: keys of one sample tell less than independent ones.
TEMPER = 0.5
# The number of keys of a sample that are scored; the least and the most samples of each user; and the number
# of keys that they should have in total.
LONGEST, ASKED, MOST_ASKED, ENOUGH_KEYS = 60, 5, 25, 250
# Users with fewer keystrokes are not compared, nor are fewer users than this.
LEAST_KEYS, FEWEST = 100, 10
# The most minutes between two sittings of one person.
NEAR = 60.0
# The expected number of pairs of different people that are named, per 1,000 people.
FALSE_ALARMS = 5.0
# The likeness of pairs of different people, by the logarithm of the number of people: ALIKE is what one pair
# in 100 exceeds, and ALIKE + TAIL what one in e · 100 exceeds. Measured on fable and essay, each with a
# population learnt from the other, and rounded up; with more people, there are enough pairs to measure it.
COMPANY = np.log([20.0, 50.0])
ALIKE, TAIL = (2.0, 1.0), (1.6, 1.5)
# With fewer pairs, the tail of their likeness cannot be estimated from the pairs themselves.
MANY_PAIRS = 10_000
# The number of users whose samples are scored together.
AT_A_TIME = 50
# Commands compare at most this many users, since the time grows with their square, and show this many pairs.
MOST_COMPARED, SHOWN = 3_000, 5
# Larger times of presses are taken as milliseconds since 1970.
SINCE_1970 = 1e11
COLUMNS = ["user", "other", "alike", "minutes"]


class Sittings(NamedTuple):
    """Times of each user's first and last key press, (U,), in minutes; NaN where unknown."""

    begin: Floats
    end: Floats

    @classmethod
    def of(cls, keystrokes: pd.DataFrame, users: pd.Index) -> Sittings:
        """Read the times from the column `started`, or from times of presses since 1970."""
        press = keystrokes["timepress"].to_numpy(dtype=np.float64)
        if "started" in keystrokes:
            press = press + pd.to_numeric(keystrokes["started"], errors="coerce").to_numpy(dtype=np.float64)
        dated = pd.Series(np.where(press > SINCE_1970, press, np.nan) / 60_000.0)
        found = dated.groupby(keystrokes["user"].to_numpy()).agg(["min", "max"]).reindex(users)
        return cls(found["min"].to_numpy(), found["max"].to_numpy())

    def minutes(self) -> Floats:
        """(U, U) minutes from one user's last key to the other's first; negative if the sittings overlap."""
        after = self.begin[:, None] - self.end[None, :]
        return np.fmax(after, after.T)


def find_twice(
    keystrokes: pd.DataFrame, population: PopulationModel | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Find pairs of users who are likely the same person, the most alike first.

    The columns are `user` and `other`; `alike`, the mean tempered log-likelihood ratio per sample of the
    other user to anyone else, in the direction in which it is smaller; and `minutes` between the sittings,
    NaN where times are unknown. Times are read from the column `started`, in milliseconds since 1970, or from
    `timepress` itself. Without times, pairs must be more alike to be named.

    Among 1,000 different people, about five pairs are named wrongly. The shipped population is used unless
    another is given.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.decisions import find_twice
    >>> typing = make_typists(24, 12, "copied", 60, random_state=1)
    >>> again = (typing["user"] == 3) & (typing["session"] >= 6)
    >>> typing.loc[again, "user"] = 100  # user 3 takes part again
    >>> typing = typing.sort_values(["user", "session"], kind="stable", ignore_index=True)
    >>> find_twice(typing)[["user", "other"]].values.tolist()
    [[3, 100]]
    """
    short = clean(keystrokes, CleaningRules(longest=LONGEST))[0]
    samples = recorded_samples(short[["user", "session", "keyname", "timepress", "timerelease"]])
    people, users = samples.people
    lengths = samples.sequences.lengths
    enough = np.bincount(people, lengths, len(users)) >= LEAST_KEYS
    if enough.sum() < FEWEST:
        return pd.DataFrame([], columns=COLUMNS)
    kept = np.flatnonzero(enough)
    alike = _alike(samples, people, kept, population or PopulationModel.shipped(), n_jobs)
    minutes = Sittings.of(keystrokes, pd.Index(users[kept])).minutes()
    first, second = np.triu_indices(len(kept), 1)
    score, apart = alike[first, second], minutes[first, second]
    possible = ~((apart < 0) | (apart > NEAR))
    named = np.flatnonzero(possible & (score >= _level(score, possible, len(kept))))
    named = named[np.argsort(-score[named], kind="stable")]
    pair = users[kept[first[named]]], users[kept[second[named]]]
    return pd.DataFrame(dict(zip(COLUMNS, (*pair, score[named], apart[named]), strict=True)))


def twice_noticed(keystrokes: pd.DataFrame, n_jobs: int | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the pairs that `find_twice` names and remarks about them; very many users are not compared."""
    n = keystrokes["user"].nunique()
    if n > MOST_COMPARED:
        nobody = pd.DataFrame([], columns=COLUMNS)
        return nobody, [f"{n:,} users are too many to look for people who are known twice"]
    pairs = find_twice(keystrokes, n_jobs=n_jobs)
    texts = twice_in_words(pairs.head(SHOWN))
    if len(pairs) > SHOWN:
        texts.append(f"{len(pairs) - SHOWN} further pairs of users are likely the same person")
    return pairs, texts


def _alike(
    samples: Samples, people: Integers, kept: Integers, population: PopulationModel, n_jobs: int | None
) -> Floats:
    """(U, U) likeness of each pair, in the direction in which it is smaller."""
    templates = [population.enrol(samples[people == u]) for u in kept.tolist()]
    templates.append(population.anyone())
    usual = float(np.median(samples.sequences.lengths))
    n_asked = int(np.clip(np.ceil(ENOUGH_KEYS / usual), ASKED, MOST_ASKED))
    asked = [spread(np.flatnonzero(people == u), n_asked) for u in kept.tolist()]
    ratios = np.empty((len(kept), len(kept)))
    for first in range(0, len(kept), AT_A_TIME):
        some = asked[first : first + AT_A_TIME]
        typist = first + np.repeat(np.arange(len(some)), [len(own) for own in some])
        logs = TEMPER * population.log_likelihoods(templates, samples[np.concatenate(some)], n_jobs)
        logs[np.arange(len(logs)), typist] = -np.inf
        beside = pd.DataFrame(_beside_the_others(logs)[:, :-1]).groupby(typist).mean()
        ratios[first : first + len(some)] = beside.to_numpy()
    return np.minimum(ratios, ratios.T)


def _beside_the_others(logs: Floats) -> Floats:
    """(n, U) log-likelihoods minus the logarithm of the others' mean likelihood; −∞ entries do not count."""
    rows, best = np.arange(len(logs)), logs.argmax(axis=1)
    largest = logs[rows, best]
    rest = logs.copy()
    # The others of the best are summed without it: subtracting it from the total would lose them in rounding.
    rest[rows, best] = -np.inf
    second = rest.max(axis=1)
    total = np.exp(rest - second[:, None]).sum(axis=1)
    gap = np.exp(second - largest)
    others = np.log((gap * total)[:, None] + 1.0 - np.exp(rest - largest[:, None])) + largest[:, None]
    others[rows, best] = np.log(total) + second
    counted = np.isfinite(logs).sum(axis=1, keepdims=True) - 1
    beside: Floats = logs - others + np.log(counted)
    return beside


def _level(scores: Floats, possible: Truths, n_people: int) -> float:
    """The likeness from which pairs are named, such that few pairs of different people are expected to be."""
    if not possible.any():
        return np.inf
    company = np.log(n_people)
    alike, tail = float(np.interp(company, COMPANY, ALIKE)), float(np.interp(company, COMPANY, TAIL))
    # At most one pair in a hundred may be named by chance, and fewer where there are many pairs.
    chance = min(FALSE_ALARMS * n_people / 1000.0 / int(possible.sum()), 0.01)
    level = alike + tail * float(np.log(0.01 / chance))
    # Pairs that cannot be one person show this best; without times, the few that are one hardly matter.
    different = scores if possible.all() else scores[~possible]
    if len(different) >= MANY_PAIRS:
        often, rarely = np.quantile(different, [0.99, 0.999])
        level = float(often + (rarely - often) / np.log(10.0) * np.log(0.01 / chance))
    return level
