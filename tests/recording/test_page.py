"""The page of keydyn record in a real browser: typing with a human rhythm, from consent to the end."""

from __future__ import annotations

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from keydyn.datasets import load_recordings
from keydyn.datasets.simulated.keyboard import spelled
from tests.ports import free_port
from tests.recording.course import COPIED, PASSWORD, ROWS, TYPED, every_state, seen, text_of
from tests.recording.studies import participants_of, served
from tests.service.pages.keyboard import EXACT_TIMES, Keyboard
from tests.service.pages.recorded import PRECISION
from tests.service.pages.visiting import COLOURS
from tests.waiting import PATIENCE

PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1100, "height": 760}
ONE = 'title = "<b>Typing</b>"\n[[prompts]]\ntext = "<b>some words to be typed here</b>"\nrepetitions = 3\n'
# What is typed of it; the rest are mistakes.
WORDS = "some words to be typed here"


@pytest.fixture
def tab(browser):
    """An empty tab."""
    # Colours that change gradually have too little contrast on the way.
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.add_init_script(EXACT_TIMES)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    # What cannot be loaded is what these tests take away.
    assert [error for error in errors if not error.startswith("Failed to load resource")] == []


def look(page, state):
    """Check that axe finds nothing, in light and dark, and that the page fits on a phone."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = Axe().run(page, options=COLOURS if scheme == "dark" else {})
        assert found.violations_count == 0, (state, scheme, found.generate_report())
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], state
    page.set_viewport_size(DESKTOP)


def test_the_whole_course_of_a_participant(tab, tmp_path):
    for state in every_state(tab, tmp_path):
        look(tab, state)
    frame = load_recordings(tmp_path / "typing.csv")
    assert frame["session"].nunique() == 8
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
        seen(tab, "who")
        tab.get_by_role("button", name="bob").click()
        tab.click("#agree")
        tab.click("#begin")
        tab.wait_for_selector("#task:not([hidden])")
        assert tab.inner_text("#title") == tab.title() == "<b>Typing</b>"
        assert tab.inner_text("#prompt") == f"<b>{WORDS}</b>"
        assert tab.locator("main b").count() == 0
        keyboard = Keyboard(tab)
        keyboard.tap("abc")
        tab.evaluate("document.activeElement.select()")
        keyboard.send("Input.dispatchKeyEvent", type="rawKeyDown", code="KeyC", commands=["copy"])
        keyboard.send("Input.dispatchKeyEvent", type="keyUp", code="KeyC")
        keyboard.send("Input.dispatchKeyEvent", type="rawKeyDown", code="KeyV", commands=["paste"])
        keyboard.send("Input.dispatchKeyEvent", type="keyUp", code="KeyV")
        expect(tab.locator("#remark")).to_contain_text("Text was pasted. Please type it again.")
        assert tab.locator("#field textarea").input_value() == ""
        # Another text is none of the study.
        keyboard.tap("x" * 30)
        expect(tab.locator("#done")).to_be_disabled()
        tab.keyboard.press("Control+a")
        tab.keyboard.press("Backspace")
        # With mistakes: they are allowed here. Tab to the button is none of the keys.
        keyboard.tap(spelled(WORDS))
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        expect(tab.locator("#count")).to_contain_text("1 of 3")
        # Enter ends a line, and is none of its keys either.
        keyboard.tap(spelled(WORDS))
        tab.keyboard.press("Enter")
        expect(tab.locator("#count")).to_contain_text("2 of 3")
        assert participants.table()[1] | {"clock_tick_ms": None} == {
            "participant": "bob", "samples": 2, "of": 3, "keystrokes": 85, "asked_again": 1,
            "left_the_page": 0, "clock_tick_ms": None,
        }  # fmt: skip
    assert load_recordings(tmp_path / "typing.csv")["keyname"].tolist() == [
        *("x" * 30), "backspace", *spelled(WORDS), *spelled(WORDS),
    ]  # fmt: skip


def test_participants_hand_over_to_each_other(tab, tmp_path):
    study = '[[prompts]]\ntext = "a few words"\n'
    users = ("p01", "p02")
    with participants_of(tmp_path, study, users=users) as participants, served(participants) as address:
        tab.goto(address)
        tab.get_by_role("button", name="p01").click()
        for name in users:
            expect(tab.locator("#participant .badge")).to_have_text(name)
            tab.click("#agree")
            tab.click("#begin")
            expect(tab.locator("#hint")).to_contain_text("Press Enter when you are done")
            # A text that is right is taken at once; of this one the last letter is missing.
            Keyboard(tab).tap(spelled("a few word"))
            tab.keyboard.press("Enter")
            seen(tab, "end")
            if name == "p01":
                expect(tab.get_by_text("p02, please.")).to_be_visible()
                look(tab, "hand-over")
                tab.get_by_role("button", name="Begin as p02").click()
        expect(tab.get_by_text("please.")).to_be_hidden()
        expect(tab.get_by_text("You can close this page.", exact=True)).to_be_visible()
        assert participants.finished()


def test_a_recorder_that_is_gone_for_a_while_loses_nothing(tab, tmp_path):
    # One that no other process is given while the recorder is gone.
    port = free_port()
    with participants_of(tmp_path, ONE) as participants, served(participants, port) as address:
        tab.goto(address)
        tab.click("#agree")
        tab.click("#begin")
        seen(tab, "task")
        Keyboard(tab).tap(spelled(WORDS))
    tab.click("#done")
    seen(tab, "trouble")
    assert "cannot be reached" in tab.inner_text("#trouble")
    with participants_of(tmp_path, ONE) as participants, served(participants, port):
        tab.click("#retry")
        expect(tab.locator("#count")).to_contain_text("1 of 3")
    assert len(load_recordings(tmp_path / "typing.csv")) == len(WORDS)
