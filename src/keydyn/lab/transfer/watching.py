"""Sessions watched in one place, with limits that were learnt in another.

Each person enrols with five samples, and the next ten are joined to one session, in which the intervals
between samples are missing. In each person's name there are sessions of the person, of some others from the
first key on, and of the person with each of those others taking over in the middle.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from keydyn.arrays import Integers, Truths
from keydyn.decisions.calibration.background import Background
from keydyn.decisions.calibration.learning import locked_at, watched_hours
from keydyn.decisions.calibration.trials import hours_of, suspicion_of
from keydyn.keystrokes.samples import Names, Samples
from keydyn.lab.transfer.claims import templates_of
from keydyn.lab.verification.watch_comparison import keys_until, notice_times, quotient, unnoticed_after

ENROLLED, JOINED = 5, 10
# The number of others who type in each person's name, both from the start and after a takeover.
OTHERS = 3
# The stated rates of lock-outs per hour of genuine typing.
PER_HOUR = (1.0, 3.0)
QUARTERS = {"quarter": 0.75, "three_quarters": 0.25}


def joined(samples: Samples) -> Samples:
    """Join all samples of each person to one, with missing intervals between them."""
    sequences, people = samples.sequences, pd.factorize(samples.users)[0]
    X, offsets = sequences.X.copy(), sequences.offsets
    X[offsets[:-1], (sequences.feature_names or ()).index("tau")] = np.nan
    begins = np.append(offsets[:-1][np.append(True, np.diff(people) != 0)], offsets[-1])
    names: Names = [(user, 0) for user in pd.unique(samples.users)]
    return Samples(names, replace(sequences, X=X, offsets=begins, names=None), samples.emission)


def sessions_for(sessions: Samples, claimed: int, others: list[int]) -> tuple[Samples, Integers]:
    """The sessions in a person's name, and the key in each from which another person types."""
    offsets = sessions.sequences.offsets
    spans = [np.arange(begin, end) for begin, end in pairwise(offsets.tolist())]
    own = spans[claimed]
    half = len(own) // 2
    taken = [np.concatenate([own[:half], spans[v][len(spans[v]) // 2 :]]) for v in others]
    rows = [own, *(spans[v] for v in others), *taken]
    changed = np.array([len(own), *[0] * len(others), *[half] * len(others)], dtype=np.int64)
    every, lengths = np.concatenate(rows), [len(one) for one in rows]
    sequences = replace(
        sessions.sequences,
        X=sessions.sequences.X[every],
        codes=sessions.sequences.codes[every],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        names=None,
    )
    return Samples([(claimed, n) for n in range(len(rows))], sequences, sessions.emission), changed


def watched(background: Background, samples: Samples) -> pd.DataFrame:
    """One row per session and stated rate: `at` is the key, from 0, at which it was locked, or its length."""
    numbers = samples.numbers
    enrol = samples[numbers < ENROLLED]
    sessions = joined(samples[(numbers >= ENROLLED) & (numbers < ENROLLED + JOINED)])
    templates = templates_of(background, enrol)
    people = pd.factorize(enrol.users)[0]
    amounts = np.bincount(people, enrol.sequences.lengths).astype(np.int64).tolist()
    names, parts = list(templates), []
    places = {str(user): n for n, user in enumerate(sessions.users.tolist())}
    watchable = [n for n, name in enumerate(names) if name in places]
    for place, u in enumerate(watchable):
        others = [watchable[(place + 1 + step) % len(watchable)] for step in range(OTHERS)]
        others = [places[names[v]] for v in dict.fromkeys(others) if v != u]
        typed, changed = sessions_for(sessions, places[names[u]], others)
        terms = type(background.pattern).score_events_many(
            [templates[names[u]], *background.beside(names[u])], typed
        )
        offsets = typed.sequences.offsets
        levels, hours = suspicion_of(terms, offsets), hours_of(typed)
        for per_hour in PER_HOUR:
            limit = background.calibrations.lockout_level(per_hour, [amounts[u]])
            at = locked_at(levels, offsets, np.full(len(typed), limit))
            parts.append(
                pd.DataFrame(
                    {
                        "claimed": u,
                        "per_hour": per_hour,
                        "changed": changed,
                        "length": np.diff(offsets),
                        "at": at,
                        "hours": watched_hours(hours, offsets, at),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def watching_figures(sessions: pd.DataFrame, seed: int = 0) -> dict[str, float | None]:
    """False lock-outs per hour, and keys until an impostor is noticed, of sessions at one stated rate."""
    length, changed, at, hours = (sessions[name].to_numpy() for name in ("length", "changed", "at", "hours"))
    people = pd.factorize(sessions["claimed"])[0].astype(np.int64)
    genuine = changed == length
    keys, noticed = keys_until(at, length, changed)
    locked = quotient(noticed[genuine].astype(np.float64), hours[genuine], people[genuine], seed=seed)
    found: dict[str, float | None] = {"genuine_hours": float(hours[genuine].sum())}
    found |= locked.columns("lockouts")
    kinds = {"start": changed == 0, "takeover": ~genuine & (changed > 0) & (at >= changed)}
    for name, which in kinds.items():
        if not which.any():
            continue
        horizon = int(keys[which].max())
        times = notice_times(keys[which], noticed[which], people[which], horizon, seed=seed)
        found |= times.median.columns(f"{name}_median") | times.unnoticed.columns(f"{name}_unnoticed")
        found |= {f"{name}_{part}": value for part, value in quarters(keys[which], noticed[which]).items()}
        found[f"{name}_sessions"] = float(which.sum())
    return found


def quarters(keys: Integers, noticed: Truths) -> dict[str, float]:
    """Keys after which a quarter and three quarters are noticed, by Kaplan and Meier; ∞ if they never are."""
    horizon = int(keys.max())
    at, lasting = np.bincount(keys[noticed], minlength=horizon + 1)[1:], np.bincount(keys)[1:]
    left = unnoticed_after(at[None].astype(np.float64), lasting[::-1].cumsum()[::-1][None].astype(np.float64))
    return {
        name: float(np.argmax(left[0] <= share)) if (left[0] <= share).any() else np.inf
        for name, share in QUARTERS.items()
    }
