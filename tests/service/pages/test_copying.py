"""Typing is compared with the text that it copies: typed, corrected, or typed over another."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from playwright.sync_api import expect

from keydyn.datasets.simulated.keyboard import spelled
from tests.service.pages.people import typed
from tests.service.pages.visiting import ADA, Visitor

TENANTS = (f"copy-{n}" for n in count())
# How a German keyboard types what a US keyboard does not, by the sign on the same key of a US keyboard.
GERMAN = {"ä": "'", "ö": ";", "ü": "=", "ß": "-"}


@pytest.fixture
def visitor(tab, service):
    """A visitor to whom the first text is shown."""
    visitor = Visitor(tab)
    visitor.open(service, next(TENANTS))
    visitor.create("ada")
    return visitor


def shown(visitor: Visitor, kind: str) -> str:
    """The part of the text that is shown as typed, wrong, or next."""
    return "".join(visitor.page.locator(f".prompt:visible .{kind}").all_inner_texts())


def changes(one: str, other: str) -> int:
    """The least number of insertions, deletions and replacements that turn one text into the other."""
    row = list(range(len(other) + 1))
    for n, character in enumerate(one, 1):
        above, row = row, [n]
        for m, wanted in enumerate(other, 1):
            row.append(min(above[m - 1] + (character != wanted), above[m] + 1, row[m - 1] + 1))
    return row[-1]


def test_mistakes_are_the_fewest_changes_to_the_beginning_of_the_text(visitor):
    rng = np.random.default_rng(3)
    cases = [("", "abc"), ("abc", "abc"), ("abd", "abcde"), ("ü𝄞", "ü𝄞x"), ("abcabc", "")]
    cases += [("".join(rng.choice([*"abc"], n)), "".join(rng.choice([*"abc"], 12))) for n in range(1, 20)]
    found = visitor.page.evaluate(
        """async cases => {
            const { compared } = await import("/pages/copying.js");
            return cases.map(([typed, text]) => compared(typed, text));
        }""",
        cases,
    )
    for (wrote, text), one in zip(cases, found, strict=True):
        fewest = min(changes(wrote, text[:end]) for end in range(len(text) + 1))
        assert one["mistakes"] == fewest == changes(wrote, text[: len(one["right"])]), (wrote, text)
        # What is right was typed, in this order.
        characters = iter(wrote)
        assert all(sign in characters for sign, right in zip(text, one["right"], strict=False) if right)


def test_errors_are_shown_and_vanish_when_they_are_mended(visitor):
    text = visitor.asked()
    assert text.startswith("The morning")
    visitor.keyboard.type(typed(ADA, "The morming"))
    assert (shown(visitor, "typed"), shown(visitor, "wrong"), shown(visitor, "next")) == (
        "The moring", "n", " ",
    )  # fmt: skip
    expect(visitor.page.get_by_text("1 mistake", exact=False)).to_be_visible()
    visitor.keyboard.tap(["backspace"] * 4)
    visitor.keyboard.type(typed(ADA, "ning"))
    assert (shown(visitor, "typed"), shown(visitor, "wrong")) == ("The morning", "")
    expect(visitor.page.get_by_text("4 corrections")).to_be_visible()
    # A letter that was left out moves nothing after it.
    visitor.keyboard.type(typed(ADA, " bs was"))
    assert (shown(visitor, "typed"), shown(visitor, "wrong")) == ("The morning bs was", "u")


def test_who_empties_the_field_begins_again(visitor):
    visitor.keyboard.tap(spelled("the mor"))
    expect(visitor.page.locator("#enrol .hint.number")).to_contain_text("7 keystrokes")
    visitor.keyboard.tap(["backspace"] * 7)
    expect(visitor.page.locator("#enrol .hint.number")).to_have_text("0 keystrokes")
    assert shown(visitor, "typed") == ""
    visitor.copy(ADA)
    expect(visitor.page.locator("#enrol-step")).to_have_text("Text 2 of 5")


def test_a_text_is_shown_when_it_can_be_typed_and_not_before(visitor):
    """Of what was typed into a field left by somebody else, the first keys were lost."""
    page, held = visitor.page, []
    page.get_by_role("button", name="Switch person").click()
    page.route("**/v1/settings", lambda route: held.append(route))
    page.get_by_label("Your name").fill("eve")
    with page.expect_request("**/v1/settings"):
        page.get_by_role("button", name="Begin").click()
    while not held:
        page.wait_for_timeout(20)
    assert page.locator("#enrol").is_hidden()
    held[0].continue_()
    page.unroute("**/v1/settings")
    visitor.asked()
    visitor.keyboard.tap(spelled("the mor"))
    expect(page.locator("#enrol .hint.number")).to_contain_text("7 keystrokes")


def test_another_text_is_not_enrolled(visitor):
    visitor.keyboard.type(
        typed(ADA, "Der Bus kam wieder einmal viel zu spaet also gingen wir zu Fuss zum Fluss")
    )
    expect(visitor.page.get_by_role("button", name="Store this text")).to_be_disabled()
    visitor.keyboard.tap(["enter"])
    expect(visitor.page.get_by_text("This is not the text above")).to_be_visible()
    expect(visitor.page.locator("#enrol-step")).to_have_text("Text 1 of 5")


def test_texts_are_in_the_language_that_one_chooses(visitor):
    choice = visitor.page.locator("select:visible")
    choice.select_option("Deutsch")
    expect(visitor.page.locator(".prompt:visible")).to_contain_text("Der Bus kam wieder zu spät")
    expect(visitor.page.locator(".prompt:visible")).to_have_attribute("lang", "de")
    expect(visitor.field).to_be_focused()
    asked = visitor.asked()
    visitor.keyboard.layout = {spelled(sign)[0]: letter for letter, sign in GERMAN.items()}
    visitor.write(typed(ADA, asked.translate(str.maketrans(GERMAN))))
    expect(visitor.page.locator("#enrol-step")).to_have_text("Text 2 of 5")
    expect(visitor.page.locator(".prompt:visible")).to_contain_text("drei kleine Steine")
    # The browser remembers it, and a text of one's own is written in one's own words.
    visitor.page.reload()
    expect(visitor.page.locator(".prompt:visible")).to_contain_text("drei kleine Steine")
    for name, words in (("Español", "tres piedras"), ("Français", "trois petites pierres")):
        choice.select_option(name)
        expect(visitor.page.locator(".prompt:visible")).to_contain_text(words)
    choice.select_option("My own words")
    visitor.keyboard.layout = {}
    visitor.keyboard.type(typed(ADA, "what i ate yesterday was soup"))
    expect(visitor.page.get_by_text("41 to go")).to_be_visible()
    visitor.write(typed(ADA, " and bread with a piece of the old cheese", 1))
    expect(visitor.page.locator("#enrol-step")).to_have_text("Text 3 of 5")


def test_every_language_has_texts_that_a_keyboard_types(visitor):
    texts = visitor.page.evaluate(
        """async () => {
            const { LANGUAGES, choose, textFor } = await import("/pages/texts.js");
            const of = (purpose) => Array.from({ length: 4 }, (_, n) => textFor(purpose, n));
            return Object.keys(LANGUAGES).map((each) => (choose(each), [each, of("enrol"), of("recognise")]));
        }"""
    )
    assert [language for language, _, _ in texts] == ["en", "de", "es", "fr", "own"]
    every = [text for language, *kinds in texts if language != "own" for kind in kinds for text in kind]
    assert len(set(every)) == len(every) == 32
    assert all(60 <= len(text) <= 110 and text.isprintable() for text in every)
