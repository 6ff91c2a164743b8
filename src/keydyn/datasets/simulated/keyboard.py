"""The keyboard of simulated typists: its keys, the fingers that press them, and the spelling of texts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from keydyn.arrays import Floats, Integers

ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
SHIFTED_SIGNS = {"!": "1", "?": "slash", ":": "semicolon", '"': "quote", "_": "dash", "@": "2", "&": "7"}
PUNCTUATION = ("period", "comma", "quote", "dash", "semicolon", "slash", "equals")
SIGNS = dict(zip(" \n.,'-;/=", ("space", "enter", *PUNCTUATION), strict=True))
DIGITS = tuple("0123456789")
NUMPAD = tuple(f"numpad_{digit}" for digit in DIGITS)
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
KEYS = (*LETTERS, *DIGITS, "space", "shift", "backspace", "enter", *PUNCTUATION, *NUMPAD)
CODES = {key: code for code, key in enumerate(KEYS)}
SPACE, SHIFT, BACKSPACE, PERIOD, COMMA = (
    CODES[key] for key in ("space", "shift", "backspace", "period", "comma")
)

# Fingers from the left little finger, 0, to the right one, 9. The thumbs' keys, and shift, which is on both
# sides, can be pressed with either hand.
_COLUMN_FINGERS = (0, 1, 2, 3, 3, 6, 6, 7, 8, 9)
_OTHER_FINGERS = {"comma": 7, "period": 8, "slash": 9, "semicolon": 9, "quote": 9, "dash": 9, "equals": 9}
_OTHER_FINGERS |= {"enter": 9, "backspace": 9}
_NUMPAD_FINGERS = (5, 6, 7, 8, 6, 7, 8, 6, 7, 8)
_THUMBS = (4, 5)


def spelled(text: str) -> list[str]:
    """The keys that type a text: a capital is shift and its letter, a new line is enter."""
    keys: list[str] = []
    for sign in text:
        if sign in SHIFTED_SIGNS:
            keys += ["shift", SHIFTED_SIGNS[sign]]
        elif sign in SIGNS:
            keys.append(SIGNS[sign])
        elif sign.lower() in CODES:
            keys += [sign] if sign in CODES else ["shift", sign.lower()]
        else:
            raise ValueError(f"there is no key for {sign!r} in {text!r}")
    return keys


def key_codes(names: Iterable[str]) -> Integers:
    """The number of each key; a `ValueError` names a key that the keyboard does not have."""
    names = list(names)
    unknown = [name for name in names if not isinstance(name, str) or name not in CODES]
    if unknown:
        raise ValueError(f"no key is called {unknown[0]!r}; there are {', '.join(KEYS)}")
    return np.array([CODES[name] for name in names], dtype=np.int64)


def fingers() -> Integers:
    """The finger of each key, (V,)."""
    finger_of = {key: _COLUMN_FINGERS[column] for row in ROWS for column, key in enumerate(row)}
    finger_of |= _OTHER_FINGERS | dict(zip(NUMPAD, _NUMPAD_FINGERS, strict=True))
    return np.array([finger_of.get(key, _THUMBS[0]) for key in KEYS], dtype=np.int64)


def digraphs(repeat: float, same_finger: float, same_hand: float, other_hand: float) -> Floats:
    """The effect (V, V) of the previous key on the time to the next; zero where either hand may be used."""
    finger = fingers()
    hand = np.where(finger <= 4, 0, 1)
    table = np.where(hand[:, None] == hand, same_hand, other_hand)
    table[finger[:, None] == finger] = same_finger
    either = np.isin(finger, _THUMBS)
    table[either[:, None] | either] = 0.0
    np.fill_diagonal(table, repeat)
    return table


def neighbours() -> Integers:
    """The letters to the left and to the right of each letter, (V, 2); −1 for other keys."""
    table = np.full((len(KEYS), 2), -1)
    for row in ROWS[1:]:
        for column, key in enumerate(row):
            # The first and the last letter of a row have one neighbour, which is listed on both sides.
            left = row[column - 1] if column > 0 else row[1]
            right = row[column + 1] if column + 1 < len(row) else row[-2]
            table[CODES[key]] = CODES[left], CODES[right]
    return table
