"""Served files: their headers for browsers, and the size of the recorder."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.service.running import http_get

FILES = {"/recorder.js": "text/javascript", "/recorder.d.ts": "application/typescript"}


@pytest.mark.parametrize(("path", "kind"), FILES.items())
def test_any_page_may_load_it_and_asks_whether_it_is_the_newest(service, path, kind):
    answer = http_get(f"{service.url}{path}", headers={"origin": "https://anywhere.example"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "no-cache" in answer.headers["cache-control"]
    tag = answer.headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        again = http_get(f"{service.url}{path}", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert http_get(f"{service.url}{path}", headers={"if-none-match": '"other"'}).status_code == 200


def test_pages_that_a_tenant_names_see_one_allowed_origin(service, client):
    page = "https://shop.example"
    settings = client.get("/v1/settings").json() | {"origins": [page]}
    assert client.put("/v1/settings", json=settings).status_code == 200
    answer = http_get(f"{service.url}/recorder.js", headers={"origin": page})
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]


def test_pages_load_nothing_that_is_not_the_service_s_own_and_nothing_inline(service):
    answer = http_get(service.url)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect", "font")} == {"'self'"}
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|https?://", answer.text)
    named = re.findall(r'(?:src|href)="(/pages/[^"]+)"', answer.text)
    assert named
    for path in named:
        part = http_get(f"{service.url}{path}")
        assert part.status_code == 200, path
        assert part.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in part.headers


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "..%2fsettings.py", "__init__.py"])
def test_nothing_else_is_served(service, name):
    assert http_get(f"{service.url}/pages/{name}").status_code == 404


def test_it_is_small_and_needs_nothing_else(service):
    module = http_get(f"{service.url}/recorder.js").text
    assert len(gzip.compress(module.encode())) < 10_000
    assert not re.search(r"^\s*import\b|\bimport\(|https?://", module, re.MULTILINE)


def test_everything_it_exports_is_declared_and_nothing_else(service):
    module, declared = (http_get(f"{service.url}{path}").text for path in FILES)
    exported = re.compile(r"^export (?:async )?(?:class|function|const) (\w+)", re.MULTILINE)
    assert set(exported.findall(module)) == set(exported.findall(declared))
    # Every count of the quality.
    counts = re.search(r"const NOTHING = \{(.*?)\}", module, re.DOTALL)
    declaration = re.search(r"interface Quality \{(.*?)^\}", declared, re.DOTALL | re.MULTILINE)
    assert counts is not None
    assert declaration is not None
    own = {"keystrokes", "usable", "clock_tick_ms", "missing_releases", "remarks"}
    assert set(re.findall(r"^ {2}(\w+):", declaration[1], re.MULTILINE)) == own | set(
        re.findall(r"(\w+):", counts[1])
    )
