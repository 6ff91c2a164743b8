"""What simulated typists are asked to type: the arguments, checked, with defaults for each kind of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keydyn.arrays import Integers
from keydyn.datasets.simulated import texts, typed_keys

# By kind of text: keys per sample, exponent of practice, mistakes per letter.
DEFAULTS: dict[str, tuple[int, float, float]] = {
    "fixed": (0, 0.18, 0.0),
    "copied": (100, 0.0, 0.02),
    "free": (500, 0.0, 0.025),
}
# The range of each number: well beyond what is realistic, and well within what can be computed.
LIMITS: dict[str, tuple[float, float]] = {
    "practice": (0.0, 1.0),
    "mood": (0.0, 1.0),
    "digraphs": (0.0, 5.0),
    "mistakes": (0.0, 0.5),
    "tick": (0.001, 1000.0),
}
LAST_USER = 2**63 - 1


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
    def of(
        cls,
        n_users: int,
        n_samples: int,
        text: str,
        n_keys: int | None,
        phrase: str | Sequence[str] | None,
        practice: float | None,
        sitting: int,
        mood: float,
        digraphs: float,
        mistakes: float | None,
        tick: float | None,
        first_user: int,
    ) -> Task:
        """From the arguments of `make_typists`; a `ValueError` names the one that is wrong."""
        if text not in DEFAULTS:
            raise ValueError(f"text must be one of {', '.join(DEFAULTS)}, not {text!r}")
        default_keys, default_practice, default_mistakes = DEFAULTS[text]
        practice = default_practice if practice is None else practice
        mistakes = default_mistakes if mistakes is None else mistakes
        check_whole("n_users", n_users, 1)
        check_whole("n_samples", n_samples, 1)
        check_whole("sitting", sitting, 1)
        check_whole("first_user", first_user, 0)
        if int(first_user) + int(n_users) - 1 > LAST_USER:
            raise ValueError(f"users are numbered up to {LAST_USER}")
        _check_number("practice", practice)
        _check_number("mood", mood)
        _check_number("digraphs", digraphs)
        _check_number("mistakes", mistakes)
        if tick is not None:
            _check_number("tick", tick)
        codes = _check_phrase(text, phrase, mistakes)
        n_keys = (len(codes) or default_keys) if n_keys is None else n_keys
        check_whole("n_keys", n_keys, 1)
        if text == "fixed" and n_keys > len(codes):
            raise ValueError(f"n_keys is {n_keys}, but the phrase has {len(codes)} keys")
        return cls(
            n_users=int(n_users),
            n_samples=int(n_samples),
            text=text,
            n_keys=int(n_keys),
            phrase=codes[:n_keys],
            practice=float(practice),
            sitting=int(sitting),
            mood=float(mood),
            digraphs=float(digraphs),
            mistakes=float(mistakes),
            tick=None if tick is None else float(tick),
            first_user=int(first_user),
        )


def check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")


def _check_number(name: str, value: Any) -> None:
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    low, high = LIMITS[name]
    if not numeric or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")


def _check_phrase(text: str, phrase: str | Sequence[str] | None, mistakes: float) -> Integers:
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
