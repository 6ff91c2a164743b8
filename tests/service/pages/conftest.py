"""Fixtures: a page of the service with fields and a recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import HTMLResponse
from playwright.sync_api import Browser, Page

from tests.service.conftest import opened
from tests.service.pages.keyboard import Keyboard
from tests.service.running import Service, running
from tests.waiting import PATIENCE

TENANTS = (f"shop-{n}" for n in count())
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Fields</title>
<textarea id="text" rows="5" cols="60"></textarea> <input id="line"> <input id="password" type="password">
<input id="number" type="number"> <button>Elsewhere</button> <p>to be dragged</p>"""
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests of a file, each of which has a tenant of its own."""
    with served(database_in(tmp_path_factory.mktemp("pages"))) as found:
        yield found


@contextmanager
def served(database_url: str, **settings: Any) -> Iterator[Service]:
    """The service, with a page for tests under the strictest policy that a page can have."""
    with running(database_url, **settings) as found:
        policy = {"content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'"}
        found.app.add_api_route("/page", lambda: HTMLResponse(PAGE, headers=policy))
        yield found


def database_in(folder: Path) -> str:
    """The address of a database with its tables."""
    url = f"sqlite:///{folder / 'service.db'}"
    for database in opened(url):
        database.close()
    return url


@pytest.fixture
def client(service):
    """A client of a new tenant, with all scopes."""
    return service.client(service.key(next(TENANTS)))


@pytest.fixture(scope="module")
def kept_tab(browser: Browser) -> Iterator[Page]:
    """A tab for all tests of a file, because a new tab is a new process, and takes a second."""
    context = browser.new_context(locale="en-GB")
    context.set_default_timeout(1000 * PATIENCE)
    yield context.new_page()
    context.close()


@pytest.fixture
def tab(kept_tab: Page) -> Iterator[Page]:
    """The kept tab, cleared of everything that an earlier test left in it."""
    yield kept_tab
    kept_tab.evaluate("localStorage.clear(), sessionStorage.clear()")
    kept_tab.context.clear_cookies()
    for other in kept_tab.context.pages:
        if other is not kept_tab:
            other.close()


@pytest.fixture
def open_page(browser: Browser, service: Service) -> Iterator[Opened]:
    """Opens a page of the service's origin, in which `recorder` records one or several fields.

    `script` runs in it before anything else; further arguments are options of the browser.
    """
    contexts = []

    def open_page(
        fields: str = "#text", options: str = "{}", url: str = service.url, script: str = "", **kind: Any
    ) -> Page:
        context = browser.new_context(**kind)
        contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        context.add_init_script(script)
        return recorded_in(context.new_page(), url, fields, options)

    yield open_page
    for context in contexts:
        context.close()


def recorded_in(page: Page, url: str, fields: str = "#text", options: str = "{}") -> Page:
    """Open the service's page with fields at this address, with a recorder."""
    page.goto(f"{url}/page")
    page.evaluate(
        f"""async () => {{
            window.module = await import("/recorder.js");
            const fields = [...document.querySelectorAll("{fields}")];
            window.recorder = new module.Recorder(fields.length > 1 ? fields : fields[0], {options});
        }}"""
    )
    page.focus(fields.split(",")[0])
    return page


@pytest.fixture
def page(tab: Page, service: Service) -> Page:
    """A page in which one field is recorded."""
    return recorded_in(tab, service.url)


@pytest.fixture
def keyboard(page: Page) -> Keyboard:
    """The keyboard of `page`."""
    return Keyboard(page)
