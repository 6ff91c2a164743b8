"""The population that simulated typists are drawn from: each person is a POHMM with two states.

State 0 is active, state 1 passive. Intervals τ and hold times are log-normal given the key and the state. The
probability that a key is typed passively is a probit of the person's threshold plus the effects of the key,
of the key before and of the state before. Every number here is a coarse choice, made to reproduce the
summaries listed in the notes of `make_typists`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.datasets.simulated import keyboard
from keydyn.datasets.simulated.keyboard import CODES, DIGITS, KEYS, LETTERS, NUMPAD, PUNCTUATION
from keydyn.model.data.fit_settings import generator_of

if TYPE_CHECKING:
    from keydyn.model import POHMM

# Each purpose has its own random numbers, so that a person does not change with the text typed.
PERSON, TIMES, PREFERENCES, WORDS, MISTAKES = range(5)
# Traits of people: mean and standard deviation of a normal distribution. `speed` and `touch` are in ln
# milliseconds, a `_spread` is the logarithm of a standard deviation of ln time, `pausing` and `persistence`
# are in units of the probit, and the last two are logarithms of factors.
TRAITS: dict[str, tuple[float, float]] = {
    "speed": (np.log(161.0), 0.26),
    "touch": (np.log(93.0), 0.19),
    "active_spread": (np.log(0.24), 0.25),
    "passive_spread": (np.log(0.68), 0.12),
    "touch_spread": (np.log(0.16), 0.25),
    "pause_length": (1.05, 0.18),
    "pause_touch": (0.10, 0.06),
    "pausing": (-1.50, 0.22),
    "persistence": (0.45, 0.20),
    "digraphs": (1.0, 0.35),
    "practice": (0.0, 0.25),
    "mistakes": (0.0, 0.45),
}
# A slow typist also holds keys longer: the share of `speed` that `touch` takes over.
TOUCH_FOLLOWS_SPEED = 0.25
# Standard deviation over people at each key: ln τ, ln hold time, threshold of pausing.
KEY_HABITS = (0.20, 0.15, 0.30)
START_THRESHOLD = 0.3
# ln τ after the same key, the same finger, the same hand, the other hand.
DIGRAPHS = keyboard.digraphs(repeat=0.05, same_finger=0.16, same_hand=0.06, other_hand=-0.07)


class Streams:
    """Streams of random numbers, one for each user and purpose.

    Philox is a function of a key and a counter: the key comes from the seed, and the user and the purpose are
    the counter's upper half, so that streams never overlap (2¹²⁸ blocks each) and none has to be stored.
    """

    def __init__(self, random_state: Any) -> None:
        key = generator_of(random_state).integers(0, 2**64, size=2, dtype=np.uint64)
        self._philox = np.random.Philox(key=key)
        self._state: Any = self._philox.state
        self._generator = np.random.Generator(self._philox)

    def normals(self, users: Integers, purpose: int, shape: tuple[int, ...]) -> Floats:
        """Standard normal numbers (U, *shape), of which a smaller `shape[0]` gives the first."""
        drawn = np.empty((len(users), *shape))
        for row, user in zip(drawn, users.tolist(), strict=True):
            self._turn_to(user, purpose).standard_normal(out=row)
        return drawn

    def uniforms(self, users: Integers, purpose: int, shape: tuple[int, ...]) -> Floats:
        """Uniform numbers (U, *shape) in [0, 1), of which a smaller `shape[0]` gives the first."""
        drawn = np.empty((len(users), *shape))
        for row, user in zip(drawn, users.tolist(), strict=True):
            self._turn_to(user, purpose).random(out=row)
        return drawn

    def _turn_to(self, user: int, purpose: int) -> np.random.Generator:
        self._state["state"]["counter"][:] = 0, 0, user, purpose
        self._philox.state = self._state
        return self._generator


def _by_key(effects: dict[tuple[str, ...], float]) -> Floats:
    """The effect of each key, (V,); for a key in several groups, their effects add up."""
    table = np.zeros(len(KEYS))
    for keys, effect in effects.items():
        table[[CODES[key] for key in keys]] += effect
    return table


KEY_TAU = _by_key(
    {tuple("qzxjkvb"): 0.10, tuple("zxcvbnm"): 0.06, DIGITS: 0.35, NUMPAD: 0.55, PUNCTUATION: 0.25}
    | {("space",): -0.08, ("shift",): 0.25, ("enter",): 0.40, ("backspace",): 0.05}
)
KEY_TOUCH = _by_key(
    {tuple("qazp"): 0.06, NUMPAD: -0.15, PUNCTUATION: -0.05}
    | {("space",): -0.02, ("shift",): 0.40, ("enter", "backspace"): -0.08}
)
PAUSE_AT = _by_key(
    {DIGITS: 0.25, NUMPAD: -0.15, PUNCTUATION: 0.50}
    | {("space",): 0.40, ("shift", "backspace"): 0.70, ("enter",): 0.45}
)
PAUSE_AFTER = _by_key(
    {LETTERS: -0.05, PUNCTUATION: 0.20, ("space",): 0.55, ("shift",): 0.30, ("enter", "backspace"): 0.40}
)


class SimulatedPeople(NamedTuple):
    """The parameters of U people at V keys."""

    # (U, V, 2) means of ln τ and ln hold time by key and state
    tau: Floats
    # (U, 2) their standard deviations by state
    tau_spread: Floats
    touch: Floats
    touch_spread: Floats
    pause_start: Floats  # (U, V) threshold of a passive first key; Φ of a threshold is the probability
    # (U, V) effects of a later key, and of the key before it, on the threshold
    pause_at: Floats
    pause_after: Floats
    persistence: Floats  # (U,) effect of a preceding passive state on the threshold
    # (U,) strength relative to the average person
    digraphs: Floats
    practice: Floats
    mistakes: Floats


def draw_people(streams: Streams, users: Integers) -> SimulatedPeople:
    """Draw the people with these numbers."""
    drawn = streams.normals(users, PERSON, (len(TRAITS) + 3 * len(KEYS),))
    mean, deviation = np.array(list(TRAITS.values())).T
    values = mean + deviation * drawn[:, : len(TRAITS)]
    trait = dict(zip(TRAITS, values.T, strict=True))
    habits = drawn[:, len(TRAITS) :].reshape(len(users), 3, len(KEYS)) * np.array(KEY_HABITS)[:, None]

    touch = trait["touch"] + TOUCH_FOLLOWS_SPEED * (trait["speed"] - TRAITS["speed"][0])
    spread = {name: np.exp(trait[name]) for name in ("active_spread", "passive_spread", "touch_spread")}
    pause_at = PAUSE_AT + habits[:, 2] + trait["pausing"][:, None]
    return SimulatedPeople(
        tau=_by_state(trait["speed"][:, None] + KEY_TAU + habits[:, 0], trait["pause_length"]),
        tau_spread=np.stack([spread["active_spread"], spread["passive_spread"]], axis=1),
        touch=_by_state(touch[:, None] + KEY_TOUCH + habits[:, 1], trait["pause_touch"]),
        touch_spread=np.stack([spread["touch_spread"], spread["touch_spread"]], axis=1),
        pause_start=pause_at + START_THRESHOLD,
        pause_at=pause_at,
        pause_after=np.repeat(PAUSE_AFTER[None], len(users), axis=0),
        persistence=trait["persistence"],
        digraphs=trait["digraphs"],
        practice=np.exp(trait["practice"]),
        mistakes=np.exp(trait["mistakes"]),
    )


def as_model(people: SimulatedPeople, person: int, keys: list[str]) -> POHMM:
    """One person as a POHMM over some keys, from which samples are drawn; features are hold time and τ."""
    from scipy.special import ndtr

    from keydyn.model import POHMM

    codes = keyboard.key_codes(keys)
    start = ndtr(people.pause_start[person, codes])
    threshold = people.pause_after[person, codes, None] + people.pause_at[person, codes]
    passive = ndtr(threshold[:, :, None] + people.persistence[person] * np.arange(2))
    return POHMM.from_parameters(
        keys,
        np.stack([1.0 - start, start], axis=-1),
        np.stack([1.0 - passive, passive], axis=-1),
        [
            ("lognormal", location[person, codes], np.tile(spread[person], (len(codes), 1)))
            for location, spread in ((people.touch, people.touch_spread), (people.tau, people.tau_spread))
        ],
    )


def _by_state(active: Floats, passive_adds: Floats) -> Floats:
    return np.stack([active, active + passive_adds[:, None]], axis=-1)
