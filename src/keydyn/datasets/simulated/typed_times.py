"""When a simulated typist presses and releases the keys of a text: hidden states, then times."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.datasets.simulated.keyboard import KEYS
from keydyn.datasets.simulated.random_streams import TIMES, Streams
from keydyn.datasets.simulated.typing_task import Task
from keydyn.datasets.simulated.typist_population import DIGRAPHS, People

# A finger must come up before it can press its key again: the largest share of the interval it stays down.
LONGEST_HOLD = 0.8
# Random numbers needed: two for a sample's mood, three for a keystroke.
OF_SAMPLE, OF_KEYSTROKE = 2, 3


class Conditions(NamedTuple):
    """Under which U people type n samples.

    Attributes
    ----------
    mood : standard deviation over samples of ln time
    practice : (U, n) what practice adds to ln τ
    strength : (U,) how strongly the previous key matters; digraphs : (V, V) its effect on ln τ
    """

    mood: float
    practice: Floats
    strength: Floats
    digraphs: Floats


class Performance(NamedTuple):
    """Press and release times, milliseconds from the first press, and hidden states; one row per sample."""

    press: Floats
    release: Floats
    states: Integers


def perform(keys: Integers, people: People, task: Task, streams: Streams, users: Integers) -> Performance:
    """Times and states for `keys`, (U · n_samples, n_keys), with the samples of each user together."""
    n_keys = keys.shape[1]
    normals = streams.normals(users, TIMES, (task.n_samples, OF_SAMPLE + OF_KEYSTROKE * n_keys))
    practice = people.practice[:, None] * task.practised()
    conditions = Conditions(task.mood, practice, task.digraphs * people.digraphs, DIGRAPHS)
    typed = Performance(np.empty(keys.shape), np.empty(keys.shape), np.empty(keys.shape, dtype=np.int64))
    _press_and_release(keys, normals, people, conditions, typed)
    _lift(keys, typed.press, typed.release, len(KEYS))
    if task.tick is not None:
        _round_to_clock(typed.press, typed.release, task.tick)
    return typed


@compiled
def _press_and_release(
    keys: Integers, normals: Floats, people: People, conditions: Conditions, typed: Performance
) -> None:
    """Fill `typed`."""
    mood, practice, strength, digraphs = conditions
    press, release, states = typed
    tau, tau_spread, touch, touch_spread = people.tau, people.tau_spread, people.touch, people.touch_spread
    pause_start, pause_at, pause_after = people.pause_start, people.pause_at, people.pause_after
    persistence = people.persistence
    n_users, n_samples = practice.shape
    n_keys = keys.shape[1]
    for u in range(n_users):
        for s in range(n_samples):
            row = u * n_samples + s
            slower = mood * normals[u, s, 0] + practice[u, s]
            heavier = mood * normals[u, s, 1]
            now, before, state = 0.0, 0, 0
            for n in range(n_keys):
                key = keys[row, n]
                draw = OF_SAMPLE + OF_KEYSTROKE * n
                if n == 0:
                    threshold = pause_start[u, key]
                else:
                    threshold = pause_after[u, before] + pause_at[u, key] + persistence[u] * state
                state = 1 if normals[u, s, draw] < threshold else 0
                if n > 0:
                    way = tau[u, key, state] + slower + strength[u] * digraphs[before, key]
                    now += math.exp(way + tau_spread[u, state] * normals[u, s, draw + 1])
                hold = touch[u, key, state] + heavier
                press[row, n] = now
                release[row, n] = now + math.exp(hold + touch_spread[u, state] * normals[u, s, draw + 2])
                states[row, n] = state
                before = key


@compiled
def _lift(keys: Integers, press: Floats, release: Floats, n_types: int) -> None:
    """Release each key before it is pressed again."""
    for s in range(len(keys)):
        again = np.full(n_types, np.inf)
        for n in range(keys.shape[1] - 1, -1, -1):
            key = keys[s, n]
            latest = press[s, n] + LONGEST_HOLD * (again[key] - press[s, n])
            release[s, n] = min(release[s, n], latest)
            again[key] = press[s, n]


@compiled
def _round_to_clock(press: Floats, release: Floats, tick: float) -> None:
    """Times as a coarse clock gives them; presses stay apart, and holds positive, by at least one tick."""
    for s in range(len(press)):
        before = -1
        for n in range(press.shape[1]):
            down = max(round(press[s, n] / tick), before + 1)
            up = max(round(release[s, n] / tick), down + 1)
            press[s, n], release[s, n] = down * tick, up * tick
            before = down
