"""Learns to tell typing from forgeries, using published free-text recordings and attacks on their people.

`python -m keydyn.lab.typed_or_forged` writes two files into the package; the core only reads them. People are
measured against a population learnt from other people of both recordings, because it must not have seen their
own typing. Levels, too, come from people that the ratio was not learnt from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.liveness.hands import ANYONE, BURSTS, CLAIMED, LEAN, Hands, K, with_manner
from keydyn.decisions.liveness.measures import measured, quick_share
from keydyn.decisions.liveness.not_typed import SampleTimes, times_of
from keydyn.keystrokes.one_sample import without_impossible
from keydyn.keystrokes.samples import Names, Samples
from keydyn.lab.forgeries import STOLEN, Forger, forgers
from keydyn.lab.forgeries.made_up import made_up
from keydyn.lab.forgeries.replays import displaced
from keydyn.lab.shipped import published_people
from keydyn.model.data.sequences import Sequences
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

# Lengths of the samples to learn from, which are also the lengths that have levels.
LENGTHS = (40, 70, 100, 200, 400)
RATES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
# Number of keys in each sample that an attacker has recorded.
STOLEN_KEYS = 50
# The largest number of pieces per forgery, and the numbers of keys that people enrol with.
MOST_PIECES, ENROLLED = 3, (150, 300, 500, 1500)
# The number that is added to each variance, which is about 1 in people; chosen on the development people of
# Aalto.
RIDGE = 0.1
# Where the first piece of a person's sample begins, in lengths of a piece: samples are cut twice, so that the
# variation of people is known better.
STARTS = (0.0, 0.5)
# The smallest number of samples of a length, per place, from which a level can be learnt: of these, the level
# of 1 % has two samples below it.
FEWEST = 200
# The number of folds, each measured with a population of the others' people, and the number of groups of
# people, each judged with weights learnt from the others.
FOLDS, GROUPS = 4, 24
# The least number of keys of samples that show how measures follow those at enrolment, and the number of
# standard deviations at which enrolled measures are clipped.
FOLLOWED, REACH = 70, 3.0
SEED = 1


class Measured(NamedTuple):
    """Measures (n, K) of samples, with their numbers of keys (n,), clocks, people and places.

    `manner`, (n, K + 1), holds the number of keys and the measures at enrolment; it is 0 without enrolment.
    """

    values: Floats
    manner: Floats
    keys: Integers
    coarse: Truths
    person: Integers
    place: Integers

    @classmethod
    def joined(cls, several: Sequence[Measured]) -> Measured:
        """Concatenate several."""
        return cls(*(np.concatenate(parts) for parts in zip(*several, strict=True)))

    def some(self, chosen: Truths) -> Measured:
        """The chosen samples."""
        return Measured._make(values[chosen] for values in self)

    def of_group(self, group: int) -> Truths:
        """Whether each sample is of a person of the group, of shape (n,)."""
        return np.asarray(self.person % GROUPS == group, dtype=np.bool_)


class Material(NamedTuple):
    """The data to learn from: measures of people's samples, and of forgeries by family of attacks."""

    humans: Measured
    forged: dict[str, Measured]

    @classmethod
    def joined(cls, several: Sequence[Material]) -> Material:
        """Concatenate several."""
        families = {
            name: Measured.joined([one.forged[name] for one in several]) for name in several[0].forged
        }
        return cls(Measured.joined([one.humans for one in several]), families)

    def beside(self, group: int) -> Material:
        """The material of the people of all groups but one."""
        of = {name: some.some(~some.of_group(group)) for name, some in self.forged.items()}
        return Material(self.humans.some(~self.humans.of_group(group)), of)


def cut(samples: Samples, keys: int, start: int = 0) -> Samples:
    """Pieces of this many keys from `start` on, numbered consecutively; shorter rests are left out."""
    sequences = samples.sequences
    starts = [
        first
        for begin, end in zip(sequences.offsets[:-1].tolist(), sequences.offsets[1:].tolist(), strict=True)
        for first in range(begin + start, end - keys + 1, keys)
    ]
    rows = (np.array(starts, dtype=np.int64)[:, None] + np.arange(keys)).ravel()
    offsets = np.arange(len(starts) + 1) * keys
    parts = sequences.X[rows], sequences.codes[rows], sequences.event_types, offsets, sequences.feature_names
    return Samples([(0, n) for n in range(len(starts))], Sequences(*parts), samples.emission)


def made_fine(samples: Samples, tick: float, random: np.random.Generator) -> Samples:
    """The samples as a clock without ticks might have recorded them: times are spread within their ticks."""
    times = times_of(samples)
    return made_up(samples, displaced(times, random.uniform(-tick / 2, tick / 2, (2, len(times)))))


def on_clock(samples: Samples, tick: float) -> Samples:
    """The samples as a clock with this tick would have recorded them."""
    return made_up(samples, tick * np.round(times_of(samples) / tick)) if tick > 0 else samples


def material(
    place: Samples,
    people: PopulationModel,
    about: tuple[int, int],
    random: np.random.Generator,
    enrolled: bool,
) -> Material:
    """Typing of a place's people and forgeries of it, measured with a population of other people.

    Each half of a person's samples is measured as typed and is forged; attackers have the other half. With
    `enrolled`, samples are measured relative to a template of the other half or a part of it.
    `about` holds the numbers of place and fold.
    """
    number, fold = about
    typed: list[Measured] = []
    forged: dict[str, list[Measured]] = {}
    attacks = forgers(people)
    codes, users = place.people
    for u in range(len(users)):
        recorded = place[codes == u]
        tick = SampleTimes.among(times_of(recorded)).tick
        for fine in (False, True) if tick else (True,):
            mine = made_fine(recorded, tick, random) if fine and tick else recorded
            half = len(mine) // 2
            for theirs, own in ((mine[:half], mine[half:]), (mine[half:], mine[:half])):
                for start in STARTS:
                    known = theirs[random.permutation(len(theirs))].first_keys(int(random.choice(ENROLLED)))
                    template = with_manner(people, people.enrol(known), known) if enrolled else None
                    as_seen = partial(_measured, people, template, (not fine, u * FOLDS + fold, number))
                    cuts = (cut(own, keys, int(start * keys)) for keys in LENGTHS)
                    typed += [as_seen(pieces) for pieces in cuts if len(pieces)]
                had = cut(theirs, STOLEN_KEYS)
                for forger in attacks.values():
                    sent = forged_by(forger, had, own, random)
                    sent = sent if fine else on_clock(sent, tick)
                    longest = int(sent.sequences.lengths.max())
                    pieces = cut(sent, int(random.choice([one for one in LENGTHS if one <= longest])))
                    some = pieces[random.permutation(len(pieces))[:MOST_PIECES]]
                    forged.setdefault(forger.family, []).append(as_seen(some))
    return Material(Measured.joined(typed), {name: Measured.joined(some) for name, some in forged.items()})


def _measured(
    people: PopulationModel, template: Template | None, about: tuple[bool, int, int], samples: Samples
) -> Measured:
    """Measures of samples with one clock, of one person of one place."""
    values, keys = measured(people, samples, template)
    manner = np.zeros(K + 1) if template is None else template.manner
    return Measured(
        values, np.tile(manner, (len(keys), 1)), keys, *(np.full(len(keys), one) for one in about)
    )


def forged_by(forger: Forger, had: Samples, texts: Samples, random: np.random.Generator) -> Samples:
    """One of the texts, forged by an attacker who has some of these recordings, as it is judged."""
    k = int(random.choice(list(STOLEN.values())))
    text = texts[[int(random.integers(len(texts)))]]
    return without_impossible(forger.forge(had[-min(k, len(had)) :], text, random))


def learn(known: Material, without: Collection[str] = ()) -> Hands:
    """Learn what distinguishes people's samples from forgeries, leaving out some families of attacks."""
    parts = {family: some for family, some in known.forged.items() if family not in without}
    if not parts:
        raise ValueError("no family of attacks is left to learn from")
    known = Material(known.humans, parts)
    llr = np.empty(len(known.humans.keys))
    for group in range(GROUPS):
        judged = known.humans.of_group(group)
        if judged.any():
            some = known.humans.some(judged)
            llr[judged] = _weighed(known.beside(group)).weighed(some.values, some.keys, some.manner).ratio
    # Samples that arrive in bursts are not judged by the level.
    one_by_one = quick_share(known.humans.values) <= BURSTS
    return replace(_weighed(known), levels=_levels(llr[one_by_one], known.humans.some(one_by_one)))


def _weighed(known: Material) -> Hands:
    """The variation of people's measures, and the weights that separate them from forgeries; no levels.

    The weights are Fisher's discriminant, with the variation of people alone, because false alarms must be
    rare.
    """
    hands = _people(known.humans)
    humans, weight = known.humans, _even(known.humans)
    terms = _terms(hands, humans)
    typed = weight @ terms
    spread = (weight[:, None] * (terms - typed)).T @ (terms - typed)
    means = [_even(some) @ _terms(hands, some) for some in known.forged.values()]
    forged = np.mean(means, axis=0)
    weights = np.linalg.solve(spread + RIDGE * np.eye(len(typed)), typed - forged)
    # The last term is 1; its weight makes the ratio even halfway between the two means.
    weights[-1] = -0.5 * (typed + forged) @ weights
    return replace(hands, weights=np.asarray(weights, dtype=np.float64))


def _terms(hands: Hands, some: Measured) -> Floats:
    """(n, P) the samples' terms of the ratio, before they are weighted."""
    return hands.weighed(some.values, some.keys, some.manner).terms


def _even(some: Measured) -> Floats:
    """Weights that add up to 1, shared equally among places, and in a place among people and lengths."""
    group = np.unique(np.column_stack([some.place, some.person, some.keys]), axis=0, return_inverse=True)[
        1
    ].ravel()
    weight = 1.0 / np.bincount(group)[group]
    for place in np.unique(some.place):
        weight[some.place == place] /= weight[some.place == place].sum()
    return np.asarray(weight / weight.sum())


def _people(humans: Measured) -> Hands:
    """The variation of people's measures: between people, and by chance, which falls with length."""
    weight = _even(humans)
    centre = weight @ humans.values
    usual, reach, follows = _followed(humans)
    nothing = np.zeros((2, len(LENGTHS), len(RATES)))
    unit = np.ones(K)
    lengths = np.array([keys for keys in LENGTHS if (humans.keys == keys).any()], dtype=float)
    hands = Hands(
        centre, usual, reach, follows, unit, 0 * unit, np.eye(K), np.zeros(K + 4), lengths, RATES, nothing
    )
    # Variances at each length, over all people: among + chance / n.
    away = hands.weighed(humans.values, humans.keys, humans.manner).z
    rows, squares = [], []
    for keys in lengths.tolist():
        own = humans.keys == keys
        w = weight[own] / weight[own].sum()
        low, high = np.quantile(away[own], [0.005, 0.995], axis=0)
        rows.append((1.0, 1.0 / keys))
        squares.append(w @ np.clip(away[own], low, high) ** 2)
    among, chance = np.linalg.lstsq(np.array(rows), np.array(squares), rcond=None)[0]
    hands = replace(hands, among=np.maximum(among, 1e-6), chance=np.maximum(chance, 1e-4))
    z = hands.weighed(humans.values, humans.keys, humans.manner).terms[:, :K]
    precision = np.linalg.inv(0.9 * (weight[:, None] * z).T @ z + 0.1 * np.eye(K))
    return replace(hands, precision=np.asarray(precision, dtype=np.float64))


def _followed(humans: Measured) -> tuple[Floats, Floats, Floats]:
    """For each measure, (K,) each: its mean at enrolment, the clipping range, and the share that recurs."""
    long = humans.some((humans.keys >= FOLLOWED) & (humans.manner[:, 0] > 0.0))
    if len(long.keys) == 0:
        return np.zeros(K), np.zeros(K), np.zeros(K)
    typed, enrolled = long.manner[:, :1], long.manner[:, 1:]
    usual, reach = enrolled.mean(axis=0), REACH * enrolled.std(axis=0)
    away = typed / (typed + LEAN) * np.clip(enrolled - usual, -reach, reach)
    both = (away * (long.values - long.values.mean(axis=0))).sum(axis=0)
    return usual, reach, np.clip(both / ((away * away).sum(axis=0) + 1e-9), 0.0, 1.2)


def _levels(llr: Floats, humans: Measured) -> Floats:
    """The levels (2, J, Q) by clock, length and rate, of all places' samples, which count equally.

    If places counted equally, one or two samples of a small place would set the lowest levels. If a place has
    too few samples with a clock, its samples with either clock are used. If a place has too few samples of a
    length, that length keeps the levels of the next shorter one, because a single place may be unusual.
    """
    places = np.unique(humans.place)
    lengths = [keys for keys in LENGTHS if (humans.keys == keys).any()]
    levels = np.empty((2, len(lengths), len(RATES)))
    for clock in range(2):
        for j, keys in enumerate(lengths):
            here = [(humans.keys == keys) & (humans.place == place) for place in places]
            if j and min(one.sum() for one in here) < FEWEST:
                levels[clock, j] = levels[clock, j - 1]
                continue
            own = [one & (humans.coarse == clock) for one in here]
            chosen = np.any(
                [mine if mine.sum() >= FEWEST else one for mine, one in zip(own, here, strict=True)], axis=0
            )
            levels[clock, j] = np.quantile(llr[chosen], RATES)
    # Rates and levels both increase.
    return levels + 1e-9 * np.arange(len(RATES))


def material_of(places: Sequence[Samples], seed: int, enrolled: bool) -> Material:
    """Typing and forgeries of people of several places; each fold is measured by a population of the rest."""
    places = [_named(place, n) for n, place in enumerate(places)]
    of_fold = [place.people[0] % FOLDS for place in places]
    found = []
    for fold in range(FOLDS):
        others = [place[of != fold] for place, of in zip(places, of_fold, strict=True)]
        population = PopulationModel().fit(others, n_jobs=1)
        for n, (place, of) in enumerate(zip(places, of_fold, strict=True)):
            random = np.random.default_rng([seed, n, fold])
            found.append(material(place[of == fold], population, (n, fold), random, enrolled))
    return Material.joined(found)


def _named(place: Samples, number: int) -> Samples:
    """The samples, with names of people that are unique across places."""
    names: Names = [(f"{number} {user}", sample) for user, sample in place.names]
    return Samples(names, place.sequences, place.emission)


def main() -> None:
    """Write both files."""
    places = list(published_people())
    for enrolled, path in ((False, ANYONE), (True, CLAIMED)):
        files.write(path, learn(material_of(places, SEED, enrolled)).packed())


if __name__ == "__main__":
    main()
