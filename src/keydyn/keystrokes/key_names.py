"""Names of keys: those of loggers and systems, and their conversion to keydyn's own.

keydyn's names are those of its recorder and of the shipped population: physical keys of a US keyboard, in
lower case. Known are browsers' `code` and `key`, pynput's names, virtual keys of Windows, `Keys` of .NET,
X11's keysyms and evdev's names, and numeric codes of known origin. Other names are kept, in lower case.
"""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

from keydyn.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

# Keys by the characters that they write on a US keyboard, without and with Shift.
CHARACTERS = {
    **dict.fromkeys("-_", "dash"),
    **dict.fromkeys("=+", "equals"),
    **dict.fromkeys("[{", "open_bracket"),
    **dict.fromkeys("]}", "close_bracket"),
    **dict.fromkeys("\\|", "back_slash"),
    **dict.fromkeys(";:", "semicolon"),
    **dict.fromkeys("'\"", "quote"),
    **dict.fromkeys("`~", "back_quote"),
    **dict.fromkeys(",<", "comma"),
    **dict.fromkeys(".>", "period"),
    **dict.fromkeys("/?", "slash"),
    **dict(zip(")!@#$%^&*(", "0123456789", strict=True)),
    **{" ": "space", "\u00a0": "space", "\t": "tab", "\n": "enter", "\r": "enter", "\b": "backspace"},
    # Control characters, which terminals write for letters with Ctrl.
    **{chr(n + 1): letter for n, letter in enumerate(ascii_lowercase) if chr(n + 1) not in "\t\n\r\b"},
    "\x7f": "delete",
}
# keydyn's names, each with the other names of the key, in lower case and without separators between words.
OTHER_NAMES = {
    "alt": "altleft altl leftalt lalt lmenu vkmenu option optionleft",
    "altgr": "altgr altright altgraph altr rightalt ralt rmenu isolevel3shift optionright",
    "back_quote": "backquote grave graveaccent backtick oem3 oemtilde quoteleft asciitilde",
    "back_slash": "backslash oem5 oempipe bar",
    "backspace": "back bksp backspc",
    "caps_lock": "capslock caps capital",
    "close_bracket": "bracketright rightbracket rightbrace bracketclose oem6 oemclosebrackets braceright",
    "comma": "oemcomma less",
    "command": "cmd cmdl cmdr cmdleft cmdright",
    "contextmenu": "apps menu compose",
    "ctrl": "control controlleft controlright controll controlr ctrll ctrlr leftctrl rightctrl ctrlleft "
    "ctrlright leftcontrol rightcontrol lctrl rctrl lcontrol rcontrol "
    "lcontrolkey rcontrolkey controlkey",
    "dash": "minus hyphen oemminus underscore",
    "delete": "del",
    "down": "arrowdown downarrow",
    "enter": "return numpadenter kpenter",
    "equals": "equal oemplus plus",
    "escape": "esc",
    "insert": "ins",
    "left": "arrowleft leftarrow",
    "num_lock": "numlock",
    "open_bracket": "bracketleft leftbracket leftbrace bracketopen oem4 oemopenbrackets braceleft",
    "page_down": "pagedown pgdn pgdown next",
    "page_up": "pageup pgup prior",
    "period": "dot oemperiod fullstop greater",
    "print_screen": "printscreen prtsc prtscn snapshot sysrq print",
    "quote": "apostrophe oem7 oemquotes quoteright quotedbl singlequote",
    "right": "arrowright rightarrow",
    "semicolon": "oem1 oemsemicolon colon",
    "shift": "shiftleft shiftright shiftl shiftr leftshift rightshift lshift rshift lshiftkey "
    "rshiftkey shiftkey",
    "slash": "oem2 oemquestion question forwardslash",
    "space": "spacebar",
    "tab": "isolefttab",
    "up": "arrowup uparrow",
    "windows": "win winleft winright lwin rwin meta metaleft metaright metal metar leftmeta rightmeta os "
    "osleft osright super superl superr",
    **{"1": "exclam", "2": "at", "3": "numbersign", "4": "dollar", "5": "percent", "6": "asciicircum"},
    **{"7": "ampersand", "8": "asterisk", "9": "parenleft", "0": "parenright"},
}
ALIASES = {
    **{alias: name for name, aliases in OTHER_NAMES.items() for alias in aliases.split()},
    **{f"key{letter}": letter for letter in ascii_lowercase},
    **{f"{digit_key}{digit}": str(digit) for digit in range(10) for digit_key in ("digit", "d")},
    **{f"{pad}{digit}": f"numpad_{digit}" for digit in range(10) for pad in ("numpad", "kp", "num")},
}
# A character as a Python literal, the form that pynput writes.
QUOTED = re.compile(r"""(['"])(\\?.|\\x[01][0-9a-fA-F])\1""")
# Prefixes of names by their origin: pynput, evdev, Windows and X11.
PREFIX = re.compile(r"(?:Key\.|KEY_|VK_|XK_)(?=.)")
# Numeric codes of virtual keys: of Windows, and of browsers (`KeyboardEvent.keyCode`).
VIRTUAL_KEYS = {
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
# Left and right modifiers have codes of their own on Windows, which browsers do not use.
WINDOWS_KEYS = VIRTUAL_KEYS | {160: "shift", 161: "shift", 162: "ctrl", 163: "ctrl", 164: "alt", 165: "altgr"}
# Codes by the position of keys on the keyboard: those of evdev, and the scan codes of PC keyboards.
SCAN_CODES = {
    **{1: "escape", 14: "backspace", 15: "tab", 28: "enter", 29: "ctrl", 97: "ctrl", 96: "enter"},
    **dict(enumerate([*"1234567890", "dash", "equals"], 2)),
    **dict(enumerate([*"qwertyuiop", "open_bracket", "close_bracket"], 16)),
    **dict(enumerate([*"asdfghjkl", "semicolon", "quote", "back_quote", "shift", "back_slash"], 30)),
    **dict(enumerate([*"zxcvbnm", "comma", "period", "slash", "shift", "numpadmultiply", "alt"], 44)),
    **{57: "space", 58: "caps_lock", 69: "num_lock", 100: "altgr", 125: "windows", 126: "windows"},
    **{59 + n: f"f{n + 1}" for n in range(10)},
    **{102: "home", 103: "up", 104: "page_up", 105: "left", 106: "right", 107: "end", 108: "down"},
    **{109: "page_down", 110: "insert", 111: "delete", 127: "contextmenu"},
}
# The code that browsers report for an unknown key, and the largest code, of 16 bits.
UNKNOWN, LARGEST = 0, 65535


def key_name(name: str) -> str:
    """keydyn's name of a key, given any of its names; an unknown name is returned in lower case.

    Examples
    --------
    >>> from keydyn.keystrokes.key_names import key_name
    >>> [key_name(name) for name in ("KeyF", "'f'", "Key.space", "VK_RETURN", "KEY_LEFTSHIFT", "Control_L")]
    ['f', 'f', 'space', 'enter', 'shift', 'ctrl']
    """
    if len(name) == 1:
        return CHARACTERS.get(name, name.lower())
    if quoted := QUOTED.fullmatch(name):
        written = quoted[2]
        hexadecimal = written.startswith("\\x")
        return key_name(chr(int(written[2:], 16)) if hexadecimal else written[-1])
    rest = PREFIX.sub("", name, count=1)
    if len(rest) == 1:
        return key_name(rest)
    whole, plain = (re.sub(r"[\s_-]", "", text.lower()) for text in (name, rest))
    return ALIASES.get(whole) or ALIASES.get(plain) or rest.lower()


def is_character(name: object) -> bool:
    """Whether a key is named by the character it writes, which depends on Shift: `a`, `A`, `'!'`."""
    return isinstance(name, str) and (len(name) == 1 or QUOTED.fullmatch(name) is not None)


def in_our_names(keys: pd.Series[Any]) -> pd.Series[Any]:
    """keydyn's names of keys, given the names in a file; missing names stay missing."""
    return keys.map({key: key_name(str(key)) for key in keys.dropna().unique()}, na_action="ignore")


def names_of_codes(codes: Floats, known: dict[int, str] = VIRTUAL_KEYS) -> pd.Series[str]:
    """The name of each key, looked up by its code in a table; other keys are called `key_` and their code.

    Numbers that cannot be codes count as 0, the code of a key that a browser does not know.
    """
    import pandas as pd

    whole = np.where((codes >= 0) & (codes <= LARGEST), codes, UNKNOWN).astype(np.int64)
    distinct, places = np.unique(whole, return_inverse=True)
    names = pd.array([known.get(code, f"key_{code}") for code in distinct.tolist()], dtype="str")
    return pd.Series(names.take(places))
