"""The pages of the HTTP interface have every route, and the service understands their examples."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

import httpx
import pytest

from keydyn.service.live import frame_text
from keydyn.service.people.keystroke_payload import TypedSample
from keydyn.service.wall_clock import wall_clock
from keydyn.service.wire.both_ways import Text, decoded
from keydyn.service.wire.requests import SampleBody
from keydyn.service.wire.watch_frames import ClientFrame
from tests.documents import DOCS, program
from tests.service.http.test_access import ROUTES
from tests.service.running import UNENCRYPTED, Service, http_post, running
from tests.service.test_guide import problems_in_the_code
from tests.service.typists import keystrokes_of
from tests.waiting import PATIENCE

# What pages show in a browser: files, and the reference itself.
FILES = {"/", "/admin", "/docs", "/docs/start.js", "/openapi.json", "/pages/{name}"} | {
    "/recorder.js",
    "/recorder.d.ts",
    "/recorder-{version}.js",
}
ADDRESS = "http://127.0.0.1:8421"
WATCHING = (DOCS / "reference" / "watching.md").read_text(encoding="utf-8")
FORMATS = (DOCS / "file-format.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def http_pages() -> ModuleType:
    """The module that writes them."""
    return program("http_pages")


@pytest.fixture(scope="module")
def pages(http_pages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each page."""
    folder = tmp_path_factory.mktemp("http")
    written = http_pages.write_http_pages(folder)
    assert sorted(folder.iterdir()) == sorted(written)
    return {path.stem: path.read_text(encoding="utf-8") for path in written}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service at which two people have a sample each."""
    url = f"sqlite:///{tmp_path_factory.mktemp('pages') / 'service.db'}"
    with running(url, wall_clock) as found:
        client = found.client()
        for user, name in enumerate(("ada", "bela")):
            client.post("/v1/users", json={"id": name}).raise_for_status()
            sample = {"keystrokes": keystrokes_of(user, 0)}
            client.post(f"/v1/users/{name}/samples", json=sample).raise_for_status()
        yield found


def test_every_route_is_on_a_page_and_in_the_index(pages: dict[str, str]) -> None:
    routes = {f"{method} {path}" for method, path in ROUTES if method != "WS" and path not in FILES}
    described = [name for text in pages.values() for name in re.findall(r"^```text\n(.*)\n```$", text, re.M)]
    assert sorted(described) == sorted(routes)
    assert set(re.findall(r"^\| \[`(.+?)`\]", pages["index"], re.M)) == routes


def test_pages_say_which_scope_a_key_needs(http_pages: ModuleType, pages: dict[str, str]) -> None:
    whole = "\n".join(pages.values())
    for (method, path), (scope, _) in ROUTES.items():
        name = f"{method} {path}"
        if scope is not None and method != "WS" and name not in http_pages.WHO:
            section = whole.split(f"```text\n{name}\n```")[1].split("\n## ")[0]
            needed = " or ".join(f"`{one}`" for one in scope.split())
            assert f"**Who may call it:** an API key with the scope {needed}" in section, name


def test_routes_name_all_problems_and_no_others(http_pages: ModuleType, pages: dict[str, str]) -> None:
    assert set(http_pages.PROBLEMS) <= set(re.findall(r"^\| \[`(.+?)`\]", pages["index"], re.M))
    of_routes = {kind for kinds in http_pages.PROBLEMS.values() for kind in kinds}
    watched = WATCHING.split("Kinds that only watched sessions have:")[1].split("[Errors]")[0]
    named = of_routes | {*http_pages.ANYWHERE, *http_pages.WRITES} | set(re.findall("`([a-z-]+)`", watched))
    assert named == problems_in_the_code()


def test_every_field_and_parameter_is_described(http_pages: ModuleType) -> None:
    operations, schemas = http_pages.described()
    fields = {
        f"{name}.{field}": each.get("description", "")
        for name, schema in schemas.items()
        for field, each in schema.get("properties", {}).items()
    }
    parameters = {
        f"{one.name} {each['name']}": each.get("description", "")
        for one in operations
        for each in one.document.get("parameters", [])
    }
    types = {name: schema.get("description", "") for name, schema in schemas.items()}
    assert fields
    assert parameters
    assert {name for name, text in {**types, **fields, **parameters}.items() if len(text) < 5} == set()


def test_every_recognition_route_shows_an_answer_as_its_type_has_it(
    http_pages: ModuleType, pages: dict[str, str]
) -> None:
    operations, schemas = http_pages.described()
    recognition = [one for one in operations if one.document["tags"] == ["recognition"]]
    assert len(recognition) == pages["recognition"].count("```json") > 0
    for one in recognition:
        (answer,) = (found for status, found in one.document["responses"].items() if status.startswith("2"))
        (content,) = answer["content"].values()
        schema = content["schema"].get("anyOf", [content["schema"]])[0]
        of_type = schemas[schema["$ref"].rpartition("/")[2]]
        (example,) = of_type["examples"]
        assert set(example) == set(of_type["properties"])


def test_links_between_the_pages_lead_somewhere(pages: dict[str, str]) -> None:
    anchors = {
        name: {
            re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall("^## (.*)", text, re.M)
        }
        for name, text in pages.items()
    }
    links = [link for text in pages.values() for link in re.findall(r"\]\((\w+)\.md#([\w-]+)\)", text)]
    assert links
    assert all(anchor in anchors[page] for page, anchor in links)


def test_the_service_understands_every_example(pages: dict[str, str], service: Service) -> None:
    key, sent = service.key(), 0
    headers = {"origin": service.url}
    session = http_post(f"{service.url}/v1/session", json={"key": key}, headers=headers).json()["token"]
    for name, text in pages.items():
        for command in re.findall(r"^```sh\n(curl.*?)```", text, re.M | re.S):
            answer = asked(command.replace("$KEY", key).replace("$SESSION", session), service.url)
            # There may be nothing to answer with, but whatever was asked is a request that there is.
            kind = answer.json()["type"].rpartition(":")[2] if answer.is_client_error else ""
            assert kind not in {"invalid-request", "not-json", "no-such-route", "no-such-method"}, (
                name,
                command,
            )
            assert answer.status_code not in {401, 403}, (name, command, answer.text)
            sent += 1
    assert sent == sum(method != "WS" and path not in FILES for method, path in ROUTES)


def asked(command: str, url: str) -> httpx.Response:
    """What curl would get."""
    words = shlex.split(command.replace("\\\n", " ").replace(ADDRESS, url))
    pairs = list(zip(words[1:-1:2], words[2:-1:2], strict=True))
    options = dict(pairs)
    body: Any = options.get("--json")
    if body is not None:
        body = {"keystrokes": keystrokes_of(0, 9)} if body.startswith("@") else json.loads(body)
    method = options.get("--request", "GET" if body is None else "POST")
    headers = dict(value.split(": ", 1) for name, value in pairs if name == "--header")
    return httpx.request(method, words[-1], json=body, headers=headers, verify=UNENCRYPTED, timeout=PATIENCE)


def test_the_page_of_watched_sessions_has_every_frame_and_field() -> None:
    sent = WATCHING.split("## What the client sends")[1].split("## What the service sends")[0]
    frames = {part.split("\n")[0]: part for part in sent.split("\n### ")[1:]}
    kinds = {kind.__struct_config__.tag: kind for kind in get_args(ClientFrame)}
    assert set(frames) == set(kinds)
    for name, kind in kinds.items():
        assert set(re.findall(r"^\| `(\w+)` \|", frames[name], re.M)) == set(kind.__struct_fields__)
        example = re.search(r"```json\n(.*?)```", frames[name], re.S)
        assert example is not None
        frame_text.parsed(example[1])


def test_the_sample_on_the_page_of_formats_is_one() -> None:
    section = FORMATS.split("## Samples as JSON")[1].split("\n## ")[0]
    example = re.search(r"```json\n(.*?)```", section, re.S)
    assert example is not None
    assert len(TypedSample.received(decoded(SampleBody, example[1].encode()), Text(), "keyboard").typed) == 2


def test_the_page_of_formats_has_every_field_of_an_export(service: Service) -> None:
    section = FORMATS.split("## The service's export")[1].split("\n## ")[0]
    of_person, of_profile = section.split("| field of a profile |")
    exported = service.client().get("/v1/users/bela/export").json()
    assert fields_in(of_person) == set(exported)
    assert fields_in(of_profile) == set(exported["profiles"][0])


def fields_in(table: str) -> set[str]:
    """The names in the first column."""
    rows = re.findall(r"^\| (`.*?`) \|", table, re.M)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}
