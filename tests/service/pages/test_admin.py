"""The administration, used in Chromium as people use it, against the answers of the HTTP interface."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from sqlalchemy import text

from keydyn.service import accounts
from keydyn.service.accounts import new_link
from keydyn.service.storage import audit
from tests.service.pages.administering import VIEWS, Office, every_state, go, make_busy
from tests.service.pages.visiting import COLOURS
from tests.service.running import KEYS, http_get
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

NAMES = (f"office-{n}" for n in count())
HOUR, DAY = 3_600_000, 86_400_000
HOSTILE = "<img src=x onerror=\"document.title='hurt'\">"


@pytest.fixture
def office(service):
    return Office(service, next(NAMES))


@pytest.fixture(scope="module")
def busy(service):
    """A tenant with events of every kind, which tests do not change."""
    office = Office(service, next(NAMES))
    make_busy(office)
    return office


@pytest.fixture
def open_admin(browser, service):
    """Opens the administration, signed in with a key if there is one."""
    contexts, wrong = [], []

    def opened(key=None, view="overview", **kind):
        context = browser.new_context(locale="en-GB", **kind)
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: "Policy" in said.text and wrong.append(said.text))
        page.goto(f"{service.url}/admin#{view}")
        if key is not None:
            page.get_by_label("API key").fill(key)
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("heading", level=1)).to_have_text(VIEWS.get(view, view.split("/")[-1]))
        return page

    yield opened
    for context in contexts:
        context.close()
    # No script failed, and nothing was tried that the policy forbids.
    assert wrong == []


def rows(page, label):
    """The cells of a table, row by row."""
    cells = "table => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    return page.get_by_role("table", name=label).evaluate(cells)


def fact(page, term):
    """The description shown for a term."""
    return page.locator(f"dt:text-is('{term}') + dd").inner_text()


def test_signing_in_needs_an_admin_key_and_keeps_none(open_admin, service, office):
    page = open_admin(view="settings")
    field, sign_in = page.get_by_label("API key"), page.get_by_role("button", name="Sign in")
    expect(field).to_be_focused()
    for key, why in (
        ("kdk_x", "not valid"),
        (service.key(office.name, scopes=["enrol"]), "lacks the scope admin"),
    ):
        field.fill(key)
        sign_in.click()
        expect(page.get_by_role("alert")).to_contain_text(why)
    field.fill(f" {office.key} ")
    field.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    expect(page.locator("#tenant")).to_have_text(office.name)
    kept = page.evaluate("[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]")
    assert office.key not in "".join(kept)
    assert kept[1:] == ["{}", ""]
    token = json.loads(kept[0])["keydyn.admin"]
    # The session is this tab's: another one asks again, and the same one does not.
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_role("navigation")).to_be_hidden()
    assert page.evaluate("sessionStorage.length") == 0
    headers = {"authorization": f"Bearer {token}", "origin": service.url}
    assert http_get(f"{service.url}/v1/settings", headers=headers).status_code == 401


def test_a_session_that_ended_leads_back_to_the_sign_in(open_admin, service, office):
    page = open_admin(office.key)
    key_id = office.key.split("_")[1]
    service.database.write(lambda connection: accounts.revoke_key(connection, key_id, 0))
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("alert")).to_contain_text("Your session has ended")
    # Signed in again, the view that was asked for is there.
    page.get_by_label("API key").fill(service.key(office.name))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")


def test_whoever_opened_the_page_by_a_link_needs_no_key(open_admin, service, office):
    page = open_admin()
    expect(page.get_by_role("button", name="Use this browser’s session")).to_have_count(0)
    page.goto(new_link(service.database, KEYS, service.clock, office.name, service.url))
    expect(page.get_by_label("Your name")).to_be_visible()
    page.goto(f"{service.url}/admin")
    page.get_by_role("button", name="Use this browser’s session").click()
    expect(page.locator("#tenant")).to_have_text(office.name)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    token = page.evaluate("localStorage.getItem('keydyn.session')")
    # Signing out here ends it, at the service too.
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_role("button", name="Use this browser’s session")).to_have_count(0)
    headers = {"authorization": f"Bearer {token}", "origin": service.url}
    assert http_get(f"{service.url}/v1/settings", headers=headers).status_code == 401


def test_a_key_with_the_scope_admin_alone_sees_people(open_admin, service, office):
    page = open_admin(service.key(office.name, scopes=["admin"]), "people")
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    expect(page.get_by_role("searchbox")).to_be_visible()


def test_the_overview_says_how_things_stand(open_admin, busy):
    page = open_admin(busy.key)
    assert (fact(page, "Known"), fact(page, "Enrolled")) == ("32", "1")
    answers = [period["verified"] for period in busy.get("/v1/decisions")["periods"]]
    for term, answer in (("Claims accepted", "accept"), ("Unsure", "unsure"), ("Rejected", "reject")):
        number = sum(level[answer] for period in answers for level in period.values())
        assert fact(page, term) == str(number)
    assert (fact(page, "Sessions being watched"), fact(page, "State")) == ("1", "working")


def test_people_are_listed_in_pages_and_found(open_admin, busy):
    page = open_admin(busy.key, "people")
    shown = rows(page, "People")
    assert len(shown) == 25
    assert shown[0][0] == "ada"
    assert "complete" in shown[0][1]
    assert "2 of 5 samples" in shown[1][1]
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    assert [row[0] for row in rows(page, "People")] == ["ada", "bob", *(f"customer-{n}" for n in range(30))]
    page.get_by_role("searchbox").fill("MER-2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(11)
    page.get_by_role("searchbox").fill("%")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No name or id contains this text")


def test_names_are_text_whatever_is_in_them(open_admin, service, office):
    office.client.post("/v1/users", json={"id": "ada"})
    renamed = text("UPDATE users SET name = :name WHERE name = 'ada' AND tenant_id IN "
                   "(SELECT id FROM tenants WHERE name = :tenant)")  # fmt: skip
    values = {"name": HOSTILE, "tenant": office.name}
    service.database.write(lambda connection: connection.execute(renamed, values))

    def logged(connection):
        tenant = accounts.tenant_named(connection, KEYS, office.name, 0)
        audit.append(connection, tenant, audit.Entry(0, HOSTILE, "verified", HOSTILE, {HOSTILE: HOSTILE}))

    service.database.write(logged)
    page = open_admin(office.key, "people")
    assert rows(page, "People")[0][0] == HOSTILE
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    go(page, "audit")
    page.get_by_label("Show", exact=True).select_option("Claim verified")
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(1)
    assert HOSTILE in rows(page, "Entries")[0][5]
    assert page.locator("main img").count() == 0
    assert page.title().startswith("Audit log")


def test_one_person_is_unblocked_exported_reset_and_erased(open_admin, service, office, tmp_path):
    enrol(office.client, "ada", 0)
    for _ in range(5):
        office.client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(1, 6)})
    page = open_admin(office.key, "people/ada")
    assert (fact(page, "Failed attempts in a row"), fact(page, "Next attempt")) == ("5", "in 30 s")
    assert fact(page, "Takeover chance spent").endswith(" of 5 % in 30 days")
    page.get_by_role("button", name="Clear failed attempts").click()
    expect(page.locator("dt:text-is('Next attempt') + dd")).to_have_text("any time")
    assert office.get("/v1/users/ada")["failed_attempts"] == 0
    office.service.idle()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export everything").click()
    assert download.value.suggested_filename == "ada.json"
    saved = json.loads(Path(download.value.path()).read_text())
    again = office.get("/v1/users/ada/export")
    # The first export is in the log since.
    assert again["audit"].pop()["action"] == "person.exported"
    assert saved == again
    # Escape is no, and the focus is where it was.
    again = page.get_by_role("button", name="Start enrolment again")
    again.click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(again).to_be_focused()
    assert office.get("/v1/users/ada")["profiles"][0]["samples"] == 5
    again.click()
    page.get_by_role("dialog").get_by_role("button", name="Start again").click()
    expect(page.get_by_role("table", name="Profiles")).to_contain_text("0 of 5 samples")
    # Whoever erases types the id; anything else erases nobody.
    erase = page.get_by_role("button", name="Erase")
    erase.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type ada to confirm").fill("adb")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Erase")).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    assert office.get("/v1/users/ada")["id"] == "ada"
    erase.click()
    dialog.get_by_label("Type ada to confirm").fill("ada")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    expect(page.locator("main")).to_contain_text("There are no people yet")
    assert office.client.get("/v1/users/ada").status_code == 404


def test_decisions_about_one_person_over_time_and_all_entries_about_them(open_admin, service, office):
    anna, other = "Anna~20~M~fc~ller", "eve"
    for name, user in ((anna, 0), (other, 1)):
        enrol(office.client, name, user)
    began = service.clock.now
    try:
        for days, user in ((0, 0), (2, 1), (5, 0)):
            service.clock.now = began + days * DAY
            answer = office.client.post(
                f"/v1/users/{anna}/verify", json={"keystrokes": keystrokes_of(user, 6 + days)}
            )
            assert answer.status_code == 200, answer.text
        page = open_admin(office.key, "people")
        page.get_by_role("searchbox").fill("Mül")
        page.keyboard.press("Enter")
        expect(page.get_by_role("table").locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Anna Müller").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Anna Müller")
        said = {"accept": "accepted", "unsure": "unsure", "reject": "rejected"}
        found = office.client.get("/v1/audit", params={"user": anna, "action": "verified"}).json()["entries"]
        answers = [said[entry["details"]["answer"]] for entry in found]
        assert [row[1] for row in rows(page, "Claims")] == answers
        assert len(answers) == 3
        assert len(set(answers)) > 1
        # One bar per claim, on its own day, the last of which is today.
        bars = page.locator("svg g:has(rect)")
        expect(bars).to_have_count(3)
        places = [n for n, one in enumerate(page.locator("svg g").all()) if one.locator("rect").count()]
        assert places == [24, 26, 29]
        page.get_by_role("link", name="All entries about this person").click()
        expect(page.get_by_label("About")).to_have_value("Anna Müller")
        actions = [row[2] for row in rows(page, "Entries")]
        assert actions.count("Claim verified") == 3
        assert actions[-1] == "Person created"
        of_all = len(actions)
        page.get_by_label("About").fill("")
        page.get_by_label("Show", exact=True).select_option("Person created")
        expect(page.get_by_role("table", name="Entries").locator("tbody tr")).to_have_count(2)
        page.get_by_label("About").fill("eve")
        page.keyboard.press("Enter")
        expect(page.get_by_role("table", name="Entries").locator("tbody tr")).to_have_count(1)
        page.get_by_label("About").fill("nobody")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("There is no such user")
        assert of_all > 8
    finally:
        service.clock.now = began


def test_nothing_is_cut_at_a_usual_width_and_the_page_is_one_click_away(open_admin, busy):
    page = open_admin(busy.key, viewport={"width": 1280, "height": 900})
    for name in VIEWS:
        go(page, name)
        for region in page.locator(".scroll").all():
            beyond = region.evaluate("place => place.scrollWidth - place.clientWidth")
            assert beyond <= 0, f"{name}: {region.get_attribute('aria-label')} is {beyond} pixels too wide"
    page.get_by_role("link", name="Try it on yourself").click()
    page.wait_for_url(lambda url: not url.endswith("/admin"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_bars_are_as_high_as_their_numbers(open_admin, busy):
    page = open_admin(busy.key, "decisions")
    days = busy.get("/v1/decisions")["periods"]
    number = {
        answer: sum(level[answer] for day in days for level in day["verified"].values())
        for answer in ("accept", "unsure", "reject")
    }
    assert number["accept"] > 0
    assert number["accept"] < sum(number.values())
    # A gap of one unit is left above each bar.
    heights = {
        answer: sum(float(bar.get_attribute("height")) + 1 for bar in page.locator(f"svg .{answer}").all())
        for answer in number
    }
    unit = heights["accept"] / number["accept"]
    assert heights == pytest.approx({answer: unit * n for answer, n in number.items()})
    assert f"{number['accept']} accepted" in page.get_by_role("img", name="Claims over time").get_attribute(
        "aria-label"
    )
    page.get_by_text("Show as a table").click()
    (day,) = rows(page, "What happened")
    expected = [*number.values(), 1, 0, 1, 0, 7, 1]
    assert day[1:] == [str(each) for each in expected]
    page.get_by_label("Security level in the chart").select_option("high")
    expect(page.locator("svg rect.accept, svg rect.unsure, svg rect.reject")).to_have_count(1)
    page.get_by_label("Period", exact=True).select_option("24h")
    expect(page.locator("svg g")).to_have_count(24)


def test_error_rates_are_shown_with_what_they_mean(open_admin, busy):
    page = open_admin(busy.key, "errors")
    stated = busy.get("/v1/error-rates")
    shown = rows(page, "Stated error rates")
    assert [row[0] for row in shown] == [str(rate["keystrokes"]) for rate in stated["standard"]["rates"]]
    for row, rate in zip(shown, stated["standard"]["rates"], strict=True):
        assert float(row[3].removesuffix(" %")) == pytest.approx(100 * rate["refused_genuine"], rel=0.06)
        assert row[4].startswith("1 % (")
    main = page.locator("main")
    expect(main).to_contain_text("at most one in 1,000 strangers may be accepted (0.1 %)")
    expect(main).to_contain_text("These are shares of answers, not error rates")
    expect(main).to_contain_text("The settings do not allow it")
    expect(page.get_by_role("button", name="Measure now")).to_have_count(0)


def test_error_rates_are_measured_among_the_people(open_admin, office):
    enrol(office.client, "ada", 0, samples=3)
    # Both measurements are made with the same cohort.
    settings = {"learn_from_people": True, "samples_needed": 3, "compare_people": False}
    office.client.put("/v1/settings", json=settings)
    page = open_admin(office.key, "errors")
    measure = page.get_by_role("button", name="Measure now")
    measure.click()
    expect(page.locator("main")).to_contain_text("At least two people are needed")
    for name, user in (("bob", 1), ("eve", 2)):
        enrol(office.client, name, user, samples=3)
    office.client.post("/v1/users/ada/reset")
    enrol(office.client, "ada-again", 3, samples=3)
    measure.click()
    expect(page.locator("main")).to_contain_text("3 people, 9 samples.")
    found = office.client.post("/v1/error-rates/measure", json={}).json()
    last = rows(page, "Measured error rates")[-1]
    assert last[0] == "60"
    for cell, rate in ((last[3], "refused_genuine"), (last[4], "accepted_strangers")):
        one = found["standard"][-1][rate]
        value = one["value"] or one["below"]
        assert f"{100 * value:.2g} %" in cell


def test_the_page_says_what_error_rates_rest_on(open_admin, office):
    office.client.put("/v1/settings", json={"samples_needed": 3})
    page = open_admin(office.key, "errors")
    expect(page.locator("main")).to_contain_text("It has not been adjusted to your people.")
    for user, name in enumerate(("ada", "bob", "eve")):
        enrol(office.client, name, user, samples=3)
    office.service.idle()
    own = office.get("/v1/error-rates")["own"]
    page.reload()
    words = f"adjusted by {own['comparisons']} comparisons among {own['people']} of your own people"
    expect(page.locator("main")).to_contain_text(words)


def test_settings_are_checked_beside_the_field_and_saved(open_admin, office):
    before = office.get("/v1/settings")
    page = open_admin(office.key, "settings")
    save = page.get_by_role("button", name="Save")
    wrong = {
        "Samples needed": ("51", "from 1 to 50"),
        "Days for which raw samples are kept": ("1.5", "whole number"),
        "False lock-outs per hour of typing": ("many", "Enter a number"),
        "standard, %": ("6", "must not accept more strangers"),
        "high, %": ("0.001", "from 0.01 to 50"),
        "Origins of your own pages": ("https://shop.example\nshop", "“shop” is not an origin"),
    }
    for label, (value, _) in wrong.items():
        page.get_by_label(label).fill(value)
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
    for label, (_, why) in wrong.items():
        field = page.get_by_label(label)
        assert field.get_attribute("aria-invalid") == "true"
        expect(page.locator(f"#{field.get_attribute('id')}-wrong")).to_contain_text(why)
    expect(page.get_by_label("standard, %")).to_be_focused()
    assert office.get("/v1/settings") == before
    page.get_by_role("button", name="Undo changes").click()
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing has changed")
    page.get_by_label("high, %").fill("0.03")
    page.get_by_label("Templates follow their owners").uncheck()
    page.get_by_label("Origins of your own pages").fill("https://shop.example/ \n https://b.example:8443")
    expect(page.locator("main")).to_contain_text("high: 0.1 % → 0.03 %")
    expect(page.locator("main")).to_contain_text("Templates follow their owners: on → off")
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("Saved")
    expect(page.locator("main")).not_to_contain_text("Not saved yet")
    after = before | {"updating": False, "origins": ["https://shop.example", "https://b.example:8443"]}
    after["levels"] = before["levels"] | {"high": 0.0003}
    assert office.get("/v1/settings") == after
    # What somebody else changed meanwhile is not overwritten unseen.
    assert office.client.put("/v1/settings", json=after | {"samples_needed": 9}).status_code == 200
    page.get_by_label("Days for which raw samples are kept").fill("7")
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("settings have been changed")
    expect(page.locator("main")).to_contain_text("Samples needed: 9 → 5")
    assert office.get("/v1/settings")["retention_days"] == 30


def test_webhooks_are_added_with_a_secret_that_is_shown_once_and_deleted(open_admin, office):
    page = open_admin(office.key, "webhooks")
    add = page.get_by_role("button", name="Add")
    page.get_by_label("Address").fill("https://127.0.0.1/x")
    add.click()
    expect(page.get_by_role("alert")).to_contain_text("must be public")
    page.get_by_label("Address").fill("https://example.org/hook")
    page.get_by_label("an enrolment is complete").uncheck()
    add.click()
    secret = page.locator(".secret").inner_text()
    assert secret.startswith("whsec_")
    (made,) = office.get("/v1/webhooks")["webhooks"]
    assert made["events"] == ["session.locked", "template.drifted", "attempts.unusual"]
    go(page, "overview")
    go(page, "webhooks")
    assert secret not in page.content()
    page.get_by_role("button", name="Delete https://example.org/hook").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("main")).to_contain_text("There are no webhooks yet.")
    assert office.get("/v1/webhooks")["webhooks"] == []


def test_the_audit_log_is_read_and_checked(open_admin, service, office):
    for n in range(60):
        office.client.post("/v1/users", json={"id": f"customer-{n}"})
    page = open_admin(office.key, "audit")
    entries = office.get("/v1/audit", limit=200)["entries"]
    assert [row[0] for row in rows(page, "Entries")] == [str(one["number"]) for one in entries[:50]]
    page.get_by_role("button", name="Show older entries").click()
    expect(page.get_by_role("button", name="Show older entries")).to_have_count(0)
    assert len(rows(page, "Entries")) == len(entries)
    page.get_by_label("Show", exact=True).select_option("Page opened")
    expect(page.get_by_role("table").locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Check the log").click()
    expect(page.locator(".message.good")).to_contain_text(f"The log is intact: {len(entries)} entries")
    expect(page.locator(".secret")).to_have_text(entries[0]["hash"])
    change = text("UPDATE audit SET actor = 'nobody' WHERE number = 7 AND tenant_id IN "
                  "(SELECT id FROM tenants WHERE name = :tenant)")  # fmt: skip
    for statement, values in ((text("DROP TRIGGER audit_no_update"), {}), (change, {"tenant": office.name})):
        service.database.write(lambda connection, s=statement, v=values: connection.execute(s, v))
    page.get_by_role("button", name="Check the log").click()
    expect(page.locator(".message.bad")).to_contain_text("entry 7 was changed")


def test_a_service_that_is_gone_is_said_to_be(open_admin, office):
    page = open_admin(office.key)
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("link", name="Audit log").click()
    expect(page.locator("main")).to_contain_text("The service cannot be reached")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("table")).to_be_visible()


def test_it_is_used_with_the_keyboard_alone(open_admin, busy):
    page = open_admin()
    page.keyboard.insert_text(busy.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="People", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_every_state_is_accessible_and_fits_a_phone(open_admin, busy, scheme):
    page, axe = open_admin(color_scheme=scheme, viewport={"width": 360, "height": 740}), Axe()
    rules = {} if scheme == "light" else COLOURS
    seen = []
    for state in every_state(page, busy):
        found = axe.run(page, options=rules)
        assert found.violations_count == 0, f"{state}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state
        seen.append(state)
    assert len(seen) > len(VIEWS)
