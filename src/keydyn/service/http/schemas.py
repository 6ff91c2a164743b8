"""The types of the wire as schemas of the OpenAPI document, under names that stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from keydyn.service.wire import answers, both_ways, reports, requests
from keydyn.service.wire.encoding import Moment

PLACE = "#/components/schemas/"
# Names in the document that differ from those in Python. Types of answers end in Answer besides.
NAMES = {"Text": "TextKind", "TypedText": "TextKind", "TenantLevels": "Levels", "WebhookBody": "NewWebhook"}
# What says nothing; and the type of values that are listed, which msgspec leaves out.
EMPTY: list[tuple[str, Any]] = [("default", None), ("required", [])]
TYPES = {str: "string", bool: "boolean", int: "integer"}


def reference(kind: Any) -> dict[str, Any]:
    """The schema of a body or an answer: a reference to that of its type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {"$ref": PLACE + _name(kind)}
    return {"type": "object", "additionalProperties": True}


def components() -> dict[str, Any]:
    """The schema of every type of a body or an answer, by its name in the document."""
    kinds = [kind for module in (answers, reports, requests) for kind in _structs(module)]
    _, found = msgspec.json.schema_components(kinds, schema_hook=_moment, ref_template=PLACE + "{name}")
    named: list[type[msgspec.Struct]] = [*kinds, both_ways.Text]
    names = {kind.__name__: _name(kind) for kind in named}
    choices = {frozenset(one): one for kind in kinds for one in _choices(*get_type_hints(kind).values())}
    # Of two types with one name the strict one is described.
    strict = sorted(found, key=lambda name: "additionalProperties" in found[name])
    described = {
        names[name]: _described({**found[name], "title": names[name]}, names, choices) for name in strict
    }
    described["ProblemAnswer"]["additionalProperties"] = True
    return described


def _choices(*hints: Any) -> Iterator[tuple[Any, ...]]:
    """The values of each `Literal` in these types, in their order, which msgspec does not keep."""
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
    """A part of a schema as the document has it."""
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
        # Without examples, which are for Python.
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
