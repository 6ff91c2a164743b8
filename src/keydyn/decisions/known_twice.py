"""People who are known twice: pairs of users who are likely the same person.

A person who takes part again under another name looks like an impostor who is always accepted. All pairs of
users are compared: the samples of each, cut to the same length, under the template of the other, beside those
of all others. A pair is as alike as the less alike of the two directions. Almost all pairs are of different
people, so that the pairs themselves say how alike different people get, and how many pairs would be named by
chance. Where it is known when users typed, only those who typed soon after one another, and never at the same
time, can be one person here.
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
# Keys of a sample that are looked at, and the number of samples: this many, or as many as have these keys.
LONGEST, ASKED, MOST_ASKED, ENOUGH_KEYS = 60, 5, 25, 250
# Users with fewer keystrokes, or in smaller company, are not compared.
LEAST_KEYS, FEWEST = 100, 10
# Minutes between two sittings that may be one person's.
NEAR = 60.0
# Pairs of different people that are named, expected, per 1,000 people.
FALSE_ALARMS = 5.0
# How alike pairs of different people are, by the number of people that they are compared beside: what one
# pair in a hundred exceeds, and how far beyond it one in e · 100 does. From fable and essay, each with a
# population of the other, rounded up; with more people there are enough pairs to say it themselves.
COMPANY = np.log([20.0, 50.0])
ALIKE, TAIL = (2.0, 1.0), (1.6, 1.5)
# With fewer pairs, their own tail cannot be told.
MANY_PAIRS = 10_000
# Users whose samples are scored together.
AT_A_TIME = 50
# Commands compare no more users than these, since the time grows with their square, and show this many pairs.
MOST_COMPARED, SHOWN = 3_000, 5
# Later than this a time of a press is one since 1970, milliseconds.
SINCE_1970 = 1e11
COLUMNS = ["user", "other", "alike", "minutes"]


class Sittings(NamedTuple):
    """When each user's first key was pressed and the last one, (U,), minutes; NaN where it is not known."""

    begin: Floats
    end: Floats

    @classmethod
    def of(cls, keystrokes: pd.DataFrame, users: pd.Index) -> Sittings:
        """From the column `started`, or from times of presses since 1970."""
        press = keystrokes["timepress"].to_numpy(dtype=np.float64)
        if "started" in keystrokes:
            press = press + pd.to_numeric(keystrokes["started"], errors="coerce").to_numpy(dtype=np.float64)
        dated = pd.Series(np.where(press > SINCE_1970, press, np.nan) / 60_000.0)
        found = dated.groupby(keystrokes["user"].to_numpy()).agg(["min", "max"]).reindex(users)
        return cls(found["min"].to_numpy(), found["max"].to_numpy())

    def minutes(self) -> Floats:
        """(U, U) from one user's last key to the other's first; negative if they typed at the same time."""
        after = self.begin[:, None] - self.end[None, :]
        return np.fmax(after, after.T)


def find_twice(
    keystrokes: pd.DataFrame, population: PopulationModel | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Pairs of users who are likely the same person, the most alike first.

    Columns are `user` and `other`; `alike`, the mean log-likelihood ratio per sample, tempered, of the other
    user to anyone else, in the direction in which it is smaller; and `minutes` between the sittings, NaN
    where times are not known. When a sample was typed is in the column `started`, in milliseconds since 1970,
    or in `timepress` itself. Without times more likeness is asked for.

    Of 1,000 different people about five pairs are named wrongly. The shipped population is used unless
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


def twice_noticed(
    keystrokes: pd.DataFrame, population: PopulationModel | None = None, n_jobs: int | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The pairs that `find_twice` names, and what to say of them; of very many users none is looked for."""
    n = keystrokes["user"].nunique()
    if n > MOST_COMPARED:
        nobody = pd.DataFrame([], columns=COLUMNS)
        return nobody, [f"{n:,} users are too many to look for people who are known twice"]
    pairs = find_twice(keystrokes, population, n_jobs)
    texts = twice_in_words(pairs.head(SHOWN))
    if len(pairs) > SHOWN:
        texts.append(f"{len(pairs) - SHOWN} further pairs of users are likely the same person")
    return pairs, texts


def _alike(
    samples: Samples, people: Integers, kept: Integers, population: PopulationModel, n_jobs: int | None
) -> Floats:
    """(U, U) how alike each pair is, in the direction in which it is less alike."""
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
    """(n, U) each log-likelihood less the logarithm of the others' mean; −∞ are those who do not count."""
    rows, best = np.arange(len(logs)), logs.argmax(axis=1)
    largest = logs[rows, best]
    rest = logs.copy()
    # The best is left out of a sum of its own: beside it, the others would be lost in rounding.
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
    """The likeness from which pairs are named: so that few pairs of different people are, as expected."""
    if not possible.any():
        return np.inf
    company = np.log(n_people)
    alike, tail = float(np.interp(company, COMPANY, ALIKE)), float(np.interp(company, COMPANY, TAIL))
    # Fewer pairs than one in a hundred are left to chance where there are many.
    chance = min(FALSE_ALARMS * n_people / 1000.0 / int(possible.sum()), 0.01)
    level = alike + tail * float(np.log(0.01 / chance))
    # Pairs who cannot be one person say it best; without times, the few who are one hardly matter.
    different = scores if possible.all() else scores[~possible]
    if len(different) >= MANY_PAIRS:
        often, rarely = np.quantile(different, [0.99, 0.999])
        level = float(often + (rarely - often) / np.log(10.0) * np.log(0.01 / chance))
    return level
