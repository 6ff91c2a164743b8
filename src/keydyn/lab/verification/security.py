"""Attacks and ageing templates, measured on people who are not in the training data.

The functions about templates that age, or that an impostor may take over by updates, work with any scoring
scheme: a function that returns scores (n, T), given templates and the numbers of samples. `accept` and
`confident` are the scores above which a sample is accepted and may update a template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.decision import ACCEPT, Targets
from keydyn.decisions.enrolled import BOUND, Updating
from keydyn.decisions.enrolling import CONFIDENT
from keydyn.detectors import PopulationDetector
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study_data import Row
from keydyn.lab.verification.attacks import ENTRIES, Victim, attack_acceptance, copy_rates
from keydyn.lab.verification.measurements import background_of, folds_of
from keydyn.population import PopulationModel, Template

Score = Callable[[Sequence[Template], Integers], Floats]

STATIC, RETRAINED, UPDATED, FREE = "static", "retrained", "updated", "updated without bound"
# A bound larger than any drift.
UNBOUND = 1e6
# One in this many samples of others in a sitting is used as a false claim.
EVERY = 4


@dataclass(frozen=True, eq=False)
class Course:
    """People who typed in several sittings, and the scoring of their samples.

    Attributes
    ----------
    population, samples : a population, and samples of people that it was not learnt from
    sittings : (n,) the sitting in which each sample was typed, from 0
    score, accept, confident : as described for the module
    """

    population: PopulationModel
    samples: Samples
    sittings: Integers
    score: Score
    accept: float
    confident: float

    @property
    def users(self) -> list[Any]:
        return list(dict.fromkeys(self.samples.users.tolist()))

    def of(self, user: Any, sittings: Truths) -> Integers:
        """The numbers of a user's samples in some sittings, which are given as a mask over samples."""
        return np.flatnonzero((self.samples.users == user) & sittings)

    def share_accepted(self, template: Template, which: Integers) -> float:
        return float((self.score([template], which)[:, 0] > self.accept).mean())

    def advanced(self, now: Updating, number: int, bound: float) -> tuple[Updating, float]:
        """The template after one more sample, and the sample's score before the update."""
        score = float(self.score([now.template], np.array([number]))[0, 0])
        sample = self.samples[[number]]
        return now.updated(self.population, sample, score > self.confident, bound=bound), score


def ageing(course: Course, enrolled: int) -> pd.DataFrame:
    """A frame of kind, user, sitting, and the shares of `genuine` and `impostor` samples accepted.

    Users enrol in the first `enrolled` sittings. Static templates never change; retrained ones use all
    genuine samples of earlier sittings; updated ones are updated with each sample once, after it was judged.
    """
    rows = []
    for user in course.users:
        template = course.population.enrol(course.samples[course.of(user, course.sittings < enrolled)])
        bounds = {UPDATED: BOUND, FREE: UNBOUND}
        now = {kind: Updating.of(template) for kind in bounds}
        for sitting in range(enrolled, int(course.sittings.max()) + 1):
            here = course.sittings == sitting
            own = course.of(user, here)
            others = np.flatnonzero(here & (course.samples.users != user))[::EVERY]
            earlier = course.of(user, course.sittings < sitting)
            current = {STATIC: template, RETRAINED: course.population.enrol(course.samples[earlier])}
            genuine = {kind: course.share_accepted(one, own) for kind, one in current.items()}
            for kind, bound in bounds.items():
                accepted = []
                for number in own.tolist():
                    now[kind], score = course.advanced(now[kind], number, bound)
                    accepted.append(score > course.accept)
                genuine[kind] = float(np.mean(accepted))
                current[kind] = now[kind].template
            for kind, one in current.items():
                rows.append((kind, user, sitting, genuine[kind], course.share_accepted(one, others)))
    return pd.DataFrame(rows, columns=["kind", "user", "sitting", "genuine", "impostor"])


def poisoning(course: Course, bounds: Sequence[float], rounds: int) -> pd.DataFrame:
    """A frame of bound, user, updates, and the shares of impostor and owner accepted before and after.

    All users enrol with the first sitting. The impostor is the other user with the highest share of confident
    acceptances, and sends every second sample of their own, over and over; the shares are of the samples in
    between. A user for whom no one else is ever accepted with confidence has no row.
    """
    first, next_one = course.sittings == 0, course.sittings == 1
    templates = {
        user: course.population.enrol(course.samples[course.of(user, first)]) for user in course.users
    }
    every = np.arange(len(course.samples))
    scores = course.score(list(templates.values()), every)
    rows = []
    for k, (user, template) in enumerate(templates.items()):
        confident = pd.Series(scores[:, k] > course.confident).groupby(course.samples.users).mean()
        confident = confident.drop(user)
        if confident.max() == 0:
            continue
        theirs = np.flatnonzero(course.samples.users == confident.idxmax())
        sent, counted = theirs[::2], theirs[1::2]
        own = course.of(user, next_one)
        for bound in bounds:
            now, updates = Updating.of(template), 0
            for r in range(rounds):
                then, _ = course.advanced(now, int(sent[r % len(sent)]), bound)
                updates += then is not now
                now = then
            shares = [
                course.share_accepted(one, who) for who in (counted, own) for one in (template, now.template)
            ]
            rows.append((bound, user, updates, *shares))
    columns = ["bound", "user", "updates", "impostor_before", "impostor_after", "owner_before", "owner_after"]
    return pd.DataFrame(rows, columns=columns)


ATTACKED, SITTINGS = ("password", "fable"), "password"
# The frames that these measurements make.
SECURITY = ATTACKS, COPIES, AGEING, POISONING = "attacks", "copies", "ageing", "poisoning"
# The folds whose people are attacked, and whose templates age.
HELD_OUT = (0, 1)
VICTIMS, QUERIES = 20, 4
# Samples used per sitting of password, and repetitions per sitting in the dataset.
EACH, REPETITIONS = 10, 50
ROUNDS = 100
# At most this many samples of each person are known, so that copies of them can be recognised.
KNOWN = 20


def security_pieces(rows: Sequence[Row], seed: int) -> dict[str, list[Piece]]:
    """The pieces of work that these datasets support, by the frame that each adds rows to."""
    pieces: dict[str, list[Piece]] = {name: [] for name in SECURITY}
    for row in rows:
        events = float(row.samples.sequences.n_events)
        if row.name in (*ATTACKED, SIMULATED):
            pieces[ATTACKS].append(_piece(row, seed, ATTACKS, _attacks, events, "attacks"))
        if row.name != "mobile+":
            pieces[COPIES].append(_piece(row, seed, COPIES, _copies, events, "copies"))
        if row.name == SITTINGS:
            pieces[AGEING].append(_piece(row, seed, AGEING, _ageing, 3 * events, "templates that age"))
            pieces[POISONING].append(
                _piece(row, seed, POISONING, _poisoning, 3 * events, "poisoned templates")
            )
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
    """The frame of `attack_acceptance`: each attack on each victim, at the operating threshold."""
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
    """The frame of `copy_rates`, with half of each person's samples known, but at most `KNOWN`."""
    counts = np.bincount(pd.factorize(row.samples.users)[0])
    return copy_rates(row.samples, min(KNOWN, int(np.median(counts)) // 2), seed)


def _course(row: Row, seed: int) -> Course:
    """Some samples of each held-out person in all sittings, and their scoring."""
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
    """Open-set scores (n, U) under plain templates."""
    others = [one.template_ for one in background.others if isinstance(one, PopulationDetector)]
    raw = population.log_likelihoods([*templates, *others], samples, n_jobs=1)
    U = len(templates)
    return open_set_scores(raw[:, :U], raw[:, U:], samples.sequences.lengths)
