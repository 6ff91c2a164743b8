"""The OpenAPI document, and the reference at /docs: Swagger UI from a package, so that it works offline."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from keydyn.service.wire import answers, both_ways, report_answers, requests
from keydyn.service.wire.both_ways import Moment

# Characters of an Idempotency-Key.
LONGEST_KEY = 128
PLACE = "#/components/schemas/"
# Names in the document that differ from those in Python. In addition, all answers get names in Answer.
NAMES = {"Text": "TextKind", "TypedText": "TextKind", "TenantLevels": "Levels", "WebhookBody": "NewWebhook"}
# Schema entries that are left out because they say nothing; and the types of enumerated values, which
# msgspec does not state.
EMPTY: list[tuple[str, Any]] = [("default", None), ("required", [])]
TYPES = {str: "string", bool: "boolean", int: "integer"}
# Examples of the answers about samples, and of a token.
EXAMPLES: dict[type[answers.Answer], str] = {
    answers.Sample: """{
        "sample": "5d41402abc4b2a76b9719d911017c592",
        "profile": {
            "text": {}, "device": "keyboard", "samples": 1, "samples_needed": 5, "keystrokes": 60,
            "known_keystrokes": 58, "clock_tick_ms": 0.0, "complete": false, "template_at": null,
            "template_age_s": null, "drift": 0.0
        },
        "quality": {"keystrokes": 60, "known_keystrokes": 58, "clock_tick_ms": 0.0, "remarks": []}
    }""",
    answers.Decision: """{
        "id": "5d41402abc4b2a76b9719d911017c592", "claimed": "ada", "answer": "accept", "typed": "yes",
        "level": "standard", "judged_level": "standard", "wait_s": 0, "advice": "",
        "receipt": "kdr_eyJkZWNpc2lvbiI6IjVkNDE0MDJhYmM0Li4uIn0.c2lnbmF0dXJl",
        "llr": 8.5, "false_match_rate": 0.001, "false_match_rate_interval": [0.0002, 0.002],
        "evidence": {
            "keystrokes": 60, "known_keystrokes": 58, "pairs": 59, "known_pairs": 51,
            "spoke_for": [{"key": "n", "feature": "duration", "nats": 3.5}],
            "spoke_against": [{"key": "e", "feature": "tau", "nats": -1.0}]
        },
        "reasons": [], "target_false_match_rate": 0.01, "updated": true
    }""",
    answers.Identification: """{
        "id": "5d41402abc4b2a76b9719d911017c592",
        "receipt": "kdr_eyJkZWNpc2lvbiI6IjVkNDE0MDJhYmM0Li4uIn0.c2lnbmF0dXJl",
        "candidates": [{"user": "ada", "probability": 0.99, "llr": 8.5, "false_match_rate": 0.001}],
        "nobody": false, "nobody_probability": 0.01,
        "evidence": {
            "keystrokes": 60, "known_keystrokes": 58, "pairs": 59, "known_pairs": 51,
            "spoke_for": [{"key": "n", "feature": "duration", "nats": 3.5}],
            "spoke_against": [{"key": "e", "feature": "tau", "nats": -1.0}]
        },
        "reasons": [], "typed": "yes"
    }""",
    answers.Token: """{
        "token": "kdt_eyJ1c2VyIjoiYWRhIiwiLi4uIjoiIn0.c2lnbmF0dXJl", "purpose": "verify", "session": null,
        "expires_at": 1800000000000, "uses": 5
    }""",
}

router = APIRouter(include_in_schema=False)
POLICY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>keydyn service: reference</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
<style>.swagger-ui .scheme-container { display: none }</style>
</head>
<body>
<div id="reference"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
# Nothing can be sent from the page: browsers never hold an API key.
START = """SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#reference", deepLinking: true, supportedSubmitMethods: [],
  validatorUrl: null, defaultModelsExpandDepth: 0
});
"""
WRITES = ("post", "put", "delete")
# Routes that take no Idempotency-Key: two change no existing data, and the third works only once anyway.
WRITE_NOTHING_TWICE = ("/v1/identify", "/v1/error-rates/measure", "/v1/session")
KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[ -~]+$"},
    "description": "A new one for each write: a write sent twice has the same answer and one effect.",
}


def add_reference(app: FastAPI) -> None:
    """Serve the reference, and complete the OpenAPI document: types, and what holds for all routes."""
    app.include_router(router)
    app.mount("/docs/assets", StaticFiles(packages=[("fastapi_offline", "static")]), name="reference")
    made = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = made()
        parts = document.setdefault("components", {})
        parts["schemas"] = components()
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "API key"}}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
                if not path.startswith("/v1/"):
                    continue
                operation["security"] = [{"key": []}]
                if method in WRITES and path not in WRITE_NOTHING_TWICE:
                    operation.setdefault("parameters", []).append(KEY_PARAMETER)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


@router.get("/docs")
def page() -> HTMLResponse:
    """The page of the reference."""
    return HTMLResponse(PAGE, headers=POLICY)


@router.get("/docs/start.js")
def start() -> Response:
    """The script that starts the page of the reference."""
    return Response(START, media_type="text/javascript")


def reference(kind: Any) -> dict[str, Any]:
    """The schema of a body or an answer, as a reference to the schema of its type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {"$ref": PLACE + _name(kind)}
    if isinstance(kind, UnionType):
        return {"anyOf": [reference(one) for one in get_args(kind)]}
    return {"type": "object", "additionalProperties": True}


def components() -> dict[str, Any]:
    """The schema of every type of a body or an answer, by its name in the document."""
    kinds = [kind for module in (answers, report_answers, requests) for kind in _structs(module)]
    _, found = msgspec.json.schema_components(kinds, schema_hook=_moment, ref_template=PLACE + "{name}")
    named: list[type[msgspec.Struct]] = [*kinds, both_ways.Text]
    names = {kind.__name__: _name(kind) for kind in named}
    choices = {frozenset(one): one for kind in kinds for one in _choices(*get_type_hints(kind).values())}
    # Of two types that share a name, the strict one comes last and is the one described.
    strict = sorted(found, key=lambda name: "additionalProperties" in found[name])
    described = {
        names[name]: _described({**found[name], "title": names[name]}, names, choices) for name in strict
    }
    described["ProblemAnswer"]["additionalProperties"] = True
    for kind, text in EXAMPLES.items():
        whole = both_ways.encoded(both_ways.decoded(kind, text.encode()))
        described[_name(kind)]["examples"] = [msgspec.json.decode(whole)]
    return described


def _choices(*hints: Any) -> Iterator[tuple[Any, ...]]:
    """The values of each `Literal` in these types, in their original order, which msgspec does not keep."""
    for hint in hints:
        if get_origin(hint) is Literal:
            yield get_args(hint)
        else:
            yield from _choices(*get_args(hint))


def _structs(module: Any) -> list[type[msgspec.Struct]]:
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ == module.__name__
        and kind not in (answers.Answer, requests.Request)
    ]


def _name(kind: type[msgspec.Struct]) -> str:
    name = kind.__name__
    if kind.__module__ == answers.__name__ and not name.endswith("Answer"):
        return f"{name}Answer"
    return NAMES.get(name, name)


def _moment(kind: type[Any]) -> dict[str, Any]:
    if kind is Moment:
        return {"type": "integer"}
    raise NotImplementedError(kind.__name__)


def _described(schema: Any, names: dict[str, str], choices: dict[frozenset[Any], tuple[Any, ...]]) -> Any:
    """Rewrite a part of a schema from msgspec's form to that of the document."""
    if isinstance(schema, list):
        return [_described(each, names, choices) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _described(value, names, choices) for key, value in schema.items()}
    if "$ref" in found:
        found["$ref"] = PLACE + names[found["$ref"].removeprefix(PLACE)]
    if isinstance(found.get("pattern"), str):
        found["pattern"] = found["pattern"].removesuffix(both_ways.ENDS_THERE)
    if isinstance(found.get("description"), str):
        # Only the first paragraph, without examples for Python.
        found["description"] = found["description"].partition("\n\n")[0]
    if isinstance(found.get("enum"), list):
        values = choices[frozenset(found.pop("enum"))]
        found["type"] = TYPES[type(values[0])]
        found |= {"enum": list(values)} if len(values) > 1 else {"const": values[0]}
    if found.get("type") == "object" and "properties" not in found:
        found.setdefault("additionalProperties", True)
    if isinstance(found.get("default"), dict):
        found["default"] = {name: value for name, value in found["default"].items() if value is not None}
    return {key: value for key, value in found.items() if (key, value) not in EMPTY}
