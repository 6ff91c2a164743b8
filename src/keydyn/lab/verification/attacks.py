"""Measures how many of an attacker's samples are accepted, and how many are noticed.

Most attacks take genuine samples and return forged ones with the same keys. Forged samples keep the index of
the genuine ones, so that it does not say who sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.liveness.copies import Fingerprints, copy_evidence
from keydyn.decisions.liveness.not_typed import COPY_LIMIT, copy_reason, regularity_reason, spreads
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import Robot, replayed
from keydyn.lab.forgeries.from_population import dictionary, typed_as
from keydyn.lab.forgeries.replays import in_the_rhythm_of, shuffled
from keydyn.lab.frame.study_data import stream
from keydyn.population import PopulationModel, Template


def most_accepted(accepted: Truths) -> int:
    """The entry of a dictionary to try first: the one accepted for most people, given (entries, people).

    These are people known to the attacker; the victim is not among them.
    """
    return int(np.argmax(accepted.mean(axis=1)))


Judge = Callable[[Sequence[Any], Samples], Truths]

JITTERS = (1.0, 5.0, 10.0)
ENTRIES = 1000
BEST, TRIES = "best of a dictionary", "a thousand tries"
STOPPED_BY = {
    "stranger": "the score",
    "replay": "fingerprints of earlier samples",
    **{f"replay, jitter {jitter:g} ms": "fingerprints of earlier samples" for jitter in JITTERS},
    "average typist, as expected": "the score, compared with other people's",
    "average typist, drawn": "the score, compared with other people's",
    "stolen template, as expected": "nothing here: keep templates encrypted, and enrol again with other text",
    "stolen template, drawn": "nothing here: keep templates encrypted, and enrol again with other text",
    "robot": "times that are too regular",
    "another's rhythm": "the score",
    "own times shuffled": "the score",
    BEST: "the score, compared with other people's",
    TRIES: "a limit on the number of attempts",
}
# Need not be secret, because these fingerprints exist only during the study.
SECRET = b"fingerprints of a study"


@dataclass(frozen=True, eq=False)
class Victim:
    """A user with a template, the samples an attacker has recorded of them, and unseen genuine samples."""

    user: Any
    template: Template
    recorded: Samples
    queries: Samples


def attack_acceptance(
    population: PopulationModel,
    victims: Sequence[Victim],
    judge: Judge,
    seed: int = 0,
    entries: int = ENTRIES,
) -> pd.DataFrame:
    """One row per attack and victim: tries, and the shares `accepted`, `noticed` and `passed`.

    Samples are accepted by the score; copies and samples with too regular times are noticed; samples that are
    accepted and not noticed pass. Attacks from a dictionary are counted differently. The best entry is the
    one that is accepted for most other victims, and is tried once. Of a thousand tries, the row says whether
    any was accepted, the share of the accepted ones that was noticed, and whether any passed.
    """
    rows = []
    for n, victim in enumerate(victims):
        other = victims[(n + 1) % len(victims)]
        random = np.random.default_rng([seed, n])
        known = Fingerprints.of(victim.recorded, SECRET)
        for name, sent in sent_samples(population, victim, other, random):
            accepted = judge([victim.user], sent)[:, 0]
            rows.append((name, victim.user, *shares(accepted, noticed(sent, known))))
        rows += _from_dictionary(population, victims, n, judge, random, entries)
    return pd.DataFrame(rows, columns=["attack", "user", "tries", "accepted", "noticed", "passed"])


def sent_samples(
    population: PopulationModel, victim: Victim, other: Victim, random: np.random.Generator
) -> Iterator[tuple[str, Samples]]:
    """The samples that each attack sends, including genuine ones and a stranger's, `other`."""
    queries, recorded = victim.queries, victim.recorded
    some = recorded[np.linspace(0, len(recorded) - 1, min(len(recorded), len(queries))).astype(np.int64)]
    yield "genuine", queries
    yield "stranger", other.queries
    yield "replay", replayed(some)
    for jitter in JITTERS:
        yield f"replay, jitter {jitter:g} ms", replayed(some, jitter, random)
    anyone = population.anyone()
    yield "average typist, as expected", typed_as(population, anyone, queries)
    yield "average typist, drawn", typed_as(population, anyone, queries, random)
    yield "stolen template, as expected", typed_as(population, victim.template, queries)
    yield "stolen template, drawn", typed_as(population, victim.template, queries, random)
    yield "robot", Robot(rounded=False).forge(other.recorded, queries, random)
    yield "another's rhythm", in_the_rhythm_of(queries, other.recorded)
    yield "own times shuffled", shuffled(queries, random)


def _from_dictionary(
    population: PopulationModel,
    victims: Sequence[Victim],
    n: int,
    judge: Judge,
    random: np.random.Generator,
    entries: int,
) -> list[tuple[Any, ...]]:
    """Rows for the entry accepted for most other victims, and for all entries tried in turn."""
    victim, users = victims[n], [one.user for one in victims]
    known = Fingerprints.of(victim.recorded, SECRET)
    typists = population.draw(entries, random)
    sent = dictionary(population, typists, victim.queries[:1], None)
    accepted = judge(users, sent)
    best = most_accepted(np.delete(accepted, n, axis=1))
    rows = [(BEST, victim.user, *shares(accepted[[best], n], noticed(sent[[best]], known)))]
    working = np.flatnonzero(accepted[:, n])
    alarms = noticed(sent[working], known) if len(working) else np.zeros(0, dtype=bool)
    share = float(alarms.mean()) if len(working) else 0.0
    rows.append((TRIES, victim.user, entries, float(len(working) > 0), share, float((~alarms).any())))
    return rows


def noticed(sent: Samples, known: Fingerprints) -> Truths:
    """Whether each sample is recognised as a copy or as too regular."""
    evidence: Floats = copy_evidence(sent, known, SECRET)
    reasons = (
        copy_reason(one) or regularity_reason(two) for one, two in zip(evidence, spreads(sent), strict=True)
    )
    return np.array([reason is not None for reason in reasons])


def shares(accepted: Truths, alarms: Truths) -> tuple[int, float, float, float]:
    """The number of tries, and the shares of them accepted, noticed, and accepted without being noticed."""
    passed = accepted & ~alarms
    return len(accepted), float(accepted.mean()), float(alarms.mean()), float(passed.mean())


FRESH, COPY, ROBOT = "fresh", "copy", "robot"
COPY_JITTERS = (0.0, 1.0, 5.0, 10.0)
# At most this many fresh samples per user, and copies or robots per user and jitter, evenly spread.
MOST_FRESH, MOST_MADE = 50, 10


def copy_rates(samples: Samples, n_known: int, seed: int = 0) -> pd.DataFrame:
    """A frame of kind, jitter, user, tries, and how many were recognised as `copies` or as `regular`.

    The first `n_known` samples of each user are known, the later ones are fresh. Copies repeat known samples;
    robots type the keys of fresh ones with the user's median times. Both are displaced by the jitter, in ms.
    """
    rows = []
    for user in dict.fromkeys(samples.users.tolist()):
        own = samples[samples.users == user]
        if len(own) <= n_known:
            continue
        known, fresh = own[:n_known], own[n_known:]
        fingerprints = Fingerprints.of(known, SECRET)
        copied, typed = (some[_spread(len(some), MOST_MADE)] for some in (known, fresh))
        random = stream(seed, "copies", user)
        sent = [(FRESH, 0.0, fresh[_spread(len(fresh), MOST_FRESH)])]
        for jitter in COPY_JITTERS:
            sent.append((COPY, jitter, replayed(copied, jitter, random)))
            sent.append((ROBOT, jitter, Robot(jitter=jitter, rounded=False).forge(known, typed, random)))
        for kind, jitter, some in sent:
            copies = int((copy_evidence(some, fingerprints, SECRET) > COPY_LIMIT).sum())
            rows.append((kind, jitter, user, len(some), copies, int((spreads(some) < 1).any(axis=1).sum())))
    return pd.DataFrame(rows, columns=["kind", "jitter", "user", "tries", "copies", "regular"])


def _spread(n: int, most: int) -> Integers:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
