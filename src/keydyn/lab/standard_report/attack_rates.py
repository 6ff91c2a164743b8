"""Attacks in the terms of ISO/IEC 30107-3: instruments, attempts, and the share that the system accepts.

An instrument is a way to make up typing in another person's name (`keydyn.lab.forgeries`). The attacker has
as much as the instrument can use: the samples that the victim enrolled with, the victim's template, or only
the population. The measure is the impostor attack presentation accept rate, IAPAR: an attempt counts if
`verify` accepts it, including its checks for copies and robots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.decisions.verifier import Verifier
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.lab.forgeries import ENROLLED, KNOWLEDGE, NOTHING, forgers, replayed, stolen
from keydyn.lab.frame.tables import Column, Table, rate_column
from keydyn.lab.standard_report.standard_limits import rate_over_people
from keydyn.population import PopulationModel

# Attempts per instrument and victim, and the largest number of victims.
TRIES, MOST_VICTIMS = 2, 25
ACCEPT = "accept"
COLUMNS = ["attack", "family", "knowledge", "user", "tries", "accepted"]


def forged_claims(
    verifier: Verifier, victims: Mapping[str, tuple[Samples, Samples]], seed: int = 0
) -> pd.DataFrame:
    """A frame of attack, family, knowledge, user, tries and accepted, for each instrument and victim.

    `victims` maps names to the samples that the person enrolled with and later ones, whose keys are sent.
    """
    pattern = verifier.background.pattern
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} has no population to forge from")
    rows = []
    names = list(victims)
    for place in np.unique(
        np.linspace(0, len(names) - 1, min(len(names), MOST_VICTIMS)).astype(int)
    ).tolist():
        user = names[place]
        random = np.random.default_rng([seed, *user.encode()])
        for attack, family, knowledge, sent in _sent(pattern.people, *victims[user], random):
            accepted = sum(one.answer == ACCEPT for one in verifier.verify_many(user, sent))
            rows.append((attack, family, knowledge, user, len(sent), accepted))
    return pd.DataFrame(rows, columns=COLUMNS)


def _sent(
    population: PopulationModel, enrolled: Samples, later: Samples, random: np.random.Generator
) -> Iterator[tuple[str, str, str, Samples]]:
    """The name, family and knowledge of every instrument, and the samples it sends."""
    texts = later[:TRIES]
    for jitter in (0.0, 5.0):
        name = "replay" if jitter == 0 else f"replay, jitter {jitter:g} ms"
        yield name, "replays", ENROLLED, replayed(enrolled[:TRIES], jitter, random)
    for name, forger in forgers(population).items():
        # A template is represented by the samples that it was made from.
        knowledge = max(forger.knowledge, key=KNOWLEDGE.index, default=NOTHING)
        yield name, forger.family, knowledge, forger.forge(stolen(knowledge, enrolled, later), texts, random)


def accepted_by_person(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """One entry per instrument: attempts, and the share of accepted attempts on each person."""
    return [
        {
            "attack": attack,
            "family": family,
            "knowledge": knowledge,
            "attempts": int(some["tries"].sum()),
            "shares": (some["accepted"] / some["tries"]).tolist(),
        }
        for (attack, family, knowledge), some in claims.groupby(COLUMNS[:3], sort=False)
    ]


def attacks_table(attacks: Sequence[Mapping[str, Any]], seed: int = 0) -> Table:
    """IAPAR of each instrument with its interval over people, grouped by family."""
    families = list(dict.fromkeys(one["family"] for one in attacks))
    rows = [
        {
            "family": one["family"],
            "attack": one["attack"],
            "knowledge": one["knowledge"],
            "people": len(one["shares"]),
            "attempts": one["attempts"],
        }
        | rate_over_people(one["shares"], seed).columns("iapar")
        for one in sorted(attacks, key=lambda one: families.index(one["family"]))
    ]
    names = ["family", "attack", "knowledge", "people", "attempts", "iapar", "iapar_low", "iapar_high"]
    columns = [
        Column("Family", "family"),
        Column("Instrument", "attack"),
        Column("The attacker has", "knowledge"),
        Column("People attacked", "people", lambda n: f"{n:,}"),
        Column("Attempts", "attempts", lambda n: f"{n:,}"),
        rate_column("IAPAR", "iapar", "people"),
    ]
    note = (
        "IAPAR: impostor attack presentation accept rate, the share of attempts that verify accepts at its "
        "operating point, its checks for copies and robots included. Mean over people, with 95 % intervals "
        "(bootstrap over people)."
    )
    return Table(
        "presentation_attacks",
        "Attacks by instrument",
        note,
        pd.DataFrame(rows, columns=names),
        columns,
        labels=2,
    )
