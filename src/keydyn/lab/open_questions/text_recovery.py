"""The people attacked, those who teach the attacker, and the measurements on each text and template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from keydyn.arrays import Floats
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.study_data import Row, stream
from keydyn.lab.open_questions.guessed_text import Attacker, Guesses
from keydyn.population import PopulationModel, Template
from keydyn.population.shared_parameters import SharedParameters

OWN, ANOTHER, OTHERS = "the person", "another person", "other people"
# At most this many people whose text is guessed, and as many others from whom the attacker learns.
PEOPLE = 20
# The approximate number of keys guessed per person, and the samples to learn from, of the person and of each
# other person.
KEYS, OWN_LESSONS, LESSONS = 110, 50, 2
LONGEST = 250
LENGTHS, GRAINS = (5, 10, 25, 50, 100, 250), (1.0, 8.0, 16.0, 100.0)


def people_of(samples: Samples, seed: int) -> tuple[list[Any], list[Any]]:
    """The people whose text is guessed, and those from whom the attacker learns, drawn at random."""
    users = np.array(sorted(set(samples.users.tolist()), key=str), dtype=object)
    drawn = stream(seed, "text recovery").permutation(users)
    n = min(PEOPLE, len(drawn) // 2)
    if n == 0:
        raise ValueError("text is guessed for one person and learnt from another, but there are fewer than 2")
    return drawn[:n].tolist(), drawn[n : n + PEOPLE].tolist()


def recovery(
    row: Row,
    seed: int,
    numbers: Sequence[int],
    reading: Samples | None,
    lengths: Sequence[int] = LENGTHS,
    grains: Sequence[float] = GRAINS,
) -> pd.DataFrame:
    """Guess the texts of these people, given by number; returns rows made by `Guesses`.

    The last sample of each person is guessed, or several if samples are short. The attacker has a model of
    the person's earlier samples, of as many samples of another person, or of a few samples of each of several
    other people. None of these others is attacked. Texts are also cut to these `lengths`, and times
    rounded to multiples of these `grains` in milliseconds.
    """
    samples, (attacked, teachers) = row.samples, people_of(row.samples, seed)
    each = int(np.median(np.bincount(samples.people[0])))
    n_asked = int(np.clip(KEYS // np.median(samples.sequences.lengths), 1, max(each // 5, 1)))
    several = np.isin(samples.users.astype(object), np.array(teachers, dtype=object))
    of_others = samples[several & (samples.numbers < max(LESSONS, n_asked))]
    others, coarse = Attacker.taught(of_others, reading), _at_each_grain(of_others, grains)
    rows = []
    for number in numbers:
        own = samples[samples.users == attacked[number]]
        before, asked = own[: len(own) - n_asked], own[len(own) - n_asked :]
        other = samples[samples.users == teachers[number % len(teachers)]]
        lessons = {OWN: before[-OWN_LESSONS:], ANOTHER: other[: len(before)][-OWN_LESSONS:]}
        attackers = {who: Attacker.taught(some, reading) for who, some in lessons.items()} | {OTHERS: others}
        guesses = Guesses(asked.first_keys(LONGEST).sequences, [])
        for who, attacker in attackers.items():
            guesses.by_text(who, attacker)
            guesses.by_length(who, attacker, lengths)
        guesses.by_grain(OWN, _at_each_grain(lessons[OWN], grains))
        guesses.by_grain(OTHERS, coarse)
        rows += [{"dataset": row.name, "user": str(attacked[number]), **found} for found in guesses.rows]
    return pd.DataFrame(rows)


def _at_each_grain(lessons: Samples, grains: Sequence[float]) -> dict[float, Attacker]:
    """Attackers who learn from rounded times."""
    return {grain: Attacker.taught(lessons, grain=grain) for grain in grains}


def readings(rows: Sequence[Row], seed: int) -> dict[str, Samples]:
    """The essays to read for each dataset of texts, none by a person whose essay is guessed."""
    essays = {row.name: row.samples for row in rows}.get("essay")
    if essays is None:
        return {}
    _, teachers = people_of(essays, seed)
    writers = np.isin(essays.users.astype(object), np.array(teachers, dtype=object))
    return dict.fromkeys(("essay", "fable"), essays[writers])


def leakage(row: Row) -> pd.DataFrame:
    """Pairs of keys that the templates of every second person reveal, given a population of all others."""
    person = row.samples.people[0]
    population = PopulationModel().fit(row.samples[person % 2 == 0])
    return template_leakage(population, row.samples[person % 2 == 1]).assign(dataset=row.name)


# The number of reweighting steps for least absolute deviations, and the size of negligible deviations.
ITERATIONS, NEGLIGIBLE = 40, 1e-6


def template_leakage(population: PopulationModel, samples: Samples) -> pd.DataFrame:
    """How well a template reveals the pairs of keys that its owner typed at enrolment: one row per user.

    The mean of a pair that was not typed is its expectation under the population given everything else, and
    follows from a few numbers; that of a typed pair does not. As many pairs are guessed as were typed, those
    explained worst: `found` is the share of typed pairs among them, `chance` the share among all pairs. `auc`
    is the probability that a typed pair is explained worse than one that was not typed.
    """
    known = population.parameters
    pairs = slice(known.cells.n_keys, known.cells.n_cells)
    rows: list[dict[str, Any]] = []
    for user in dict.fromkeys(samples.users.tolist()):
        own = samples[samples.users == user]
        typed = np.zeros(known.cells.n_cells, dtype=bool)
        seen = known.seen(own)
        y, cell, _ = known.contexts.standardised(seen.values, seen.around(known.cells.spaces))
        typed[cell[np.isfinite(y)]] = True
        there, left = typed[pairs], unexplained(known, population.enrol(own))[pairs]
        least_explained = np.argsort(-left, kind="stable")[: there.sum()]
        rows.append(
            {
                "user": user,
                "keys": int(own.sequences.n_events),
                "auc": float(roc_auc_score(there, left)),
                "found": float(there[least_explained].mean()),
                "chance": float(there.mean()),
            }
        )
    return pd.DataFrame(rows)


def unexplained(known: SharedParameters, template: Template) -> Floats:
    """The part (C,) of a template's means left by z and key effects under least absolute deviations."""
    V, cells = known.loadings, known.cells
    design = np.column_stack([V, np.eye(cells.n_keys)[cells.key]])
    left = np.ones(cells.n_cells)
    for _ in range(ITERATIONS):
        weighted = design / np.maximum(left, NEGLIGIBLE)[:, None]
        ridge = NEGLIGIBLE * np.eye(design.shape[1])
        found = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ template.mean)
        left = np.abs(template.mean - design @ found)
    return left
