"""How templates age over sittings, and whether an impostor can take over one that is updated.

Scores come from a function, so that any scheme can be asked: given templates and the numbers of samples, how
well each sample fits each template, (n, T). `accept` and `confident` are the scores above which a sample is
accepted and above which it may update a template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers, Truths
from keydyn.decisions.enrolled import BOUND, Updating
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel, Template

Score = Callable[[Sequence[Template], Integers], Floats]

STATIC, RETRAINED, UPDATED, FREE = "static", "retrained", "updated", "updated without bound"
# Larger than any drift.
UNBOUND = 1e6
# One in this number of the others' samples of a sitting is a false claim.
EVERY = 4
ROUNDS = 300


@dataclass(frozen=True, eq=False)
class Course:
    """People who typed in several sittings, and how their samples are judged.

    Attributes
    ----------
    population, samples : the samples are of people that the population was not learnt from
    sittings : (n,) in which sitting each sample was typed, from 0
    score, accept, confident : as described above
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
        """The numbers of a user's samples in some sittings, given as a mask over samples."""
        return np.flatnonzero((self.samples.users == user) & sittings)

    def share_accepted(self, template: Template, which: Integers) -> float:
        return float((self.score([template], which)[:, 0] > self.accept).mean())

    def advanced(self, now: Updating, number: int, bound: float) -> tuple[Updating, float]:
        """After one more sample; and its score before."""
        score = float(self.score([now.template], np.array([number]))[0, 0])
        sample = self.samples[[number]]
        return now.updated(self.population, sample, score > self.confident, bound=bound), score


def ageing(course: Course, enrolled: int) -> pd.DataFrame:
    """kind, user, sitting, and the shares `genuine` and `impostor` accepted, after `enrolled` sittings.

    Static templates stay; retrained ones know all genuine samples of earlier sittings; updated ones saw each
    sample once, after it was judged.
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


def poisoning(
    course: Course, bounds: Sequence[float], rounds: int = ROUNDS, owner_every: int = 0
) -> pd.DataFrame:
    """bound, user, updates, and the shares of the impostor and of the owner accepted before and after.

    Everybody is enrolled from the first sitting. The impostor is the other user with the most confident
    accepts, and sends every other own sample, over and over; those in between are the ones counted. If
    `owner_every` is above 0, the owner sends a sample of the next sitting after that many of the impostor's.
    A user in whose name no one else is ever accepted with confidence has no row.
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
                numbers = [int(sent[r % len(sent)])]
                if owner_every and r % owner_every == owner_every - 1:
                    numbers.append(int(own[r // owner_every % len(own)]))
                for number in numbers:
                    then, _ = course.advanced(now, number, bound)
                    updates += then is not now
                    now = then
            shares = [
                course.share_accepted(one, who) for who in (counted, own) for one in (template, now.template)
            ]
            rows.append((bound, user, updates, *shares))
    columns = ["bound", "user", "updates", "impostor_before", "impostor_after", "owner_before", "owner_after"]
    return pd.DataFrame(rows, columns=columns)
