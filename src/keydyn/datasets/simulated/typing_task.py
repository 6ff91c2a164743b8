"""What simulated typists are asked to type: the arguments, checked, with defaults for each kind of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.datasets.simulated import texts, typed_keys

# By kind of text: keys per sample, exponent of practice, mistakes per letter.
DEFAULTS: dict[str, tuple[int, float, float]] = {
    "fixed": (0, 0.18, 0.0),
    "copied": (100, 0.0, 0.02),
    "free": (500, 0.0, 0.025),
}
# The least value of each whole number, and the range of every other number: well beyond what is realistic,
# and well within what can be computed.
LEAST = {"n_users": 1, "n_samples": 1, "sitting": 1, "first_user": 0, "n_keys": 1}
LIMITS: dict[str, tuple[float, float]] = {
    "practice": (0.0, 1.0),
    "mood": (0.0, 1.0),
    "digraphs": (0.0, 5.0),
    "mistakes": (0.0, 0.5),
    "tick": (0.001, 1000.0),
}
LAST_USER = 2**63 - 1
# The sitting in which a text that practice makes faster is typed at the person's ordinary speed.
FAMILIAR = 2
# The sitting after which practice has no further effect.
LEARNT = 16


@dataclass(frozen=True)
class Task:
    """Who types what, how often and under which conditions; `make_typists` describes the fields.

    `phrase` holds the keys of a fixed text by their number, and is empty for other texts.
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
    def of(cls, **given: Any) -> Task:
        """From the arguments of `make_typists`; a `ValueError` names the one that is wrong."""
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
        """(n_samples,) what practice adds to the average person's ln τ."""
        sittings = np.minimum(1 + np.arange(self.n_samples) // self.sitting, LEARNT)
        added: Floats = -self.practice * np.log(sittings / FAMILIAR)
        return added


def check_whole(name: str, value: Any, least: int) -> None:
    """`ValueError` unless the value is a whole number, `least` or more."""
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
