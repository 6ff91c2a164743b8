"""A tenant and its administration, for tests and pictures of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, expect

from tests.service.running import Service
from tests.service.typists import enrol, keystrokes_of

VIEWS = {
    "overview": "Overview",
    "people": "People",
    "decisions": "Decisions",
    "errors": "Error rates",
    "settings": "Settings",
    "webhooks": "Webhooks",
    "audit": "Audit log",
}


class Office:
    """A tenant, its admin key, and a client with that key."""

    def __init__(self, service: Service, name: str) -> None:
        self.service, self.name = service, name
        self.key = service.key(name)
        self.client = service.client(self.key)

    def get(self, path: str, **query: Any) -> Any:
        """The service's answer to a request."""
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def make_busy(office: Office) -> None:
    """Cause a few events of every kind."""
    client, clock = office.client, office.service.clock
    enrol(client, "ada", 0)
    clock.now += 1
    enrol(client, "bob", 1, samples=2)
    for n in range(30):
        clock.now += 1
        client.post("/v1/users", json={"id": f"customer-{n}"})
    for user, session, level in ((0, 6, "standard"), (0, 7, "high"), (1, 7, "low"), (2, 7, "standard")):
        body = {"keystrokes": keystrokes_of(user, session), "level": level}
        assert client.post("/v1/users/ada/verify", json=body).status_code == 200
    client.post("/v1/identify", json={"keystrokes": keystrokes_of(0, 8)})
    client.post("/v1/users/ada/token", json={"purpose": "watch"})
    client.post("/v1/webhooks", json={"url": "https://example.org/hook", "events": ["session.locked"]})


def go(page: Page, name: str) -> None:
    """Go to a view."""
    page.get_by_role("navigation").get_by_role("link", name=VIEWS[name], exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(VIEWS[name])


def every_state(page: Page, office: Office) -> Iterator[str]:
    """Yield the name of each state of the administration while it is shown; nothing is changed."""
    key, heading = page.get_by_label("API key"), page.get_by_role("heading", level=1)
    page.goto(f"{office.service.url}/admin")
    expect(key).to_be_visible()
    yield "sign-in"
    key.fill("kdk_x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    yield "wrong-key"
    key.fill(office.key)
    page.keyboard.press("Enter")
    expect(heading).to_have_text("Overview")
    for name in VIEWS:
        go(page, name)
        yield name
        if name == "people":
            page.get_by_role("link", name="ada", exact=True).click()
            expect(heading).to_have_text("ada")
            yield "person"
            page.get_by_role("button", name="Erase").click()
            yield "erase"
            page.keyboard.press("Escape")
        elif name == "decisions":
            page.get_by_text("Show as a table").click()
            yield "decisions-as-a-table"
        elif name == "settings":
            page.get_by_label("Samples needed").fill("x")
            page.get_by_role("button", name="Save").click()
            yield "settings-wrong"
            page.get_by_label("Samples needed").fill("7")
            yield "settings-changed"
        elif name == "audit":
            page.get_by_role("button", name="Check the log").click()
            expect(page.locator(".message")).to_contain_text("intact")
            yield "audit-checked"
