"""Groups of keys: for texts in which single keys are too rare to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LEFT_LETTERS = frozenset("qwertasdfgzxcvb")
RIGHT_LETTERS = frozenset("yuiophjklnm")
DIGIT_WORDS = frozenset(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
PUNCTUATION = frozenset(
    [
        "period",
        "comma",
        "quote",
        "semicolon",
        "colon",
        "slash",
        "back_slash",
        "dash",
        "minus",
        "equals",
        "open_bracket",
        "close_bracket",
        "back_quote",
        "apostrophe",
        "exclamation",
        "question",
        ".",
        ",",
        "'",
        '"',
        ";",
        ":",
        "/",
        "\\",
        "-",
        "=",
        "[",
        "]",
        "`",
        "!",
        "?",
    ]
)
GROUPS = ("left_letter", "right_letter", "space", "shift", "punctuation", "digit", "other")


def key_group(name: str) -> str:
    """The group of a key; left and right letters are those of a QWERTY keyboard.

    Names are taken without regard to case, and with or without `numpad_` before them.
    """
    key = name.lower().removeprefix("numpad_").removeprefix("key")
    if key in LEFT_LETTERS:
        return "left_letter"
    if key in RIGHT_LETTERS:
        return "right_letter"
    if key in ("space", " "):
        return "space"
    if key.startswith("shift"):
        return "shift" if "." not in key else key_group(key.split(".", 1)[1])
    if key in PUNCTUATION:
        return "punctuation"
    if key in DIGIT_WORDS or (len(key) == 1 and key.isdigit()) or key.removeprefix("digit").isdigit():
        return "digit"
    return "other"


def key_groups(names: NDArray[Any]) -> NDArray[Any]:
    """The group of each key; each distinct name is looked at once."""
    codes, distinct = pd.factorize(names)
    groups: NDArray[Any] = np.array([key_group(str(name)) for name in distinct], dtype=object)[codes]
    return groups
