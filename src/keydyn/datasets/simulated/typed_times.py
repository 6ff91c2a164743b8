"""The tasks of simulated typists, and the times at which they press and release the keys of a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.datasets.simulated import texts, typed_keys
from keydyn.datasets.simulated.keyboard import KEYS
from keydyn.datasets.simulated.typist_population import DIGRAPHS, TIMES, SimulatedPeople, Streams

# By kind of text: keys per sample, exponent of practice, mistakes per letter.
DEFAULTS: dict[str, tuple[int, float, float]] = {
    "fixed": (0, 0.18, 0.0),
    "copied": (100, 0.0, 0.02),
    "free": (500, 0.0, 0.025),
}
# The least value of each whole number, and the range of every other number, which exceeds realistic values
# but is safe to compute with.
LEAST = {"n_users": 1, "n_samples": 1, "sitting": 1, "first_user": 0, "n_keys": 1}
LIMITS: dict[str, tuple[float, float]] = {
    "practice": (0.0, 1.0),
    "mood": (0.0, 1.0),
    "digraphs": (0.0, 5.0),
    "mistakes": (0.0, 0.5),
    "tick": (0.001, 1000.0),
}
LAST_USER = 2**63 - 1
# The sitting in which a text that speeds up with practice is typed at the person's ordinary speed.
FAMILIAR = 2
# The sitting after which practice has no further effect.
LEARNT = 16
# The largest share of the interval between two presses of the same key for which it can be held.
LONGEST_HOLD = 0.8
# The number of random numbers needed: two for a sample's mood, three for a keystroke.
OF_SAMPLE, OF_KEYSTROKE = 2, 3


@dataclass(frozen=True)
class TypingTask:
    """The arguments of `make_typists`, checked and completed: people, text, amounts and conditions.

    `phrase` holds the numbers of the keys of a fixed text, and is empty for other texts.
    """

    n_users: int
    n_samples: int
    text: str
    n_keys: int
    phrase: Integers
    practice: float
    sitting: int
    mood: float
    digraphs: float
    mistakes: float
    tick: float | None
    first_user: int

    @classmethod
    def of(cls, *arguments: Any) -> TypingTask:
        """Make a task from the arguments of `make_typists`, in order; a `ValueError` names a wrong one."""
        given = {field.name: value for field, value in zip(fields(cls), arguments, strict=True)}
        text = given["text"]
        if text not in DEFAULTS:
            raise ValueError(f"text must be one of {', '.join(DEFAULTS)}, not {text!r}")
        n_keys, *defaults = DEFAULTS[text]
        for name, default in zip(("practice", "mistakes"), defaults, strict=True):
            given[name] = default if given[name] is None else given[name]
        for name in LIMITS:
            if name != "tick" or given[name] is not None:
                given[name] = _number(name, given[name])
        phrase = _phrase(text, given["phrase"], given["mistakes"])
        if given["n_keys"] is None:
            given["n_keys"] = len(phrase) or n_keys
        for name, least in LEAST.items():
            check_whole(name, given[name], least)
            given[name] = int(given[name])
        if given["first_user"] + given["n_users"] - 1 > LAST_USER:
            raise ValueError(f"users are numbered up to {LAST_USER}")
        if text == "fixed" and given["n_keys"] > len(phrase):
            raise ValueError(f"n_keys is {given['n_keys']}, but the phrase has {len(phrase)} keys")
        return cls(**given | {"phrase": phrase[: given["n_keys"]]})

    def practised(self) -> Floats:
        """The change of the average person's ln τ due to practice, (n_samples,)."""
        sittings = np.minimum(1 + np.arange(self.n_samples) // self.sitting, LEARNT)
        added: Floats = -self.practice * np.log(sittings / FAMILIAR)
        return added


def check_whole(name: str, value: Any, least: int) -> None:
    """Raise a `ValueError` unless the value is a whole number, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")


def _number(name: str, value: Any) -> float:
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    low, high = LIMITS[name]
    if not numeric or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def _phrase(text: str, phrase: str | Sequence[str] | None, mistakes: float) -> Integers:
    if text != "fixed":
        if phrase is not None:
            raise ValueError(f"a phrase is for fixed text, not for {text} text")
        return np.empty(0, dtype=np.int64)
    if mistakes:
        raise ValueError("fixed text has no mistakes: an entry with one would not be the phrase")
    phrase = texts.PASSWORD if phrase is None else phrase
    if not isinstance(phrase, Iterable):
        raise ValueError(f"phrase must be a text or names of keys, not {phrase!r}")
    codes = typed_keys.fixed_keys(phrase)
    if len(codes) == 0:
        raise ValueError("the phrase is empty")
    return codes


class Conditions(NamedTuple):
    """The conditions under which U people type n samples."""

    mood: float  # standard deviation over samples of ln time
    practice: Floats  # (U, n) change of ln τ due to practice
    strength: Floats  # (U,) strength of the effect of the previous key
    digraphs: Floats  # (V, V) effect of the previous key on ln τ


class Performance(NamedTuple):
    """Press and release times, milliseconds from the first press, and hidden states; one row per sample."""

    press: Floats
    release: Floats
    states: Integers


def perform(
    keys: Integers, people: SimulatedPeople, task: TypingTask, streams: Streams, users: Integers
) -> Performance:
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
    keys: Integers, normals: Floats, people: SimulatedPeople, conditions: Conditions, typed: Performance
) -> None:
    """Fill `typed` with times and states."""
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
    """Round times to a coarse clock; presses stay apart, and holds positive, by at least one tick."""
    for s in range(len(press)):
        before = -1
        for n in range(press.shape[1]):
            down = max(round(press[s, n] / tick), before + 1)
            up = max(round(release[s, n] / tick), down + 1)
            press[s, n], release[s, n] = down * tick, up * tick
            before = down
