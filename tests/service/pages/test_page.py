"""The page on which people try the service on themselves, used in a browser as by people."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, expect
from sqlalchemy import select

from keydyn.datasets.simulated.keyboard import spelled
from keydyn.service.accounts import new_link
from keydyn.service.storage.tables import users, watch_sessions
from keydyn.service.wall_clock import HOUR
from keydyn.service.wire.both_ways import USER_ID
from tests.client.flaky_proxy import LOST, PASS, flaky
from tests.ports import free_port
from tests.service.conftest import opened
from tests.service.pages.conftest import database_in, served
from tests.service.pages.people import recorded, typed
from tests.service.pages.visiting import ADA, EVE, OTHER_STORY, STORY, Visitor
from tests.service.running import KEYS, STARTED
from tests.service.typists import keystrokes_of
from tests.waiting import PATIENCE, wait_until

TENANTS = (f"visit-{n}" for n in count())


@pytest.fixture
def tenant() -> str:
    return next(TENANTS)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without any data of earlier visits."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * PATIENCE)
    yield context
    context.close()


@pytest.fixture
def visit(context: BrowserContext) -> Iterator[Callable[..., Visitor]]:
    """New tabs of one browser, which must send requests only to the service and report no errors."""
    complaints: list[str] = []
    asked: set[str] = set()

    def visit() -> Visitor:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda line: complaints.append(line.text) if "Security Policy" in line.text else None
        )
        page.on("request", lambda request: asked.add(request.url.split("/")[2].split(":")[0]))
        return Visitor(page)

    yield visit
    assert complaints == []
    assert asked <= {"127.0.0.1"}


@pytest.fixture
def visitor(visit) -> Visitor:
    return visit()


@pytest.fixture
def ada(visitor, service, tenant) -> Visitor:
    """The page of ada, who was enrolled before, in a tenant of her own."""
    enrolled(service, tenant, "ada", ADA)
    visitor.open(service, tenant)
    visitor.page.get_by_role("button", name="ada").click()
    expect(visitor.page.get_by_role("heading", name="Is it still you?")).to_be_visible()
    return visitor


def enrolled(service, tenant, name, person):
    """Enrol a person by a program, with samples in the rhythm in which they will type in the page."""
    client = service.client(service.key(tenant))
    settings = client.get("/v1/settings").json() | {"samples_needed": 3}
    client.put("/v1/settings", json=settings)
    client.post("/v1/users", json={"id": name})
    for time in range(3):
        answer = client.post(
            f"/v1/users/{name}/samples", json={"keystrokes": typed(person, STORY[:90], time)}
        )
        assert answer.status_code == 201, answer.text
    return client


def watched(database):
    with database.reading() as connection:
        return connection.execute(select(watch_sessions)).all()


def verdict(visitor):
    return visitor.page.locator("#decision .verdict")


@pytest.mark.slow
def test_two_people_enrol_and_are_told_apart(visit, service, tenant):
    """People who were recorded, where the recordings are there; otherwise simulated ones."""
    # Two whom the shipped population can tell from most others.
    people = recorded(1, 4)
    ada, bob = visit(), visit()
    typists = dict(zip((ada, bob), people or (ADA, EVE), strict=True))
    stretches = {one: iter(people[typist] if people else ()) for one, typist in typists.items()}
    times = count()

    def write(visitor: Visitor, author: Visitor) -> None:
        """Type the author's next stretch in the visitor's page."""
        if people:
            visitor.page.locator("select:visible").select_option("My own words")
            visitor.write(next(stretches[author]))
        else:
            visitor.copy(typists[author], next(times))

    ada.open(service, tenant)
    service_settings(service, tenant, samples_needed=3)
    expect(ada.page.get_by_label("Your name")).to_be_visible()
    bob.page.goto(service.url)
    for one, name in ((ada, "ada"), (bob, "bob")):
        one.create(name)
        for stored in range(3):
            expect(one.page.locator("#enrol-step")).to_have_text(f"Text {stored + 1} of 3")
            write(one, one)
        expect(one.page.get_by_role("heading", name="You are enrolled")).to_be_visible()
        one.page.get_by_role("link", name="Watch yourself live").click()
    # Each as themselves, and as the other.
    for one, other in ((ada, bob), (bob, ada)):
        one.go("Verify")
        write(one, one)
        expect(verdict(one)).to_have_text("✓ Accepted")
        one.page.get_by_label("Another person, trying to pass as").check()
        write(one, other)
        expect(verdict(one)).to_have_text("✗ Rejected")
        expect(one.page.get_by_text("Keys that spoke against it")).to_be_visible()
    ada.go("Identify")
    write(ada, bob)
    expect(ada.page.locator("#candidates .verdict")).to_have_text("Most probably bob")


def test_a_new_user_sees_trust_after_three_texts(visitor, service):
    """In the tenant that a link without a name is for."""
    visitor.open(service)
    visitor.enrol("ada", ADA)
    visitor.page.get_by_role("link", name="Watch yourself live").click()
    visitor.field.focus()
    visitor.keyboard.type(typed(ADA, STORY, 3))
    # Nearly all of it: the times are those at which a busy machine pressed the keys.
    expect(visitor.page.locator("#trust-now")).to_have_text(re.compile(r"^(9\d|100) %$"))
    expect(visitor.page.get_by_role("img", name=re.compile(r"^Trust (9\d|100) per cent"))).to_be_visible()


def test_a_watched_session_locks_an_impostor_and_is_unlocked(ada, service):
    page = ada.page
    expect(ada.field).to_be_focused()
    expect(page.locator("#watch-state")).to_have_text("Start typing")
    ada.keyboard.type(typed(ADA, STORY, 3))
    expect(page.locator("#watch-state")).to_have_text("Watching")
    expect(page.locator("#keys .tile.active").nth(20)).to_be_visible()
    expect(page.locator("#lock")).to_be_hidden()
    ada.keyboard.type(typed(EVE, OTHER_STORY))
    expect(page.locator("#lock")).to_be_visible()
    expect(page.get_by_text("An application would now ask for a password")).to_be_visible()
    assert watched(service.database)[-1].locked_at is not None
    # All keys but the last have a state, and it is said in words too.
    expect(page.locator("#keys .tile:not(.active):not(.passive)")).to_have_count(1)
    tiles = page.locator("#keys .tile")
    assert page.locator("#keys .passive").count() + page.locator("#keys .active").count() == tiles.count() - 1
    expect(page.get_by_role("img", name="active,")).to_be_visible()
    assert page.locator("#gave-away li").count() > 1
    # What locks, beside the trust that may still be high; and what the bars mean.
    expect(page.get_by_text("It is suspicion that locks the session")).to_be_visible()
    expect(page.locator("#gave-away-unit")).to_contain_text("Points of suspicion")
    page.get_by_role("button", name="Unlock").click()
    expect(page.locator("#lock")).to_be_hidden()
    assert watched(service.database)[-1].locked_at is None
    ada.keyboard.type(typed(ADA, STORY[:60], 4))
    expect(page.locator("#spoken")).to_contain_text("Trust")


def test_a_page_that_is_loaded_again_goes_on_with_enrolment_and_with_a_session(visitor, service, tenant):
    visitor.open(service, tenant)
    service_settings(service, tenant, samples_needed=3)
    page = visitor.page
    visitor.create("ada")
    visitor.copy(ADA)
    expect(page.get_by_text("Text 2 of 3")).to_be_visible()
    visitor.field.focus()
    visitor.keyboard.type(typed(ADA, visitor.asked())[:30])
    page.reload()
    expect(page.get_by_text("Text 2 of 3")).to_be_visible()
    expect(visitor.field).to_have_value("")
    for stored in (2, 3):
        expect(page.get_by_text(f"Text {stored} of 3")).to_be_visible()
        visitor.copy(ADA)
    page.get_by_role("link", name="Watch yourself live").click()
    visitor.field.focus()
    visitor.keyboard.type(typed(ADA, STORY[:60], 3))
    expect(page.locator("#trust-now")).not_to_be_empty()
    before = watched(service.database)[-1].id
    page.reload()
    expect(visitor.field).to_be_focused()
    visitor.keyboard.type(typed(ADA, STORY[60:120], 3))
    expect(page.locator("#trust-now")).not_to_be_empty()
    page.get_by_role("link", name="Your data").click()
    expect(page.locator("#stored")).to_contain_text("Sessions watched1")
    assert watched(service.database)[-1].id == before


def service_settings(service, tenant, **changed):
    client = service.client(service.key(tenant))
    client.put("/v1/settings", json=client.get("/v1/settings").json() | changed)
    return client


def test_two_tabs_are_two_people_and_sign_out_together(ada, visit, service, tenant):
    other = visit()
    other.page.goto(service.url)
    other.page.get_by_label("Your name").fill("bob")
    other.page.get_by_role("button", name="Begin").click()
    expect(other.page.locator("#name")).to_have_text("bob")
    ada.page.reload()
    expect(ada.page.locator("#name")).to_have_text("ada")
    other.page.get_by_role("button", name="Sign out").click()
    for one in (ada, other):
        expect(one.page.get_by_role("heading", name="This page needs a link")).to_be_visible()
    assert other.page.evaluate("localStorage.length") == 0


def test_one_session_in_two_windows_belongs_to_the_later_one(ada, context, visit, service):
    ada.keyboard.tap("a")
    expect(ada.page.locator("#watch-state")).to_have_text("Watching")
    kept = ada.page.evaluate("Object.entries(sessionStorage)")
    # As when a tab is duplicated.
    again = visit()
    again.page.goto(f"{service.url}/docs")
    again.page.evaluate("kept => kept.forEach(([key, value]) => sessionStorage.setItem(key, value))", kept)
    again.page.goto(service.url)
    expect(again.field).to_be_focused()
    expect(ada.page.get_by_text("Another tab or window has taken over")).to_be_visible()
    ada.page.get_by_role("button", name="Start watching again").click()
    expect(again.page.get_by_text("Another tab or window has taken over")).to_be_visible()


def test_lost_connections_are_shown_and_lose_nothing(visitor, service, tenant):
    enrolled(service, tenant, "ada", ADA)
    fate = [PASS]
    with flaky(int(service.url.rpartition(":")[2]), lambda: fate[0]) as proxy:
        link = new_link(service.database, KEYS, service.clock, tenant, proxy.url)
        page = visitor.page
        page.goto(link)
        page.get_by_role("button", name="ada").click()
        visitor.field.focus()
        visitor.keyboard.tap("a")
        expect(page.locator("#watch-state")).to_have_text("Watching")
        fate[0] = LOST
        visitor.keyboard.type(typed(ADA, STORY[:50], 3))
        expect(page.locator("#watch-state")).to_contain_text("Connection lost")
        fate[0] = PASS
        visitor.keyboard.type(typed(ADA, STORY[50:100], 3))
        expect(page.locator("#watch-state")).to_have_text("Watching")
        expect(page.locator("#trust-now")).not_to_be_empty()
        page.goto("about:blank")


# Keys that wait for a connection have ten seconds once their session is left: too few on a busy machine.
PATIENT_FAREWELL = """
const wait = window.setTimeout;
window.setTimeout = (act, pause, ...rest) => wait(act, pause === 10000 ? 300000 : pause, ...rest);
"""


def test_a_session_that_was_left_while_the_connection_was_lost_is_taken_up_again(visitor, service, tenant):
    enrolled(service, tenant, "ada", ADA)
    fate = [PASS]
    with flaky(int(service.url.rpartition(":")[2]), lambda: fate[0]) as proxy:
        page = visitor.page
        page.add_init_script(PATIENT_FAREWELL)
        page.goto(new_link(service.database, KEYS, service.clock, tenant, proxy.url))
        page.get_by_role("button", name="ada").click()
        visitor.keyboard.type(typed(ADA, STORY[:40], 3))
        expect(page.locator("#watch-state")).to_have_text("Watching")
        fate[0] = LOST
        visitor.keyboard.type(typed(ADA, STORY[40:60], 3))
        expect(page.locator("#watch-state")).to_contain_text("Connection lost")
        visitor.go("Verify")
        visitor.go("Watch live")
        fate[0] = PASS
        visitor.keyboard.type(typed(ADA, STORY[60:100], 3))
        expect(page.locator("#watch-state")).to_have_text("Watching")
        expect(page.locator("#keys .tile")).to_have_count(40)
        expect(page.locator("#watch-problem")).to_be_hidden()
        # What was typed before it was left is there too.
        visitor.go("Verify")
        wait_until(lambda: watched(service.database)[-1].sequence == 100)
        page.goto("about:blank")


def test_a_service_that_is_started_again_goes_on_where_it_was(visitor, tmp_path):
    # The port is one that no other process is given while the service is gone.
    database, port = database_in(tmp_path), free_port()
    page = visitor.page
    with served(database, port=port) as service:
        enrolled(service, "page", "ada", ADA)
        visitor.open(service)
        page.get_by_role("button", name="ada").click()
        visitor.field.focus()
        visitor.keyboard.type(typed(ADA, STORY[:40], 3))
        # A key is shown when it is answered, and answers that are on their way are lost with the service.
        expect(page.locator("#keys .tile")).to_have_count(40)
    expect(page.locator("#watch-state")).to_contain_text("Connection lost")
    visitor.keyboard.type(typed(ADA, STORY[40:80], 3))
    with served(database, port=port) as service:
        expect(page.locator("#watch-state")).to_have_text("Watching")
        expect(page.locator("#keys .tile")).to_have_count(80)
        page.get_by_role("link", name="Your data").click()
        expect(page.locator("#stored")).to_contain_text("Sessions watched1")
        page.goto("about:blank")
    # What was answered is durable when the service has stopped.
    for stopped in opened(database):
        assert [row.sequence for row in watched(stopped)] == [80]


def test_hostile_names_are_text(visitor, service, tenant):
    """The service does not take such names from outside; the page would not mind."""
    hostile = "<img src=x onerror=alert(1)>\"'&"
    client = service.client(service.key(tenant))
    client.post("/v1/users", json={"id": "ada"})
    service.database.write(
        lambda connection: connection.execute(
            users.update().where(users.c.name == "ada").values(name=hostile)
        )
    )
    shown: list[Any] = []
    visitor.page.on("dialog", lambda dialog: shown.append(dialog.dismiss()))
    visitor.open(service, tenant)
    expect(visitor.page.get_by_role("button", name=hostile)).to_be_visible()
    assert visitor.page.locator("main img").count() == 0
    assert shown == []


@pytest.mark.parametrize("name", ["José", "Anna Müller", "Élodie", "李小龙", "Константин", "W" * 64, "x~~a"])
def test_any_name_will_do_and_none_widens_the_page(visitor, service, tenant, name):
    visitor.open(service, tenant)
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.create(f"  {name} ")
    expect(page.locator("#name")).to_have_text(name)
    (user,) = service.client(service.key(tenant)).get("/v1/users").json()["users"]
    assert re.fullmatch(USER_ID, user["id"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Switch person").click()
    page.get_by_role("button", name=name).click()
    expect(page.get_by_role("heading", name="Type the first text")).to_be_visible()
    # The same name, written otherwise, is the same person.
    page.get_by_role("button", name="Switch person").click()
    page.get_by_label("Your name").fill(unicodedata.normalize("NFD", name))
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_text("A person with this name exists already")).to_be_visible()


def test_ids_and_names_are_one_to_one(visitor, service):
    visitor.page.goto(service.url)
    shown = visitor.page.evaluate(
        """async names => {
            const { idOf, nameOf } = await import("/pages/names.js");
            const outcome = (work) => { try { return work(); } catch (error) { return error.message; } };
            return names.map((name) => [outcome(() => idOf(name)), nameOf(name)]);
        }""",
        ["ada", "Ana Sá", "-", "a\u202eb", "a\u0000b", " ", "W" * 65, "李" * 40, "a~20~b", "a~0~b", "a~b~c"],
    )
    # The ids by hand; a name that is an id is itself, and what is no name shows as it is.
    assert shown[:3] == [["ada", "ada"], ["Ana~20~S~e1~", "Ana Sá"], ["x~~-", "-"]]
    assert ["cannot be shown" in one[0] for one in shown[3:5]] == [True, True]
    assert [one[0].split(".")[0] for one in shown[5:8]] == ["Enter a name", *["This name is too long"] * 2]
    assert [one[1] for one in shown[8:]] == ["a b", "a~0~b", "a~b~c"]


def test_tabs_switch_while_the_service_is_down_and_nothing_is_uncaught(visitor, service, tenant):
    enrolled(service, tenant, "ada", ADA)
    fate = [PASS]
    with flaky(int(service.url.rpartition(":")[2]), lambda: fate[0]) as proxy:
        page = visitor.page
        page.goto(new_link(service.database, KEYS, service.clock, tenant, proxy.url))
        page.get_by_role("button", name="ada").click()
        expect(visitor.field).to_be_focused()
        visitor.go("Verify")
        fate[0] = LOST
        for tab in ("Your data", "Watch live", "Identify", "Your rhythm", "Verify"):
            visitor.go(tab)
        expect(visitor.field).to_be_focused()
        visitor.copy(ADA)
        expect(page.locator("#verify .message.bad")).to_contain_text("The service cannot be reached")
        # What went wrong with parts that were left is not said.
        expect(page.locator("#notice")).to_be_empty()
        page.get_by_role("link", name="Your data").click()
        expect(page.locator("#notice")).to_contain_text("The service cannot be reached")
        fate[0] = PASS
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#stored")).to_contain_text("Texts kept3")
        expect(page.locator("#notice")).to_be_empty()


def test_a_phone_hears_at_once_that_its_keyboard_cannot_be_used(browser, service, tenant):
    warning = "On-screen keyboards do not report when keys are pressed"
    for phone in (True, False):
        context = browser.new_context(
            is_mobile=phone, has_touch=phone, viewport={"width": 390, "height": 844}
        )
        context.set_default_timeout(1000 * PATIENCE)
        one = Visitor(context.new_page())
        one.open(service, tenant)
        expect(one.page.get_by_label("Your name")).to_be_visible()
        expect(one.page.get_by_text(warning)).to_be_visible(visible=phone)
        context.close()


def test_shortcuts_do_not_lower_trust(ada):
    """Of keys that are pressed with others, none reaches the service."""
    ada.keyboard.type(typed(ADA, STORY[:60], 3))
    for keys in ("Control+c", "Home", "End", "Control+ArrowLeft", "End") * 4:
        ada.page.keyboard.press(keys)
    expect(ada.page.locator("#watch-quality")).to_have_text("shortcuts were left out")
    ada.keyboard.type(typed(ADA, STORY[60:90], 4))
    expect(ada.page.locator("#keys .tile").nth(79)).to_be_visible()
    expect(ada.page.get_by_role("img", name=re.compile("after 90 keys"))).to_be_visible()
    assert set(ada.page.locator("#keys .tile").all_inner_texts()) <= {*STORY, "␣"}
    expect(ada.page.locator("#trust-now")).to_have_text(re.compile(r"^(9\d|100) %$"))


def test_a_verdict_goes_with_the_next_attempt(ada):
    ada.go("Verify")
    ada.copy(ADA, 3)
    expect(verdict(ada)).to_have_text("✓ Accepted")
    expect(ada.page.get_by_text("In nats: 0.7 makes")).to_be_visible()
    expect(ada.field).to_be_focused()
    ada.keyboard.type(typed(ADA, ada.asked()[:10]))
    ada.keyboard.tap(["enter"])
    expect(ada.page.get_by_text("Please type the whole text")).to_be_visible()
    expect(verdict(ada)).to_have_count(0)


def test_without_a_link_or_with_a_used_one_it_says_what_to_do(visit, service, tenant):
    one = visit()
    one.page.goto(service.url)
    expect(one.page.get_by_role("heading", name="This page needs a link")).to_be_visible()
    expect(one.page.get_by_text(".venv/bin/keydyn service link")).to_be_visible()
    link = new_link(service.database, KEYS, service.clock, tenant, service.url)
    one.page.goto(link)
    expect(one.page.get_by_label("Your name")).to_be_visible()
    assert one.page.url == f"{service.url}/"
    one.page.get_by_role("button", name="Sign out").click()
    one.page.goto("about:blank")
    one.page.goto(link)
    expect(one.page.get_by_text("This link has already been used or is too old.")).to_be_visible()
    # Whoever is signed in already is not bothered by it.
    one.page.goto(new_link(service.database, KEYS, service.clock, tenant, service.url))
    expect(one.page.get_by_label("Your name")).to_be_visible()
    one.page.goto("about:blank")
    one.page.goto(link)
    expect(one.page.get_by_label("Your name")).to_be_visible()


def test_a_session_that_has_ended_says_so(ada, service):
    service.clock.now += 12 * HOUR
    try:
        # The page may notice by itself, before the link is clicked, when it asks for a token to watch with.
        ada.page.evaluate("() => { location.hash = 'data'; }")
        expect(ada.page.get_by_text("Your session on this page has ended.")).to_be_visible()
    finally:
        service.clock.now = STARTED


def test_what_was_not_typed_is_refused_in_words(visitor, service, tenant):
    visitor.open(service, tenant)
    page = visitor.page
    visitor.create("ada")
    visitor.field.fill(visitor.asked())
    page.get_by_role("button", name="Store this text").click()
    expect(page.get_by_text("Part of this was not typed")).to_be_visible()
    page.reload()
    visitor.field.focus()
    keys = spelled(visitor.asked())
    jitter = np.random.default_rng(0).uniform(0.0, 2.0, (2, len(keys)))
    visitor.keyboard.type(
        [
            {"keyname": key, "timepress": 100.0 * n + one, "timerelease": 100.0 * n + 60.0 + other}
            for n, (key, one, other) in enumerate(zip(keys, *jitter, strict=True))
        ]
    )
    page.get_by_role("button", name="Store this text").click()
    expect(page.locator("#enrol .message.bad")).to_contain_text("too regular")
    expect(page.locator("#enrol-step")).to_have_text("Text 1 of 5")


def test_failed_attempts_wait_and_can_be_forgotten(ada, service, tenant):
    client = service.client(service.key(tenant))
    for session in range(5):
        client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(1, session)})
    ada.go("Verify")
    ada.copy(EVE)
    expect(ada.page.get_by_role("button", name="Forget the failed attempts")).to_be_visible()
    ada.page.get_by_role("button", name="Forget the failed attempts").click()
    expect(ada.page.locator("#verify-wait")).to_be_hidden()
    ada.copy(ADA)
    expect(verdict(ada)).to_have_text("✓ Accepted")


def test_the_administration_is_open_to_whoever_has_the_page(ada):
    ada.page.get_by_role("link", name="Administration").click()
    ada.page.get_by_role("button", name="Use this browser’s session").click()
    expect(ada.page.get_by_text("Sign in")).to_have_count(0)


def test_export_and_erase(ada, service, tenant):
    ada.go("Your data")
    expect(ada.page.locator("#stored")).to_contain_text("Texts kept3")
    service.idle()
    with ada.page.expect_download() as download:
        ada.page.get_by_role("button", name="Export").click()
    exported = json.loads(download.value.path().read_text())
    client = service.client(service.key(tenant))
    assert exported["profiles"] == client.get("/v1/users/ada/export").json()["profiles"]
    assert download.value.suggested_filename == "ada.json"
    ada.page.get_by_role("button", name="Erase me").click()
    ada.page.get_by_role("button", name="Keep it").click()
    assert len(client.get("/v1/users").json()["users"]) == 1
    ada.page.get_by_role("button", name="Erase me").click()
    ada.page.get_by_role("button", name="Erase everything").click()
    expect(ada.page.get_by_role("heading", name="Do you type like yourself?")).to_be_visible()
    expect(ada.page.get_by_text("ada was erased: 3 texts, the template")).to_be_visible()
    assert client.get("/v1/users").json()["users"] == []
