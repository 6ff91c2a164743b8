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


# What browsers call the physical keys (`KeyboardEvent.code`, in lower case), where the name differs.
PHYSICAL = {
    **{f"key{letter}": letter for letter in LEFT_LETTERS | RIGHT_LETTERS},
    **{f"digit{digit}": str(digit) for digit in range(10)},
    **{f"numpad{digit}": f"numpad_{digit}" for digit in range(10)},
    "shiftleft": "shift",
    "shiftright": "shift",
    "backquote": "back_quote",
    "backslash": "back_slash",
    "bracketleft": "open_bracket",
    "bracketright": "close_bracket",
    "equal": "equals",
}


def common_name(name: str) -> str:
    """A key's name in lower case, with browsers' names of physical keys replaced by those used here."""
    return PHYSICAL.get(name.lower(), name.lower())


def key_group(name: str) -> str:
    """The group of a key; left and right letters are those of a QWERTY keyboard.

    Case and the prefix `numpad_` are ignored, and browsers' names are understood.
    """
    key = common_name(name).removeprefix("numpad_")
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
    if key in DIGIT_WORDS or (len(key) == 1 and key.isdecimal()):
        return "digit"
    return "other"


def key_groups(names: NDArray[Any]) -> NDArray[Any]:
    """The group of each key; each distinct name is looked up only once."""
    codes, distinct = pd.factorize(names)
    groups: NDArray[Any] = np.array([key_group(str(name)) for name in distinct], dtype=object)[codes]
    return groups
