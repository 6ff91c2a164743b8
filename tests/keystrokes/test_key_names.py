"""keydyn's names of keys, from the names that other programs give them."""

from __future__ import annotations

import string

import numpy as np
import pytest

from keydyn.datasets.simulated.keyboard import KEYS
from keydyn.keystrokes.key_names import SCAN_CODES, WINDOWS_KEYS, key_name, names_of_codes
from keydyn.population.model import PopulationModel

# The keys of one text as each kind of program names them; "SPACE" stands for the character.
KEYDYN = "shift h i comma space enter backspace ctrl alt left caps_lock 1 numpad_5 quote dash f5"
VOCABULARIES = {
    "code of browsers": "ShiftLeft KeyH KeyI Comma Space Enter Backspace ControlRight AltLeft ArrowLeft "
    "CapsLock Digit1 Numpad5 Quote Minus F5",
    "key of browsers": 'Shift H i , SPACE Enter Backspace Control Alt ArrowLeft CapsLock ! numpad_5 " _ F5',
    "pynput": "Key.shift_r 'h' 'I' ',' Key.space Key.enter Key.backspace Key.ctrl_l Key.alt_l Key.left "
    "Key.caps_lock '1' numpad_5 \"'\" '-' Key.f5",
    "virtual keys": "VK_LSHIFT VK_H VK_I VK_OEM_COMMA VK_SPACE VK_RETURN VK_BACK VK_RCONTROL VK_MENU VK_LEFT "
    "VK_CAPITAL VK_1 VK_NUMPAD5 VK_OEM_7 VK_OEM_MINUS VK_F5",
    "X11": "Shift_L H i comma space Return BackSpace Control_L Alt_L Left Caps_Lock exclam KP_5 apostrophe "
    "minus F5",
    "evdev": "KEY_RIGHTSHIFT KEY_H KEY_I KEY_COMMA KEY_SPACE KEY_ENTER KEY_BACKSPACE KEY_LEFTCTRL "
    "KEY_LEFTALT KEY_LEFT KEY_CAPSLOCK KEY_1 KEY_KP5 KEY_APOSTROPHE KEY_MINUS KEY_F5",
}


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_every_vocabulary_comes_to_the_same_keys(vocabulary):
    names = [" " if name == "SPACE" else name for name in VOCABULARIES[vocabulary].split()]
    assert [key_name(name) for name in names] == KEYDYN.split()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AltRight", "altgr"),
        ("Key.alt_gr", "altgr"),
        ("ISO_Level3_Shift", "altgr"),
        ("KEY_RIGHTALT", "altgr"),
        ("Menu", "contextmenu"),
        ("Super_L", "windows"),
        ("Key.cmd", "command"),
        ("'\\x03'", "c"),
        ("'\\\\'", "back_slash"),
        ("é", "é"),
        ("Key.media_next", "media_next"),
        ("key_229", "key_229"),
        ("", ""),
    ],
)
def test_other_names(name, expected):
    assert key_name(name) == expected


def test_our_own_names_stay():
    shipped = PopulationModel.shipped().parameters.cells.vocabulary.tolist()
    for name in {*shipped, *KEYS, *WINDOWS_KEYS.values(), *SCAN_CODES.values()}:
        assert key_name(name) == name


def test_codes_of_windows_and_places_on_the_keyboard():
    assert names_of_codes(np.array([72.0, 165.0, 13.0, 7.0]), WINDOWS_KEYS).tolist() == [
        "h",
        "altgr",
        "enter",
        "key_7",
    ]
    # evdev numbers the keys row by row: Q is 16, A 30, Z 44.
    rows = {16: "qwertyuiop", 30: "asdfghjkl", 44: "zxcvbnm", 2: "1234567890"}
    for first, row in rows.items():
        codes = np.arange(first, first + len(row), dtype=float)
        assert "".join(names_of_codes(codes, SCAN_CODES)) == row
    assert set(string.ascii_lowercase) <= set(SCAN_CODES.values())
