"""The rule for which keystrokes are typing: those that write or correct text, not shortcuts or navigation.

It is used by `pair_events`, by cleaning and by the recorder of the service's pages (recorder.js). A key
pressed while Ctrl, Alt or Meta (Windows, Command) is held is a shortcut, and so is the modifier itself.
Arrows, Tab, Escape, function keys and the like are navigation. Shift, Caps Lock, Backspace, Delete, Enter and
Space are typing, and so is AltGr with the characters it writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers, Truths
from keydyn.keystrokes.key_names import key_name
from keydyn.keystrokes.schema import sample_of_row, sample_starts

if TYPE_CHECKING:
    import pandas as pd

MODIFIERS = {"ctrl", "alt", "windows", "command"}
ALT_GR = "altgr"
NAVIGATION = {"left", "right", "up", "down", "home", "end", "page_up", "page_down", "insert", "tab", "escape"}
NAVIGATION |= {"contextmenu", "num_lock", "scrolllock", "scroll_lock", "pause", "print_screen", "fn"}
NAVIGATION |= {f"f{number}" for number in range(1, 25)}
# Windows reports AltGr as Ctrl and AltGr at most this many milliseconds apart, though Ctrl was not pressed.
TOGETHER = 2.0


def not_typing(keystrokes: pd.DataFrame) -> tuple[Truths, Truths]:
    """Masks of the keystrokes in the schema that are shortcuts and that are navigation, (N,) each."""
    press, release = (keystrokes[name].to_numpy(dtype=np.float64) for name in ("timepress", "timerelease"))
    sample = sample_of_row(sample_starts(keystrokes), len(press))
    return shortcuts_and_navigation(keystrokes["keyname"].to_numpy(dtype=object), press, release, sample)


def shortcuts_and_navigation(
    names: NDArray[Any], press: Floats, release: Floats, sample: Integers
) -> tuple[Truths, Truths]:
    """Masks of the keystrokes that are shortcuts and that are navigation, in order of press per sample.

    `sample` is the number of each keystroke's sample, in ascending order. If the release of a Ctrl, Alt or
    Meta was not seen, only that key is a shortcut, because the length of its hold is unknown.
    """
    distinct, codes = np.unique(names.astype(str), return_inverse=True)
    known = [_known(name) for name in distinct.tolist()]
    modifier, navigation, control, alt_gr = (
        np.array([name in group for name in known], dtype=bool)[codes]
        for group in (MODIFIERS, NAVIGATION, {"ctrl"}, {ALT_GR})
    )
    phantom = np.zeros(len(codes), dtype=bool)
    beside = (press[1:] - press[:-1] <= TOGETHER) & (sample[1:] == sample[:-1])
    phantom[:-1] = control[:-1] & alt_gr[1:] & beside
    # A modifier whose release was not seen does not affect other keys.
    holds = modifier & ~phantom & ~np.isnan(release)
    until, shortcut = np.where(holds, release, -np.inf), modifier.copy()
    for number in np.unique(sample[holds]):
        own = slice(*np.searchsorted(sample, [number, number + 1]))
        shortcut[own] |= press[own] < np.maximum.accumulate(until[own])
    return shortcut, navigation & ~shortcut


def all_type(names: Iterable[str]) -> bool:
    """Whether all keys of these names write or correct text, so that none is a shortcut or navigation."""
    return MODIFIERS.isdisjoint(known := {_known(name) for name in names}) and NAVIGATION.isdisjoint(known)


@lru_cache(maxsize=4096)
def _known(name: str) -> str:
    return key_name(name)
