"""A keyboard for pages in a browser: real input events at known times."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from playwright.sync_api import CDPSession, Page

# The keys of a US keyboard: code, text and virtual key code, by the names of simulated typists.
_OTHERS = {
    "space": ("Space", " ", 32),
    "enter": ("Enter", "\r", 13),
    "backspace": ("Backspace", "", 8),
    "tab": ("Tab", "", 9),
    "shift": ("ShiftLeft", "", 16),
    "ctrl": ("ControlLeft", "", 17),
    "alt": ("AltLeft", "", 18),
    "period": ("Period", ".", 190),
    "comma": ("Comma", ",", 188),
    "quote": ("Quote", "'", 222),
    "dash": ("Minus", "-", 189),
    "semicolon": ("Semicolon", ";", 186),
    "slash": ("Slash", "/", 191),
    "equals": ("Equal", "=", 187),
}
KEYS = {
    **{
        letter: (f"Key{letter.upper()}", letter, ord(letter.upper()))
        for letter in "abcdefghijklmnopqrstuvwxyz"
    },
    **{digit: (f"Digit{digit}", digit, ord(digit)) for digit in "0123456789"},
    **{f"numpad_{digit}": (f"Numpad{digit}", digit, 96 + int(digit)) for digit in "0123456789"},
    **_OTHERS,
}
Row = dict[str, Any]
# A browser is told the times of events by a clock that a busy machine reads late now and then. In a page with
# this script, key events have exactly the times that `Keyboard.type` gives.
EXACT_TIMES = """(() => {
    if (window.keyTimes) return;
    const own = Object.getOwnPropertyDescriptor(Event.prototype, "timeStamp").get, times = new WeakMap();
    window.keyTimes = [];
    const note = (event) => keyTimes.length && times.set(event, keyTimes.shift() - performance.timeOrigin);
    for (const kind of ["keydown", "keyup"]) addEventListener(kind, note, true);
    const get = function () { return times.get(this) ?? own.call(this); };
    Object.defineProperty(Event.prototype, "timeStamp", { get });
})()"""
# Times after `now`, or after the page's own time if that is later, unless the keys continue earlier ones.
GIVE_TIMES = """([now, times, continued]) => {
    if (!window.keyTimes) return now;
    const from = continued ? now : Math.max(now, performance.timeOrigin + performance.now());
    keyTimes.push(...times.map((at) => from + at));
    return from;
}"""
# Between samples, milliseconds.
PAUSE = 1000.0


class Keyboard:
    """Presses keys in the element that has the focus; `now` is its own clock, milliseconds since 1970."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self.now = 1000 * time.time()
        # What keys type in another layout than a US keyboard's.
        self.layout: dict[str, str] = {}
        self._shifted = False

    def send(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._cdp.send(command, parameters)

    def event(self, kind: str, code: str, at: float, text: str = "", number: int = 0, **more: Any) -> None:
        """Send one event, a number of milliseconds after `now`."""
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.send(
            "Input.dispatchKeyEvent",
            timestamp=(self.now + at) / 1000,
            code=code,
            windowsVirtualKeyCode=number,
            **{**(down if kind == "down" else {"type": "keyUp"}), "key": text or code, **more},
        )

    def press(self, key: str, at: float, **more: Any) -> None:
        """Press a key; the letter after shift is a capital one."""
        code, text, number = KEYS[key]
        text = self.layout.get(key, text)
        self.event("down", code, at, text.upper() if self._shifted else text, number, **more)
        self._shifted = key == "shift"

    def release(self, key: str, at: float) -> None:
        """Release a key."""
        code, text, number = KEYS[key]
        self.event("up", code, at, text, number)

    def tap(
        self, keys: str | Iterable[str], at: float = 0.0, hold: float = 60.0, pace: float = 100.0
    ) -> None:
        """Type keys at an even pace."""
        keys = list(keys)
        presses = [at + pace * n for n in range(len(keys))]
        rows = [(key, press, press + hold) for key, press in zip(keys, presses, strict=True)]
        self.type([dict(zip(("keyname", "timepress", "timerelease"), row, strict=True)) for row in rows])

    def type(self, rows: Iterable[Row], began: float | None = None) -> float:
        """Type keystrokes with their rhythm, and move `now` to the time after them.

        Returns the time from which their times count; keystrokes that continue them are given it as `began`.
        """
        events = [(row["timepress"], 1, row["keyname"]) for row in rows]
        events += [(row["timerelease"], 0, row["keyname"]) for row in rows]
        events.sort()
        now, times = self.now if began is None else began, [at for at, _, _ in events]
        self.now = start = self._page.evaluate(GIVE_TIMES, [now, times, began is not None])
        for at, down, key in events:
            (self.press if down else self.release)(key, at)
        self.now += max(times) + PAUSE
        return start
