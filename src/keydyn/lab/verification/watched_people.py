"""Sessions for the comparison of ways to watch: genuine ones, impostors', and changes in mid-session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.decisions.calibration.trials import MS_PER_HOUR
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.schema import SAMPLE, sample_lengths, sample_starts
from keydyn.lab.verification.watch_comparison import TriedSessions
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

# The number of impostors who type in each person's name from the start, and of those who take over in
# mid-session.
OTHERS = 3

# The claimed person, the key at which another person takes over, terms (N, 1 + C) and hours (N,).
_Session = tuple[Any, int, Floats, Floats]


def watched_people(
    keystrokes: pd.DataFrame,
    model: PopulationModel,
    cohort: Sequence[Template],
    fold: int = 0,
    others: int = OTHERS,
) -> tuple[TriedSessions, Floats]:
    """Sessions of people from whom neither the population nor the cohort was learnt, and their terms.

    Each session is watched in turn, and the template of the claimed person is enrolled from that person's
    other sessions. There are three kinds of sessions for each claimed person: one that this person types;
    some that another person types from the start; and some that another person takes over in the middle.
    `others` is the number of other people. Keys after a change are scored with the state carried over from
    before it. The terms are (N, 1 + C), the claimed person's first.
    """
    samples = recorded_samples(keystrokes)
    parts: list[_Session] = []
    users, numbers = samples.users, samples.index.get_level_values("session").to_numpy()
    for session in pd.unique(numbers):
        typed = keystrokes[keystrokes["session"] == session].reset_index(drop=True)
        people = [user for user in pd.unique(typed["user"]) if (users == user).sum() > 1]
        templates = [model.enrol(samples[(users == user) & (numbers != session)]) for user in people]
        n, middle = len(people), int(typed.groupby("user").size().min()) // 2
        steps = range(min(others, n - 1) + 1)
        claims = [(u, (u + step) % n) for u in range(n) for step in steps]
        taken = [(u, v) for u, v in claims if u != v]
        pairs = [((people[u], session), (people[v], session)) for u, v in taken]
        typists = typed["user"].iloc[sample_starts(typed)]
        whole = dict(zip(typists, _scored(typed, templates, model, cohort), strict=True))
        for u, v in claims:
            terms, hours = whole[people[v]]
            columns = [u, *range(n, terms.shape[1])]
            parts.append((people[u], len(terms) if u == v else 0, terms[:, columns], hours))
        if pairs and middle:
            changed = swapped(typed, pairs, middle)
            for q, (terms, hours) in enumerate(_scored(changed, templates, model, cohort)):
                u = taken[q][0]
                parts.append((people[u], middle, terms[:, [u, *range(n, terms.shape[1])]], hours))
    if not parts:
        raise ValueError("no user has two sessions, one to enrol with and one to watch")
    sizes = [len(hours) for *_, hours in parts]
    sessions = TriedSessions(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([hours for *_, hours in parts]),
        np.array([claimed for claimed, *_ in parts]),
        np.array([changed for _, changed, *_ in parts], dtype=np.int64),
        np.full(len(parts), fold, dtype=np.int64),
    )
    return sessions, np.concatenate([terms for _, _, terms, _ in parts])


def together(parts: Sequence[tuple[TriedSessions, Floats]]) -> tuple[TriedSessions, Floats]:
    """Concatenate the sessions of several folds, and their terms."""
    several = [sessions for sessions, _ in parts]
    lengths = np.concatenate([sessions.lengths for sessions in several])
    return TriedSessions(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([sessions.hours for sessions in several]),
        np.concatenate([sessions.claimed for sessions in several]),
        np.concatenate([sessions.changed for sessions in several]),
        np.concatenate([sessions.folds for sessions in several]),
    ), np.concatenate([terms for _, terms in parts])


def _scored(
    typed: pd.DataFrame, templates: Sequence[Template], model: PopulationModel, cohort: Sequence[Template]
) -> Iterator[tuple[Floats, Floats]]:
    """The terms of each sample under all templates and then the cohort, and the hours at its keys."""
    samples = recorded_samples(typed)
    terms = model.event_log_likelihoods([*templates, *cohort], samples)
    press = typed["timepress"].to_numpy(dtype=np.float64)
    for begin, end in pairwise(samples.sequences.offsets.tolist()):
        yield terms[begin:end], (press[begin:end] - press[begin]) / MS_PER_HOUR


Sample = tuple[Any, Any]


def swapped(keystrokes: pd.DataFrame, pairs: Sequence[tuple[Sample, Sample]], keys: int) -> pd.DataFrame:
    """Sessions in which the second person of each pair takes over after the first `keys` keystrokes.

    `pairs` are two samples, (user, session) each. In the result, `user` is the first person and `session` the
    number of the pair. The second person's first interval is the one they typed in their own session, as if
    there had been no pause at the change, because a pause would give it away.
    """
    if not pairs:
        raise ValueError("there are no pairs of samples")
    starts = sample_starts(keystrokes)
    lengths = sample_lengths(starts, len(keystrokes))
    names = keystrokes.iloc[starts][SAMPLE].itertuples(index=False, name=None)
    places = {name: (start, length) for name, start, length in zip(names, starts, lengths, strict=True)}
    rows, shifts, numbers, users = [], [], [], []
    press = keystrokes["timepress"].to_numpy()
    for number, pair in enumerate(pairs):
        for name in pair:
            if name not in places or not 0 < keys < places[name][1]:
                raise ValueError(f"user {name[0]} has no session {name[1]} with more than {keys} keystrokes")
        (first, _), (second, length) = (places[name] for name in pair)
        some = np.concatenate([np.arange(first, first + keys), np.arange(second + keys, second + length)])
        shift = np.zeros(len(some), dtype=press.dtype)
        shift[keys:] = press[first + keys - 1] - press[second + keys - 1]
        rows.append(some)
        shifts.append(shift)
        numbers += [number] * len(some)
        users += [pair[0][0]] * len(some)
    joined = keystrokes.iloc[np.concatenate(rows)].reset_index(drop=True)
    shift = np.concatenate(shifts)
    return joined.assign(
        user=users,
        session=numbers,
        timepress=joined["timepress"] + shift,
        timerelease=joined["timerelease"] + shift,
    )
