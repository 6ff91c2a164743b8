"""Names of keys for the numeric codes that browsers report (`KeyboardEvent.keyCode`).

The names are those of the recorder and of the shipped population. A code without a name here is called
`key_` and its number, so that unknown keys remain different keys.
"""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np
import pandas as pd

from keydyn.arrays import Floats

NAMES = {
    **{ord(letter.upper()): letter for letter in ascii_lowercase},
    **{48 + digit: str(digit) for digit in range(10)},
    **{96 + digit: f"numpad_{digit}" for digit in range(10)},
    **{111 + number: f"f{number}" for number in range(1, 13)},
    **{8: "backspace", 9: "tab", 13: "enter", 16: "shift", 17: "ctrl", 18: "alt", 19: "pause"},
    **{20: "caps_lock", 27: "escape", 32: "space", 144: "num_lock", 145: "scrolllock"},
    **{33: "page_up", 34: "page_down", 35: "end", 36: "home", 45: "insert", 46: "delete"},
    **{37: "left", 38: "up", 39: "right", 40: "down", 93: "contextmenu"},
    # Firefox has 224 for both Command keys; other browsers on a Mac report 91, like Windows.
    **{91: "windows", 92: "windows", 224: "command"},
    **{106: "numpadmultiply", 107: "numpadadd", 109: "numpadsubtract"},
    **{110: "numpaddecimal", 111: "numpaddivide"},
    # Firefox has codes of its own for three of these keys.
    **{186: "semicolon", 59: "semicolon", 187: "equals", 61: "equals", 189: "dash", 173: "dash"},
    **{188: "comma", 190: "period", 191: "slash", 192: "back_quote", 222: "quote"},
    **{219: "open_bracket", 220: "back_slash", 221: "close_bracket", 226: "intlbackslash"},
}
# What browsers report for a key that they do not know; codes have 16 bits.
UNKNOWN, LARGEST = 0, 65535


def names_of_codes(codes: Floats) -> pd.Series[str]:
    """The name of each key; a code that cannot be one counts as 0, a key that the browser did not know."""
    known = np.where((codes >= 0) & (codes <= LARGEST), codes, UNKNOWN).astype(np.int64)
    distinct, places = np.unique(known, return_inverse=True)
    names = pd.array([NAMES.get(code, f"key_{code}") for code in distinct.tolist()], dtype="str")
    return pd.Series(names.take(places))
