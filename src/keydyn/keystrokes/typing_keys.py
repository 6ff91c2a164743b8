"""Which keystrokes are typing: those that write or mend text, and neither shortcuts nor navigation.

This is one rule for `pair_events`, for cleaning and for the recorder of the service's pages (recorder.js). A
key pressed while Ctrl, Alt or Meta (Windows, Command) is held is a shortcut, and so is that key itself.
Arrows, Tab, Escape, function keys and the like move about. Shift, Caps Lock, Backspace, Delete, Enter and
Space are typing, and so is AltGr with the characters it writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.key_names import key_name
from keydyn.keystrokes.schema import sample_of_row, sample_starts

MODIFIERS = {"ctrl", "alt", "windows", "command"}
ALT_GR = "altgr"
NAVIGATION = {"left", "right", "up", "down", "home", "end", "page_up", "page_down", "insert", "tab", "escape"}
NAVIGATION |= {"contextmenu", "num_lock", "scrolllock", "scroll_lock", "pause", "print_screen", "fn"}
NAVIGATION |= {f"f{number}" for number in range(1, 25)}
# Windows reports AltGr as Ctrl and Alt, at most this many milliseconds apart; that Ctrl was not pressed.
TOGETHER = 2.0


def not_typing(keystrokes: pd.DataFrame) -> tuple[Truths, Truths]:
    """Which keystrokes in the schema are shortcuts, and which are navigation, (N,) each."""
    press, release = (keystrokes[name].to_numpy(dtype=np.float64) for name in ("timepress", "timerelease"))
    sample = sample_of_row(sample_starts(keystrokes), len(press))
    return shortcuts_and_navigation(keystrokes["keyname"].to_numpy(dtype=object), press, release, sample)


def shortcuts_and_navigation(
    names: NDArray[Any], press: Floats, release: Floats, sample: Integers
) -> tuple[Truths, Truths]:
    """Which keystrokes are shortcuts, and which are navigation, in order of press within each sample.

    `sample` is the number of each keystroke's sample. A Ctrl, Alt or Meta whose release was not seen is a
    shortcut by itself: how long it was held is not known.
    """
    codes, distinct = pd.factorize(names)
    known = [key_name(str(name)) for name in distinct]
    modifier, navigation, control, alt_gr = (
        np.array([name in group for name in known], dtype=bool)[codes]
        for group in (MODIFIERS, NAVIGATION, {"ctrl"}, {ALT_GR})
    )
    phantom = np.zeros(len(codes), dtype=bool)
    beside = (press[1:] - press[:-1] <= TOGETHER) & (sample[1:] == sample[:-1])
    phantom[:-1] = control[:-1] & alt_gr[1:] & beside
    # A release that was not seen is no bound.
    until = np.where(modifier & ~phantom & ~np.isnan(release), release, -np.inf)
    held: Truths = press < pd.Series(until).groupby(sample).cummax().to_numpy()
    shortcut = modifier | held
    return shortcut, navigation & ~shortcut
