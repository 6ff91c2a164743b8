"""The page of keydyn record in a real browser: typing with human rhythm, from consent to the end."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from keydyn.datasets import load_recordings, make_typists
from tests.recording.studies import participants_of, served
from tests.service.pages.keyboard import KEYS, Keyboard
from tests.service.pages.recorded import PRECISION

TYPED = ("keyname", "timepress", "timerelease")
PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1100, "height": 760}


def rows_of(user, n_keys, sample=0):
    """Keystrokes of a simulated typist, of keys that write something."""
    frame = make_typists(user + 1, sample + 1, text="copied", n_keys=3 * n_keys, random_state=4)
    own = frame[(frame["user"] == user) & (frame["session"] == sample)]
    own = own[[len(name) == 1 or name in ("space", "comma", "period") for name in own["keyname"]]]
    own = own.head(n_keys)
    own = own.assign(**{name: own[name] - own["timepress"].iloc[0] for name in TYPED[1:]})
    return own[list(TYPED)].to_dict("records")


def text_of(rows):
    """What is written by them."""
    return "".join(KEYS[row["keyname"]][1] for row in rows)


COPIED, FIXED, PASSWORD, FREE = rows_of(0, 40), rows_of(1, 8), rows_of(2, 9), rows_of(3, 30)
PROMPTS = f"""title = "Typing & <b>science</b>"
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
text = "What do you see?"
keystrokes = 25
"""
ROWS = [COPIED, FIXED, PASSWORD, FREE]
ONE = '[[prompts]]\ntext = "<img src=x onerror=alert(1)>"\nrepetitions = 3\n'


@pytest.fixture
def tab(browser):
    """An empty tab."""
    # Colours that change gradually have too little contrast on the way.
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    # What cannot be loaded is what these tests take away.
    assert [error for error in errors if not error.startswith("Failed to load resource")] == []


def view(page, name):
    """Wait for a view; axe finds nothing in it, and it fits on a phone."""
    page.wait_for_selector(f"#{name}:not([hidden])")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page)
        assert found.violations_count == 0, (name, scheme, found.generate_report())
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.set_viewport_size(DESKTOP)


def through_the_break(page):
    page.wait_for_selector("#break:not([hidden])")
    page.click("#on")
    page.wait_for_selector("#task:not([hidden])")


def begin(page, address):
    page.goto(address)
    page.click("#agree")
    page.click("#begin")
    page.wait_for_selector("#task:not([hidden])")


def test_the_whole_course_of_a_participant(tab, tmp_path):
    with participants_of(tmp_path, PROMPTS, users=None) as participants, served(participants) as address:
        tab.goto(address)
        view(tab, "who")
        assert tab.inner_text("#title") == "Typing & <b>science</b>"
        tab.fill("#id", "ann")
        tab.keyboard.press("Enter")
        view(tab, "consent")
        tab.click("#decline")
        view(tab, "declined")
        assert participants.everybody() == []
        tab.click("#again")
        tab.click("#agree")
        view(tab, "instructions")
        tab.click("#begin")
        for sitting in (1, 2):
            for number, rows in enumerate(ROWS):
                if sitting == 2 and number == 0:
                    # A tab that was closed, and opened again.
                    tab.reload()
                    view(tab, "instructions")
                    expect(tab.locator("#resumed")).to_contain_text("4 of 8")
                    tab.click("#begin")
                elif number:
                    if sitting == 1 and number == 1:
                        view(tab, "break")
                    through_the_break(tab)
                tab.wait_for_selector("#task:not([hidden])")
                if sitting == 1:
                    view(tab, "task")
                keyboard = Keyboard(tab)
                if number == 1:
                    keyboard.tap("zz")
                    expect(tab.locator("#remark")).to_contain_text("mistake")
                    view(tab, "task")
                keyboard.type(rows)
                if number == 3:
                    tab.click("#done")
                expect(tab.locator("#count")).to_contain_text(f"{4 * (sitting - 1) + number + 1} of 8")
        view(tab, "end")
        assert participants.finished()
    frame = load_recordings(tmp_path / "typing.csv")
    for session, found in frame.groupby("session"):
        rows = ROWS[session % 4]
        names = [str(n + 1) for n in range(len(rows))] if session % 4 == 2 else [r["keyname"] for r in rows]
        assert found["keyname"].tolist() == names
        for name in TYPED[1:]:
            np.testing.assert_allclose(found[name], [row[name] for row in rows], rtol=0, atol=PRECISION)
    # No text is anywhere, and no key of the password.
    kept = "".join(path.read_text() for path in tmp_path.glob("typing.*"))
    for text in (text_of(COPIED), text_of(PASSWORD), "What do you see"):
        assert text not in kept


def test_a_paste_is_asked_for_again_and_text_is_only_text(tab, tmp_path):
    with (
        participants_of(tmp_path, ONE, users=("ann", "bob")) as participants,
        served(participants) as address,
    ):
        tab.goto(address)
        view(tab, "who")
        tab.get_by_role("button", name="bob").click()
        tab.click("#agree")
        tab.click("#begin")
        tab.wait_for_selector("#task:not([hidden])")
        assert tab.inner_text("#prompt") == "<img src=x onerror=alert(1)>"
        assert tab.locator("main img").count() == 0
        keyboard = Keyboard(tab)
        keyboard.tap("abc")
        tab.evaluate("document.activeElement.select()")
        keyboard.send("Input.dispatchKeyEvent", type="rawKeyDown", code="KeyC", commands=["copy"])
        keyboard.send("Input.dispatchKeyEvent", type="keyUp", code="KeyC")
        keyboard.send("Input.dispatchKeyEvent", type="rawKeyDown", code="KeyV", commands=["paste"])
        keyboard.send("Input.dispatchKeyEvent", type="keyUp", code="KeyV")
        expect(tab.locator("#remark")).to_contain_text("Text was pasted. Please type it again.")
        assert tab.locator("#field textarea").input_value() == ""
        # With mistakes: they are allowed here. Tab to the button is none of the keys.
        keyboard.tap("x" * 24)
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        expect(tab.locator("#count")).to_contain_text("1 of 3")
        # Enter ends a line, and is none of its keys either.
        keyboard.tap("y" * 24)
        tab.keyboard.press("Enter")
        expect(tab.locator("#count")).to_contain_text("2 of 3")
        assert participants.table()[1] | {"clock_tick_ms": None} == {
            "participant": "bob", "samples": 2, "of": 3, "keystrokes": 48, "asked_again": 1,
            "left_the_page": 0, "clock_tick_ms": None,
        }  # fmt: skip
    assert set(load_recordings(tmp_path / "typing.csv")["keyname"]) == {"x", "y"}


def test_a_recorder_that_is_gone_for_a_while_loses_nothing(tab, tmp_path):
    with participants_of(tmp_path, ONE) as participants, served(participants) as address:
        begin(tab, address)
        port = int(re.search(r":(\d+)/", address)[1])
        Keyboard(tab).tap("x" * 30)
    tab.click("#done")
    view(tab, "trouble")
    with participants_of(tmp_path, ONE) as participants, served(participants, port):
        tab.click("#retry")
        expect(tab.locator("#count")).to_contain_text("1 of 3")
        # Of another run: its secret is another one.
        tab.evaluate("location.hash = 'other'")
        view(tab, "trouble")
        assert "another recording" in tab.inner_text("#trouble")
    assert len(load_recordings(tmp_path / "typing.csv")) == 30
