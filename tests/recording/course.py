"""The whole course of a participant in a browser, state by state, for tests and pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect

from keydyn.datasets import make_typists
from tests.recording.studies import participants_of, served
from tests.service.pages.keyboard import KEYS, Keyboard

TYPED = ("keyname", "timepress", "timerelease")


def rows_of(user, n_keys):
    """Keystrokes of a simulated typist, without keys that write nothing."""
    frame = make_typists(user + 1, 1, text="copied", n_keys=3 * n_keys, random_state=4)
    own = frame[frame["user"] == user]
    own = own[[len(name) == 1 or name in ("space", "comma", "period") for name in own["keyname"]]]
    own = own.head(n_keys)
    own = own.assign(**{name: own[name] - own["timepress"].iloc[0] for name in TYPED[1:]})
    return own[list(TYPED)].to_dict("records")


def text_of(rows):
    """The text that keystrokes write."""
    return "".join(KEYS[row["keyname"]][1] for row in rows)


def with_mistake(rows, after):
    """Keystrokes with a wrong key and its correction added."""
    at = rows[after]["timepress"]
    wrong = {"keyname": "x", "timepress": at + 20.0, "timerelease": at + 90.0}
    right = {"keyname": "backspace", "timepress": at + 300.0, "timerelease": at + 380.0}
    later = [{**row, **{name: row[name] + 500.0 for name in TYPED[1:]}} for row in rows[after:]]
    return [*rows[:after], wrong, right, *later]


MISTAKE = 30
COPIED, FIXED, PASSWORD, FREE = rows_of(0, 61), rows_of(1, 8), rows_of(2, 9), rows_of(3, 30)
ROWS = [with_mistake(COPIED, MISTAKE), FIXED, PASSWORD, FREE]
PROMPTS = f"""title = "Typing in the afternoon"
sittings = 2
break_between_prompts = 1
exact = true
[[prompts]]
text = {json.dumps(text_of(COPIED))}
[[prompts]]
kind = "fixed"
text = {json.dumps(text_of(FIXED))}
[[prompts]]
kind = "password"
text = {json.dumps(text_of(PASSWORD))}
[[prompts]]
kind = "free"
text = "What do you see when you look out of the window?"
keystrokes = 25
"""


def every_state(page: Page, folder: Path) -> Iterator[str]:
    """Go from consent to the end, and yield the name of each state; the recording is left in the folder."""
    with participants_of(folder, PROMPTS, users=None) as participants, served(participants) as address:
        page.goto(address)
        yield seen(page, "who")
        page.fill("#id", "ann")
        page.keyboard.press("Enter")
        yield seen(page, "consent")
        page.click("#decline")
        yield seen(page, "declined")
        assert participants.everybody() == []
        page.click("#again")
        page.click("#agree")
        yield seen(page, "instructions")
        page.click("#begin")
        for place in range(8):
            sitting, number = divmod(place, 4)
            if number:
                if place == 1:
                    yield seen(page, "break")
                page.wait_for_selector("#break:not([hidden])")
                page.click("#on")
            elif sitting:
                yield from _between_sittings(page)
            seen(page, "task")
            # The long text later, when there is some progress to be seen.
            yield from _typed(page, number, (sitting == 0) != (number == 0))
            expect(page.locator("#count")).to_contain_text(f"{place + 1} of 8")
        yield seen(page, "end")
        assert participants.finished()
        page.evaluate("location.hash = 'other'")
        yield seen(page, "trouble")


def _typed(page: Page, number: int, stops: bool) -> Iterator[str]:
    keyboard, rows = Keyboard(page), ROWS[number]
    if number == 1:
        keyboard.tap("xx")
        expect(page.locator("#remark")).to_contain_text("mistake")
        if stops:
            yield "mistake"
    half = MISTAKE + 1 if number == 0 else len(rows) // 2
    began = keyboard.type(rows[:half])
    if stops:
        yield ("copy", "fixed", "password", "free")[number]
    keyboard.type(rows[half:], began)
    if number == 3:
        page.click("#done")


def _between_sittings(page: Page) -> Iterator[str]:
    """Reload the page between sittings, as if the tab had been closed and opened again."""
    yield seen(page, "break").replace("break", "sitting")
    page.reload()
    yield seen(page, "instructions").replace("instructions", "resumed")
    expect(page.locator("#resumed")).to_contain_text("4 of 8")
    page.click("#begin")


def seen(page: Page, name: str) -> str:
    """Wait for a view, and return its name."""
    page.wait_for_selector(f"#{name}:not([hidden])")
    return name
