"""Pages of the HTTP interface, from the service's OpenAPI document; written while documentation is built."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import written_pages
from fastapi.routing import APIRoute

from keydyn.service.http.access import Rule
from keydyn.service.http.app import create_app
from keydyn.service.http.routing import Declared
from keydyn.service.settings import Deployment
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys

FOLDER = Path(__file__).parent / "http"
ADDRESS = "http://127.0.0.1:8421"
METHODS = ("get", "post", "put", "delete")
TAGS = {
    "people": "Create, list, read, export and erase the people of a tenant.",
    "recognition": "Enrol and verify samples, identify who typed one, and make tokens for browsers.",
    "administration": "Settings, webhooks, populations, reports and the audit log of a tenant.",
    "pages": "Sessions of the service's own pages. Other programs do not need them.",
    "health": "Whether the service works, for those who run it.",
}
# What is sent in the examples; `keydyn service examples --out samples` writes the samples.
BODIES = {
    "POST /v1/users": '{"id": "ada"}',
    "POST /v1/users/{id}/samples": "@samples/ada-1.json",
    "POST /v1/users/{id}/verify": "@samples/ada-6.json",
    "POST /v1/users/{id}/token": '{"purpose": "verify", "seconds": 120}',
    "POST /v1/identify": "@samples/ada-7.json",
    "PUT /v1/settings": '{"samples_needed": 3, "retention_days": 7}',
    "POST /v1/webhooks": '{"url": "https://hooks.example.com/keydyn", "events": ["session.locked"]}',
    "POST /v1/populations": '{"device": "keyboard"}',
    "POST /v1/error-rates/measure": '{"device": "keyboard"}',
    "POST /v1/session": '{"key": "\'$KEY\'"}',
}
QUERIES = {
    "GET /v1/users": "limit=50&search=ada",
    "GET /v1/users/{id}/densities": "device=keyboard",
    "GET /v1/decisions": "by=hour",
    "GET /v1/error-rates": "device=keyboard",
    "GET /v1/audit": "limit=20&action=verified",
}
# Callers of routes that have no rule of their own, or more than their rule.
WHO = {
    "POST /v1/users/{id}/token": "an API key with the scope that the purpose needs: `enrol`, `verify` or "
    "`watch`, and `admin` to unlock",
    "POST /v1/session": "one of the service's own pages, with a link that works once or an API key with the "
    "scope `admin`",
    "DELETE /v1/session": "one of the service's own pages, with the session to end",
    "GET /metrics": "anyone with the operator's token; without one, programs on the same machine",
}
# Any route may answer with these; the others are below, by route.
ANYWHERE = (
    *("not-authenticated", "forbidden", "too-many-requests", "invalid-request", "not-json", "bad-request"),
    *("no-such-route", "no-such-method", "wrong-host", "too-large", "too-slow", "gone", "not-http"),
    *("busy", "database-unavailable", "internal"),
)
WRITES = ("bad-idempotency-key", "idempotency-key-reused")
TYPED = ("unusable-keystrokes", "no-population")
PROBLEMS = {
    "POST /v1/users": ("user-exists",),
    "GET /v1/users": ("bad-cursor",),
    "GET /v1/users/{id}": ("no-such-user",),
    "DELETE /v1/users/{id}": ("no-such-user",),
    "GET /v1/users/{id}/export": ("no-such-user",),
    "GET /v1/users/{id}/densities": ("no-such-user", "not-enrolled", "no-densities", "no-population"),
    "POST /v1/users/{id}/reset": ("no-such-user",),
    "POST /v1/users/{id}/unblock": ("no-such-user",),
    "POST /v1/users/{id}/samples": (
        *("no-such-user", "not-typing", "enrolment-complete", "samples-expired", "not-recognised"),
        *("too-many-attempts", "attempts-spent", "token-used-up"),
        *TYPED,
    ),
    "POST /v1/users/{id}/second-factor": ("no-such-user",),
    "POST /v1/users/{id}/verify": (
        *("no-such-user", "not-enrolled", "too-many-attempts", "attempts-spent", "token-used-up"),
        *TYPED,
    ),
    "POST /v1/identify": ("nobody-enrolled", "too-many-people", "identifications-spent", *TYPED),
    "POST /v1/users/{id}/token": (
        *("no-such-user", "no-such-session", "not-enrolled", "too-many-attempts", "attempts-spent"),
        *("no-population", "session-locked", "not-locked"),
    ),
    "GET /v1/decisions/{decision}": ("no-such-decision",),
    "POST /v1/webhooks": ("webhook-address", "webhook-events", "too-many-webhooks"),
    "DELETE /v1/webhooks/{webhook}": ("no-such-webhook",),
    "POST /v1/populations": ("not-allowed",),
    "GET /v1/error-rates": ("no-population",),
    "POST /v1/error-rates/measure": ("not-allowed", "too-few-people", "learnt-from-them", "no-population"),
    "GET /v1/audit": ("bad-cursor",),
    "GET /v1/audit/check": ("bad-cursor",),
    "POST /v1/session": ("link-not-valid",),
}
INDEX = """# The HTTP interface

Every route of the service, with its fields, its answers and an example. {doc}`../guide/service` leads
through the same in the order in which you need it.

Requests and answers are JSON. Times are milliseconds, and dates are milliseconds since 1970. Send an API key
as `Authorization: Bearer KEY`; [its scopes](../guide/service.md#api-keys-and-scopes) say what it may do.
Browsers send a [token](../guide/service.md#tokens-for-browsers) instead. Every write may carry an
`Idempotency-Key`, so that you can [send it again](../guide/service.md#retrying-requests) without a second
effect. A running service shows the same reference at `/docs`, and as an OpenAPI document at `/openapi.json`.

The examples use the service on your own machine, a key in `KEY`, and samples of simulated people:

```sh
export KEY=$(keydyn service keys create --scope all)
keydyn service examples --out samples
```

"""
ERRORS = """
## Problems

Any route may answer with these kinds of problem; the routes name the others.
[Errors](../guide/service.md#errors) says what each of them means and what to do.

"""


@dataclass(frozen=True)
class Operation:
    """A route as the OpenAPI document has it, and what its code demands of a caller."""

    method: str
    path: str
    document: dict[str, Any]
    rule: Rule | None

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        return re.split(r"[:;,.]", str(self.document["summary"]))[0]


def write_http_pages(folder: Path = FOLDER) -> list[Path]:
    """Write the pages and their index."""
    operations, schemas = described()
    by_tag = {tag: [one for one in operations if one.document["tags"] == [tag]] for tag in TAGS}
    if sum(map(len, by_tag.values())) != len(operations):
        raise ValueError("a route has no page: add its tag to TAGS")
    pages = {tag: _page(tag, some, schemas) for tag, some in by_tag.items()}
    pages |= {"index": _index(by_tag), "types": _types(schemas)}
    return written_pages.write(folder, pages)


def described() -> tuple[list[Operation], dict[str, Any]]:
    """All routes that the OpenAPI document has, and its types; of a service that is not started."""
    with tempfile.TemporaryDirectory() as folder:
        deployment = Deployment(database=f"sqlite:///{folder}/none.db")
        database = Database(deployment.database)
        app = create_app(deployment, database, MasterKeys([bytes(32)]))
        document = app.openapi()
        rules = {(method, route.path): _rule(route) for route in _routes(app) for method in route.methods}
        database.close()
    operations = [
        Operation(method.upper(), path, operation, rules[method.upper(), path])
        for path, of_path in document["paths"].items()
        for method, operation in of_path.items()
        if method in METHODS
    ]
    return operations, document["components"]["schemas"]


def _routes(app: Any) -> Iterator[APIRoute]:
    left = list(app.routes)
    while left:
        route = left.pop()
        left += getattr(getattr(route, "original_router", None), "routes", [])
        if isinstance(route, APIRoute):
            yield route


def _rule(route: APIRoute) -> Rule | None:
    declared: Declared | None = getattr(route.endpoint, "declared", None)
    return declared.rule if declared is not None and isinstance(declared.rule, Rule) else None


def _index(by_tag: dict[str, list[Operation]]) -> str:
    parts = [INDEX]
    for tag, operations in by_tag.items():
        parts += [f"## {tag.capitalize()}\n", f"{TAGS[tag]}\n", "| route | what it does |", "| --- | --- |"]
        parts += [f"| [`{one.name}`]({tag}.md#{_anchor(one.title)}) | {one.title} |" for one in operations]
        parts.append("")
    parts += [
        "## Watched sessions\n",
        "A WebSocket at `/v1/users/{id}/watch` follows a person who types:",
        "{doc}`../reference/watching`.",
        ERRORS + ", ".join(f"`{kind}`" for kind in ANYWHERE) + ".\n",
        "A write that carries an `Idempotency-Key` may also answer with "
        + " and ".join(f"`{kind}`" for kind in WRITES)
        + ".\n",
        "```{toctree}\n:hidden:\n",
        *by_tag,
        "../reference/watching",
        "types",
        "```\n",
    ]
    return "\n".join(parts)


def _page(tag: str, operations: list[Operation], schemas: dict[str, Any]) -> str:
    parts = [f"# {tag.capitalize()}\n", f"{TAGS[tag]} {{doc}}`index` says what holds for every route.\n"]
    for one in operations:
        parts += _described(one, schemas)
    return "\n".join(parts)


def _described(one: Operation, schemas: dict[str, Any]) -> list[str]:
    document = one.document
    parts = [f"## {one.title}\n", "```text", one.name, "```\n"]
    text = document["description"].strip()
    if text != f"{one.title}.":
        parts.append(f"{text}\n")
    parts.append(f"**Who may call it:** {_who(one)}.\n")
    parameters = document.get("parameters", [])
    if parameters:
        parts += ["**Parameters**\n", "| name | value | meaning |", "| --- | --- | --- |"]
        for each in parameters:
            value, meaning = _type(each["schema"]), _meaning({**each["schema"], **each}, each["required"])
            parts.append(f"| `{each['name']}` ({each['in']}) | {value} | {meaning} |")
        parts.append("")
    body = document.get("requestBody")
    if body is not None:
        named = _reference(body["content"]["application/json"]["schema"])
        parts += [f"**Body:** {_link(named)}\n", *_fields(schemas[named], sent=True)]
    for status, answer in document["responses"].items():
        if status.startswith("2"):
            parts += _answer(status, answer, schemas)
    kinds = PROBLEMS.get(one.name, ())
    if kinds:
        named = ", ".join(f"`{kind}`" for kind in kinds)
        parts.append(f"**Problems:** {named}, and [those of any route](index.md#problems).\n")
    return [*parts, "```sh", example(one), "```\n"]


def _answer(status: str, answer: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    content = answer.get("content", {})
    if not content:
        return [f"**Answer:** {status}, without a body\n"]
    (kind, found), *_ = content.items()
    several = [_reference(one) for one in found.get("schema", {}).get("anyOf", [])]
    names = several or [_reference(found.get("schema", {}))]
    if names[0]:
        links, schema = " or ".join(map(_link, names)), schemas[names[0]]
        shown = [f"```json\n{json.dumps(one, indent=2)}\n```\n" for one in schema.get("examples", [])]
        return [f"**Answer:** {status}, {links}\n", *_fields(schema, sent=False), *shown]
    what = "a JSON object" if kind == "application/json" else f"`{kind}`"
    return [f"**Answer:** {status}, {what}\n"]


def _who(one: Operation) -> str:
    if one.name in WHO:
        return WHO[one.name]
    if one.rule is None or one.rule.scope is None:
        return "anyone"
    also = f" or `{one.rule.or_scope}`" if one.rule.or_scope else ""
    key = f"an API key with the scope `{one.rule.scope}`{also}"
    token = f", or a browser with a token of the purpose `{one.rule.purpose}` for this person"
    return key + (token if one.rule.purpose else "")


def example(one: Operation) -> str:
    """The request as curl sends it."""
    path = one.path.replace("{id}", "ada")
    path = re.sub(r"\{(webhook|decision)\}", "0123456789abcdef0123456789abcdef", path)
    query = f"?{QUERIES[one.name]}" if one.name in QUERIES else ""
    words = ["curl"]
    if one.method in ("PUT", "DELETE"):
        words.append(f"--request {one.method}")
    elif one.method == "POST" and one.name not in BODIES:
        words.append("--request POST")
    if one.rule is not None:
        holder = "SESSION" if one.name == "DELETE /v1/session" else "KEY"
        words.append(f'--header "Authorization: Bearer ${holder}"')
    if one.path == "/v1/session":
        # As a browser would for a page of the service.
        words.append(f"--header 'Origin: {ADDRESS}'")
    if one.name in BODIES:
        body = BODIES[one.name]
        words.append(f"--json {body}" if body.startswith("@") else f"--json '{body}'")
    return " \\\n  ".join([*words, f"'{ADDRESS}{path}{query}'"])


def _types(schemas: dict[str, Any]) -> str:
    parts = ["# Types\n", "The objects that routes take and answer with, by name.\n"]
    for name, schema in sorted(schemas.items()):
        parts += [f"## {name}\n", f"{_text(schema.get('description', ''))}\n"]
        parts += _fields(schema, sent=not name.endswith("Answer"))
    return "\n".join(parts)


def _fields(schema: dict[str, Any], *, sent: bool) -> list[str]:
    if "properties" not in schema:
        return []
    required = set(schema.get("required", ()))
    lines = ["| field | value | meaning |", "| --- | --- | --- |"]
    for name, each in schema["properties"].items():
        meaning = _meaning(each, name in required) if sent else _text(each.get("description", ""))
        lines.append(f"| `{name}` | {_type(each)} | {meaning} |")
    return [*lines, ""]


def _type(schema: dict[str, Any]) -> str:
    named = _reference(schema)
    if named:
        return _link(named)
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        if "prefixItems" in schema:
            return f"list: {', '.join(_type(each) for each in schema['prefixItems'])}"
        number = _bounds(schema, "minItems", "maxItems")
        return f"list of {_type(schema.get('items', {}))}{f', {number}of them' if number else ''}"
    plain = {"string": "text", "integer": "whole number", "boolean": "true or false", "any": "anything"}
    if kind == "string":
        bounds = _bounds(schema, "minLength", "maxLength")
        return f"text of {bounds}characters" if bounds else "text"
    bounds = _bounds(schema, "minimum", "maximum").strip()
    return f"{plain.get(kind, kind)}{', ' + bounds if bounds else ''}"


def _bounds(schema: dict[str, Any], low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f"{least:g} to {most:g} "
    return "" if most is None else f"up to {most:g} "


def _meaning(schema: dict[str, Any], required: bool) -> str:
    text = _text(schema.get("description", ""))
    if "default" in schema and schema["default"] is not None:
        return f"{text} Default: `{json.dumps(schema['default'])}`.".strip()
    return text if required else f"{text} Optional.".strip()


def _reference(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _link(name: str) -> str:
    return f"[{name}](types.md#{name.lower()})"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _text(text: str) -> str:
    return text.strip().replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")
