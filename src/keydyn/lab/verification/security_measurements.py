"""Attacks and ageing templates, measured on people from whom nothing was learnt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.decision import ACCEPT, Targets
from keydyn.decisions.enrolled import BOUND
from keydyn.decisions.enrolling import CONFIDENT
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.dataset_rows import Row
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.verification.ageing import UNBOUND, Course, ageing, poisoning
from keydyn.lab.verification.attacks import ENTRIES, Victim, attack_acceptance, copy_rates
from keydyn.lab.verification.measurements import background_of, folds_of
from keydyn.population import PopulationModel, Template

ATTACKED, SITTINGS = ("password", "fable"), "password"
ATTACKS, COPIES, AGEING, POISONING = "attacks", "copies", "ageing", "poisoning"
# The people of these folds are attacked, and age.
HELD_OUT = (0, 1)
VICTIMS, QUERIES = 20, 4
# Samples of each of password's sittings that are looked at; repetitions of each sitting.
EACH, REPETITIONS = 10, 50
ROUNDS = 100
# Samples of each person whose copies are recognised, at most.
KNOWN = 20


def security_pieces(rows: Sequence[Row], seed: int) -> list[Piece]:
    """The pieces of work that these datasets allow."""
    pieces = []
    for row in rows:
        events = float(row.samples.sequences.n_events)
        if row.name in (*ATTACKED, SIMULATED):
            pieces.append(_piece(row, seed, ATTACKS, _attacks, events, "attacks"))
        if row.name != "mobile+":
            pieces.append(_piece(row, seed, COPIES, _copies, events, "copies"))
        if row.name == SITTINGS:
            pieces.append(_piece(row, seed, AGEING, _ageing, 3 * events, "templates that age"))
            pieces.append(_piece(row, seed, POISONING, _poisoning, 3 * events, "poisoned templates"))
    return pieces


def _piece(row: Row, seed: int, what: str, make: Any, cost: float, words: str) -> Piece:
    name = f"{row.name}-{what}"
    inputs = inputs_of(row, PopulationDetector()) | {
        "what": what,
        "seed": seed,
        "numbers": [HELD_OUT, VICTIMS, QUERIES, EACH, CONFIDENT, ROUNDS, ENTRIES, BOUND, KNOWN],
    }
    return Piece((name,), inputs, [partial(_labelled, make, row, seed)], f"{row.name} · {words}", cost)


def _labelled(make: Any, row: Row, seed: int) -> pd.DataFrame:
    frame: pd.DataFrame = make(row, seed).assign(dataset=row.name)
    return frame.astype({"user": str})


def _attacks(row: Row, seed: int) -> pd.DataFrame:
    """As `attack_acceptance` has it: each attack on each victim, at the operating threshold."""
    background, population = _with_population(row, seed)
    people, folds = folds_of(row, seed)
    split = row.protocol.splits(row.samples)[0]
    victims = []
    for u in np.flatnonzero(np.isin(folds, HELD_OUT))[:VICTIMS].tolist():
        recorded = row.samples[split.train & (people == u)]
        queries = row.samples[np.flatnonzero(split.genuine & (people == u))[:QUERIES]]
        victims.append(Victim(u, population.enrol(recorded), recorded, queries))
    templates = {victim.user: victim.template for victim in victims}

    def judge(users: Sequence[Any], sent: Samples) -> Truths:
        scores = _scores(background, population, [templates[user] for user in users], sent)
        keys = np.broadcast_to(sent.sequences.lengths[:, None], scores.shape)
        calibration = background.calibrations.at(templates[users[0]].n_events)
        answers = Targets().answers(calibration.meanings(scores.ravel(), keys.ravel()))
        accepted: Truths = (np.array(answers) == ACCEPT).reshape(scores.shape)
        return accepted

    return attack_acceptance(population, victims, judge, seed)


def _copies(row: Row, seed: int) -> pd.DataFrame:
    """Fresh samples, copies and robots, where half of each person's samples are known, `KNOWN` at most."""
    counts = np.bincount(pd.factorize(row.samples.users)[0])
    return copy_rates(row.samples, min(KNOWN, int(np.median(counts)) // 2), seed)


def _course(row: Row, seed: int) -> Course:
    """Some samples of each held-out person in all sittings, and how they are judged."""
    background, population = _with_population(row, seed)
    people, folds = folds_of(row, seed)
    numbers = row.samples.numbers
    step = REPETITIONS // EACH
    chosen = np.isin(folds[people], HELD_OUT) & (numbers % step == 0)
    samples = row.samples[chosen]
    keys = int(np.median(samples.sequences.lengths))

    def score(templates: Sequence[Template], which: Integers) -> Floats:
        return _scores(background, population, templates, samples[which])

    calibration = background.calibrations.at(EACH * keys)
    return Course(
        population,
        samples,
        numbers[chosen] // REPETITIONS,
        score,
        calibration.threshold(Targets().false_match, keys),
        calibration.threshold(CONFIDENT, keys),
    )


def _ageing(row: Row, seed: int) -> pd.DataFrame:
    return ageing(_course(row, seed), enrolled=1)


def _poisoning(row: Row, seed: int) -> pd.DataFrame:
    return poisoning(_course(row, seed), (BOUND, UNBOUND), ROUNDS)


def _with_population(row: Row, seed: int) -> tuple[Background, PopulationModel]:
    background = background_of(row, seed, HELD_OUT)
    pattern = background.pattern
    if not isinstance(pattern, PopulationDetector):
        raise ValueError(f"{pattern.name} has no population")
    return background, pattern.people


def _scores(
    background: Background, population: PopulationModel, templates: Sequence[Template], samples: Samples
) -> Floats:
    """(n, U) open-set scores under plain templates."""
    others = [one.template_ for one in background.others if isinstance(one, PopulationDetector)]
    raw = population.log_likelihoods([*templates, *others], samples, n_jobs=1)
    U = len(templates)
    return open_set_scores(raw[:, :U], raw[:, U:], samples.sequences.lengths)
