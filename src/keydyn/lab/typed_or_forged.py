"""Learns to tell typing from forgeries, from the published free-text recordings and attacks on their people.

`python -m keydyn.lab.typed_or_forged` writes two files into the package; the core only reads them. People are
measured with a population learnt from the other recordings, so that nobody is expected to type as they did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from keydyn import files
from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.liveness.hands import ANYONE, CLAIMED, Hands, K
from keydyn.decisions.liveness.measures import measured
from keydyn.decisions.liveness.not_typed import tick_of, times_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import STOLEN, Forger, forgers
from keydyn.lab.forgeries.made_up import made_up
from keydyn.lab.forgeries.replays import displaced
from keydyn.lab.shipped import published_people
from keydyn.model.data.sequences import Sequences
from keydyn.population.model import PopulationModel
from keydyn.population.parameters import Template

# Lengths of samples learnt from, and of those that levels are of.
LENGTHS = (40, 70, 100, 200, 400)
RATES = np.array([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
# Keys of each sample that an attacker has recorded.
STOLEN_KEYS = 50
# Pieces of each forgery, and keys that people enrol with.
MOST_PIECES, ENROLLED = 3, (150, 300, 500, 1500)
# The strength of the logistic regression's prior, and how many samples all people together count as.
STRENGTH, WEIGHT = 0.005, 2000.0
# Samples of a clock and a length, in one place, from which a level can be learnt.
FEWEST = 50
SEED = 1


class Measured(NamedTuple):
    """Measures (n, K) of samples with these numbers of keys, (n,), clocks, people and places."""

    values: Floats
    keys: Integers
    coarse: Truths
    person: Integers
    place: Integers

    @classmethod
    def joined(cls, several: Sequence[Measured]) -> Measured:
        """All of these."""
        return cls(*(np.concatenate(parts) for parts in zip(*several, strict=True)))


class Material(NamedTuple):
    """What is learnt from: measures of people's samples, and of forgeries by family of attacks."""

    humans: Measured
    forged: dict[str, Measured]

    @classmethod
    def joined(cls, several: Sequence[Material]) -> Material:
        """All of these."""
        families = {
            name: Measured.joined([one.forged[name] for one in several]) for name in several[0].forged
        }
        return cls(Measured.joined([one.humans for one in several]), families)


def cut(samples: Samples, keys: int) -> Samples:
    """Pieces of this many keys, numbered within all; shorter rests are left out."""
    sequences = samples.sequences
    starts = [
        start
        for begin, end in zip(sequences.offsets[:-1].tolist(), sequences.offsets[1:].tolist(), strict=True)
        for start in range(begin, end - keys + 1, keys)
    ]
    rows = (np.array(starts, dtype=np.int64)[:, None] + np.arange(keys)).ravel()
    offsets = np.arange(len(starts) + 1) * keys
    parts = sequences.X[rows], sequences.codes[rows], sequences.event_types, offsets, sequences.feature_names
    return Samples([(0, n) for n in range(len(starts))], Sequences(*parts), samples.emission)


def made_fine(samples: Samples, tick: float, random: np.random.Generator) -> Samples:
    """The samples as a clock without ticks might have recorded them, in whole milliseconds."""
    times = times_of(samples)
    return made_up(samples, displaced(times, random.uniform(-tick / 2, tick / 2, (2, len(times)))))


def on_clock(samples: Samples, tick: float) -> Samples:
    """The samples as a clock with this tick would have recorded them."""
    return made_up(samples, tick * np.round(times_of(samples) / tick)) if tick > 0 else samples


def material(
    place: Samples, people: PopulationModel, number: int, random: np.random.Generator, enrolled: bool
) -> Material:
    """A place's people and forgeries of them, by a population of other people.

    Everyone's second half is typed and forged, the first is what attackers have. With `enrolled` samples are
    measured beside a template of the first half, or a part of it.
    """
    typed: list[Measured] = []
    forged: dict[str, list[Measured]] = {}
    attacks = forgers(people)
    codes, users = place.people
    for u in range(len(users)):
        recorded = place[codes == u]
        tick = tick_of(times_of(recorded))
        for fine in (False, True) if tick else (True,):
            mine = made_fine(recorded, tick, random) if fine and tick else recorded
            first, second = mine[: len(mine) // 2], mine[len(mine) // 2 :]
            had = cut(first, STOLEN_KEYS)
            template = people.enrol(first.first_keys(int(random.choice(ENROLLED)))) if enrolled else None

            as_seen = partial(_measured, people, template, (not fine, u, number))
            cuts = (cut(second if enrolled else mine, keys) for keys in LENGTHS)
            typed += [as_seen(pieces) for pieces in cuts if len(pieces)]
            for forger in attacks.values():
                sent = forged_by(forger, had, second, random)
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
    return Measured(values, keys, *(np.full(len(keys), one) for one in about))


def forged_by(forger: Forger, had: Samples, texts: Samples, random: np.random.Generator) -> Samples:
    """One of the texts, forged by an attacker who has some of these recordings."""
    k = int(random.choice(list(STOLEN.values())))
    text = texts[[int(random.integers(len(texts)))]]
    return forger.forge(had[-min(k, len(had)) :], text, random)


def learn(known: Material, without: Collection[str] = (), strength: float = STRENGTH) -> Hands:
    """What tells people's samples from forgeries, learnt without some families of attacks."""
    from sklearn.linear_model import LogisticRegression

    humans, hands = known.humans, _people(known.humans)
    parts = [some for family, some in known.forged.items() if family not in without]
    if not parts:
        raise ValueError("no family of attacks is left to learn from")
    every = Measured.joined([humans, *parts])
    weights = np.concatenate([_even(humans), *(_even(some) / len(parts) for some in parts)])
    typed = np.arange(len(every.keys)) < len(humans.keys)
    fitted = LogisticRegression(C=strength, fit_intercept=False, max_iter=1000)
    fitted.fit(hands.terms(every.values, every.keys), typed, WEIGHT * weights)
    hands = replace(hands, weights=fitted.coef_[0])
    return replace(hands, levels=_levels(hands, humans))


def _even(some: Measured) -> Floats:
    """Weights that add up to 1: the same for each place, person and length."""
    group = np.unique(np.column_stack([some.place, some.person, some.keys]), axis=0, return_inverse=True)[
        1
    ].ravel()
    weight = 1.0 / np.bincount(group)[group]
    for place in np.unique(some.place):
        weight[some.place == place] /= weight[some.place == place].sum()
    return np.asarray(weight / weight.sum())


def _people(humans: Measured) -> Hands:
    """How people's measures vary: among people, and by chance, which falls with the number of keys."""
    weight = _even(humans)
    centre = weight @ humans.values
    # Variances at each length, over all people: among + chance / n.
    rows, squares = [], []
    for keys in LENGTHS:
        own = humans.keys == keys
        if own.any():
            w = weight[own] / weight[own].sum()
            low, high = np.quantile(humans.values[own], [0.005, 0.995], axis=0)
            rows.append((1.0, 1.0 / keys))
            squares.append(w @ (np.clip(humans.values[own], low, high) - centre) ** 2)
    among, chance = np.linalg.lstsq(np.array(rows), np.array(squares), rcond=None)[0]
    among, chance = np.maximum(among, 1e-6), np.maximum(chance, 1e-4)
    nothing = np.zeros(0)
    hands = Hands(
        centre, among, chance, np.eye(K), np.zeros(4 * K + 4), np.array(LENGTHS, dtype=float), RATES, nothing
    )
    z = hands.standardised(humans.values, humans.keys)
    z = np.clip(z, -4.0, 4.0)
    scatter = (weight[:, None] * z).T @ z
    return replace(
        hands, precision=np.asarray(np.linalg.inv(0.9 * scatter + 0.1 * np.eye(K)), dtype=np.float64)
    )


def _levels(hands: Hands, humans: Measured) -> Floats:
    """(2, J, Q) the lowest level of any place's people, at each clock, length and rate.

    Where a place has too few samples of a clock, those of both count; where no place has enough of a length,
    the level of the next shorter one stands.
    """
    llr = hands.llr(humans.values, humans.keys)
    levels = np.empty((2, len(LENGTHS), len(RATES)))
    for clock in range(2):
        for j, keys in enumerate(LENGTHS):
            of_length, found = humans.keys == keys, []
            for place in np.unique(humans.place):
                here = of_length & (humans.place == place)
                own = here & (humans.coarse == clock)
                own = own if own.sum() >= FEWEST else here
                if own.sum() >= FEWEST:
                    found.append(np.quantile(llr[own], RATES))
            levels[clock, j] = np.min(found, axis=0) if found else levels[clock, j - 1]
    # Rates and levels both increase.
    return levels + 1e-9 * np.arange(len(RATES))


def published_material(enrolled: bool) -> Material:
    """People of the published recordings and forgeries of them."""
    places = list(published_people())
    found = []
    for n, place in enumerate(places):
        elsewhere = PopulationModel().fit(places[1 - n])
        found.append(material(place, elsewhere, n, np.random.default_rng([SEED, n]), enrolled))
    return Material.joined(found)


def main() -> None:
    """Write both files."""
    for enrolled, path in ((False, ANYONE), (True, CLAIMED)):
        files.write(path, learn(published_material(enrolled)).packed())


if __name__ == "__main__":
    main()
