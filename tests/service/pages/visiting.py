"""A visitor of the service's page: opens it by a link, types in it, looks at it."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Locator, Page, expect

from keydyn.service.accounts import PAGE, new_link
from tests.service.pages.keyboard import EXACT_TIMES, Keyboard, Row
from tests.service.pages.people import typed
from tests.service.running import KEYS, Service
from tests.waiting import PATIENCE

# What axe looks for in the dark, where only colours are different.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
# The machine may be busy.
expect.set_options(timeout=1000 * PATIENCE)
# What somebody writes, and what somebody else adds. Of all simulated people two are at the keyboard.
STORY = (
    "yesterday we went to the lake and had a picnic in the sun with bread and cheese and a few apples from "
    "the old tree behind the house where my aunt used to live before she moved to the city"
)
OTHER_STORY = (
    " now another hand writes these words and the service should notice it before long because the rhythm "
    "is not the same as before even though the sentence goes on and on in the very same way until the end"
)
ADA, EVE = 0, 4


# A page that is left gives up after ten seconds to send what was typed in it. A busy machine takes longer.
PATIENT = """(() => {
    const own = setTimeout;
    window.setTimeout = (work, ms, ...rest) => own(work, ms === 10000 ? 600000 : ms, ...rest);
})()"""


class Visitor:
    """Uses a page as people do, by its visible texts."""

    def __init__(self, page: Page) -> None:
        self.page, self.keyboard = page, Keyboard(page)
        for script in (EXACT_TIMES, PATIENT):
            page.add_init_script(script)

    def open(self, service: Service, tenant: str = PAGE) -> None:
        """Open the page by a new link."""
        self.page.goto(new_link(service.database, KEYS, service.clock, tenant, service.url))

    def create(self, name: str) -> None:
        """Create a person."""
        self.page.get_by_label("Your name").fill(name)
        self.page.get_by_role("button", name="Begin").click()
        expect(self.page.get_by_role("heading", name="Type the first text")).to_be_visible()
        # Until the text is there, the field is emptied once more.
        self.asked()

    def asked(self) -> str:
        """The text to copy now, once the page has received it from the service."""
        prompt = self.page.locator(".prompt:visible")
        expect(prompt).not_to_be_empty()
        return prompt.inner_text()

    def copy(self, person: int, time: int = 0) -> None:
        """Copy the text in the rhythm of a person, and send it."""
        self.write(typed(person, self.asked(), time))

    def write(self, rows: list[Row]) -> None:
        """Type something into the field, and send it."""
        self.field.focus()
        self.keyboard.type(rows)
        self.page.locator("button.primary:visible").click()

    @property
    def field(self) -> Locator:
        """The field to type in."""
        return self.page.locator("textarea:visible")

    def enrol(self, name: str, person: int) -> None:
        """Create a person, and type until they are enrolled."""
        self.create(name)
        for stored in range(3):
            expect(self.page.get_by_text(f"Text {stored + 1} of 3")).to_be_visible()
            self.copy(person)
        expect(self.page.get_by_role("heading", name="You are enrolled")).to_be_visible()

    def go(self, tab: str) -> None:
        """Go to a part of the page."""
        self.page.get_by_role("link", name=tab, exact=True).click()
        expect(self.page.get_by_role("link", name=tab, exact=True)).to_have_attribute("aria-current", "page")


def every_state(visitor: Visitor, service: Service) -> Iterator[str]:
    """Yield the name of each state of the page while it is shown, from a missing link to an erased person."""
    page = visitor.page
    page.goto(service.url)
    expect(page.get_by_role("heading", name="This page needs a link")).to_be_visible()
    yield "no-link"
    visitor.open(service)
    expect(page.get_by_label("Your name")).to_be_visible()
    yield "welcome"
    visitor.create("ada")
    visitor.field.focus()
    visitor.keyboard.type(typed(ADA, visitor.asked())[:40])
    page.get_by_role("button", name="Store this text").focus()
    yield "enrol"
    visitor.field.focus()
    visitor.keyboard.press("enter", 0)
    visitor.keyboard.release("enter", 60)
    expect(page.locator("#enrol .message.bad")).to_be_visible()
    yield "enrol-refused"
    page.reload()
    for stored in range(3):
        expect(page.get_by_text(f"Text {stored + 1} of 3")).to_be_visible()
        visitor.copy(ADA)
    expect(page.get_by_role("heading", name="You are enrolled")).to_be_visible()
    yield "enrolled"
    page.get_by_role("link", name="Watch yourself live").click()
    expect(visitor.field).to_be_focused()
    visitor.keyboard.type(typed(ADA, STORY))
    expect(page.locator("#keys .tile").nth(70)).to_be_visible()
    expect(page.get_by_role("img", name=f"after {len(STORY)} keys")).to_be_visible()
    yield "watch"
    visitor.keyboard.type(typed(EVE, OTHER_STORY))
    expect(page.locator("#lock")).to_be_visible()
    yield "watch-locked"
    visitor.go("Verify")
    visitor.copy(ADA)
    expect(page.locator("#decision .verdict")).to_have_text("✓ Accepted")
    yield "verify-accepted"
    page.get_by_label("Another person, trying to pass as").check()
    visitor.copy(EVE)
    expect(page.locator("#decision .verdict")).to_have_text("✗ Rejected")
    yield "verify-rejected"
    visitor.go("Identify")
    visitor.copy(EVE, 1)
    expect(page.locator("#candidates .verdict")).to_contain_text("nobody")
    yield "identify-nobody"
    visitor.copy(ADA, 1)
    expect(page.locator("#candidates .verdict")).to_contain_text("ada")
    yield "identify"
    visitor.go("Your rhythm")
    expect(page.get_by_role("img", name="Densities of")).to_have_count(8)
    yield "rhythm"
    visitor.go("Your data")
    expect(page.locator("#stored")).to_contain_text("Texts kept")
    yield "data"
    page.get_by_role("button", name="Erase me").click()
    yield "erase"
    page.get_by_role("button", name="Keep it").click()
    page.get_by_role("button", name="Switch person").click()
    expect(page.get_by_role("heading", name="Or continue as")).to_be_visible()
    yield "people"
