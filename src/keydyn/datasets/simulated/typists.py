"""Simulated typists for demonstrations, tests and benchmarks, from one person to a million."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.datasets.simulated import typed_keys, typist_population
from keydyn.datasets.simulated.keyboard import KEYS
from keydyn.datasets.simulated.typed_times import LAST_USER, TypingTask, check_whole, perform
from keydyn.datasets.simulated.typist_population import SimulatedPeople, Streams
from keydyn.model import POHMM

# The number of keystrokes processed at a time, which limits the memory needed beyond the result.
BATCH = 250_000


def make_typists(
    n_users: int = 10,
    n_samples: int = 8,
    text: str = "fixed",
    n_keys: int | None = None,
    *,
    phrase: str | Sequence[str] | None = None,
    practice: float | None = None,
    sitting: int = 1,
    mood: float = 0.1,
    digraphs: float = 1.0,
    mistakes: float | None = None,
    tick: float | None = None,
    first_user: int = 0,
    return_states: bool = False,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Simulate the keystrokes of people: `user, session, keyname, timepress, timerelease`, in milliseconds.

    Every person is a POHMM of their own (`simulated_typist`), with a speed, a touch, a way of pausing, and
    habits at every key. For a given seed, user k is the same person whatever else is simulated, and types the
    same samples under the same conditions and with the same number of keys per sample, however many there
    are. A population of any size can therefore be made a few people at a time, by `first_user`.

    Parameters
    ----------
    n_users
        Number of people.
    n_samples
        Number of samples per person (their sessions, numbered from 0).
    text
        "fixed": all type the same phrase; "copied": all copy the same passages, a different one in each
        sample; "free": all write sentences, with words that each person favours to a different degree.
    n_keys
        Keystrokes per sample, mistakes included. By default the whole phrase, 100 copied, 500 free.
    phrase
        The fixed text; by default a password of 11 keys with shift and enter.
        `keydyn.datasets.simulated.texts.NUMBER` is one for the number pad.
    practice
        Intervals fall with the number of the sitting to the power of −practice, on average. By default 0.18
        for fixed text, which is new to all, and 0 for ordinary text. After 16 sittings it is learnt.
    sitting
        Number of samples typed in one sitting.
    mood
        Standard deviation of ln time between samples of a person.
    digraphs
        Strength of the effect of the previous key: same hand slower, other hand faster.
    mistakes
        Probability that a wrong letter is pressed instead of the right one, and then deleted by backspace. By
        default 0.02 for copied and 0.025 for free text; fixed text has none.
    tick
        The clock's tick in ms: times are whole multiples of it, such as 15.6 in many recordings. By default
        times are exact.
    first_user
        Number of the first person.
    return_states
        Whether to add the column `state`: 0 active, 1 passive.
    random_state
        The seed.

    Notes
    -----
    With `mood=0, practice=0, digraphs=0`, samples are drawn from exactly the POHMM that `simulated_typist`
    returns, except that a key is always released before it is pressed again. The defaults roughly reproduce
    measurements on the paper's five datasets of real typing. They were set by hand; the differences between
    people were increased until a POHMM identified them about as well as the published tables report for real
    people (keypad, fable), so accuracies on simulated typists are not independent evidence:

    ======================== ======================================= ===================================
    quantity                 real recordings                         simulated
    ======================== ======================================= ===================================
    mean τ, running text     264 and 284 ms                          220 to 290 ms
    median τ, running text   172 ms                                  150 to 200 ms
    mean τ by user           115 to 733 ms                           100 to 750 ms for 19 users of 20
    mean τ, password         317 ms in the first of eight sittings,  290 to 370 ms, then by the same
                             0.77 of it in the 4th, 0.69 in the 8th  shares less
    mean τ, number pad       376 ms                                  330 to 420 ms
    τ above 1 s              1.1 to 3.7 %                            1 to 4 %
    median hold time         68 to 100 ms                            70 to 110 ms
    next press before this   running text 17 and 19 %, password      running text 10 to 20 %, password
    release                  11 %, number pad 0.2 %                  5 to 20 %, number pad below 2 %
    backspace, running text  3.1 and 4.5 % of keys                   2 to 5 %
    ======================== ======================================= ===================================

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> typing = make_typists(n_users=3, n_samples=4, text="copied", n_keys=50)
    >>> typing.columns.tolist()
    ['user', 'session', 'keyname', 'timepress', 'timerelease']
    >>> len(typing) == 3 * 4 * 50
    True
    """
    conditions = practice, sitting, mood, digraphs, mistakes, tick
    task = TypingTask.of(n_users, n_samples, text, n_keys, phrase, *conditions, first_user)
    return simulated_keystrokes(task, Streams(random_state), return_states)


def simulated_typist(user: int, keys: Sequence[str] = KEYS, random_state: Any = 0) -> POHMM:
    """The model of a user of `make_typists`, over some keys; its features are hold time and τ."""
    check_whole("user", user, 0)
    if user > LAST_USER:
        raise ValueError(f"users are numbered up to {LAST_USER}")
    if isinstance(keys, str) or len(keys) == 0:
        raise ValueError(f"keys must be names of keys, not {keys!r}")
    people = typist_population.draw_people(Streams(random_state), np.array([user]))
    return typist_population.as_model(people, 0, list(keys))


def simulated_keystrokes(
    task: TypingTask, streams: Streams, return_states: bool, batch_size: int = BATCH
) -> pd.DataFrame:
    """Simulate the keystrokes of all people, in batches of about `batch_size` keystrokes."""
    count, per_user = task.n_users, task.n_samples * task.n_keys
    users = np.arange(count) + task.first_user
    keys, states = np.empty(count * per_user, dtype=np.int64), np.empty(count * per_user, dtype=np.int64)
    press, release = np.empty(count * per_user), np.empty(count * per_user)
    step = max(1, batch_size // per_user)
    for first in range(0, count, step):
        batch = users[first : first + step]
        rows = slice(first * per_user, (first + len(batch)) * per_user)
        people = typist_population.draw_people(streams, batch)
        pressed = _keys(task, people, streams, batch)
        typed = perform(pressed, people, task, streams, batch)
        keys[rows], press[rows], release[rows], states[rows] = (
            values.ravel() for values in (pressed, *typed)
        )
    columns: dict[str, Any] = {
        "user": np.repeat(users, per_user),
        "session": np.tile(np.repeat(np.arange(task.n_samples), task.n_keys), count),
        "keyname": pd.Series(KEYS).array.take(keys),
        "timepress": press,
        "timerelease": release,
    }
    if return_states:
        columns["state"] = states
    return pd.DataFrame(columns, copy=False)


def _keys(task: TypingTask, people: SimulatedPeople, streams: Streams, users: Integers) -> Integers:
    """The keys that are pressed, one row per sample."""
    if task.text == "fixed":
        return np.tile(task.phrase, (len(users) * task.n_samples, 1))
    if task.text == "copied":
        clean = np.tile(typed_keys.copied_keys(task.n_samples, task.n_keys), (len(users), 1))
    else:
        clean = typed_keys.free_keys(streams, users, task.n_samples, task.n_keys)
    return typed_keys.with_mistakes(clean, task.mistakes * people.mistakes, streams, users)
