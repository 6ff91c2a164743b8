"""The form and the watched session of the guide, unchanged, on a separate web server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, Page

from tests.service.pages.guide import block
from tests.service.pages.keyboard import Keyboard
from tests.service.running import Service
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE


class Shop(BaseHTTPRequestHandler):
    """A web server that uses the service: pages by path, and the requests it received."""

    pages: dict[str, str]
    received: list[dict[str, list[str]]]

    def do_GET(self) -> None:
        """Answer with a page."""
        page = self.pages.get(self.path.partition("?")[0])
        self.send_response(200 if page is not None else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def do_POST(self) -> None:
        """Record the request."""
        self.received.append(parse_qs(self.rfile.read(int(self.headers["content-length"])).decode()))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def shop() -> Iterator[type[Shop]]:
    """A web server with an origin other than the service's."""

    class ThisShop(Shop):
        pages, received = {}, []

    with ThreadingHTTPServer(("127.0.0.1", 0), ThisShop) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        ThisShop.url = f"http://127.0.0.1:{server.server_port}"
        yield ThisShop
        server.shutdown()
        thread.join()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """An empty tab."""
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    yield context.new_page()
    context.close()


def test_the_form_has_twenty_lines_at_most():
    assert len(block("html", "<!doctype html>").splitlines()) <= 20


def test_the_form_signs_in_whoever_types_like_the_owner_of_the_name(shop, tab, service, client):
    enrol(client, "ada", 0)
    shop.pages |= {"/": block("html", "<!doctype html>", service.url), "/sign-in": "done"}
    for user, expected in ((1, "unsure"), (0, "accept")):
        tab.goto(shop.url)
        tab.fill("[name=user]", "ada")
        tab.focus("textarea")
        keyboard, rows = Keyboard(tab), keystrokes_of(user, 6)
        began = keyboard.now
        keyboard.type(rows[:20])
        assert tab.text_content("output") == "40 keystrokes to go"
        keyboard.now = began
        keyboard.type(rows[20:])
        assert tab.text_content("output") == ""
        tab.click("button")
        tab.wait_for_url("**/sign-in")
        sent = shop.received.pop()
        assert set(sent) == {"user", "typing"}
        answer = client.post("/v1/users/ada/verify", json=json.loads(sent["typing"][0]))
        assert answer.json()["answer"] == expected


def test_the_watched_session_of_the_guide(shop, tab, service: Service, client):
    enrol(client, "ada", 0)
    settings = client.get("/v1/settings").json() | {"origins": [shop.url]}
    assert client.put("/v1/settings", json=settings).status_code == 200
    shop.pages["/"] = f"""<!doctype html><textarea></textarea><script type="module">
        import {{ Recorder }} from "{service.url}/recorder.js";
        const recorder = new Recorder(document.querySelector("textarea"));
        window.shown = [];
        const showTrust = (trust) => shown.push(trust);
        const askForPassword = () => {{}}, sessionEnded = () => {{}};
        {block("js", "const stream", service.url)}
        window.stream = stream;
    </script>"""
    shop.pages["/watch-token"] = client.post("/v1/users/ada/token", json={"purpose": "watch"}).json()["token"]
    tab.goto(shop.url)
    tab.focus("textarea")
    Keyboard(tab).type(keystrokes_of(0, 6))
    # One answer, if all was typed before there was a connection.
    tab.wait_for_function("shown.length > 0")
    assert tab.evaluate("stream.close()") == 60
    assert 0.5 < tab.evaluate("shown.at(-1)") <= 1
