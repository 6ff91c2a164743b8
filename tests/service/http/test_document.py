"""The OpenAPI document: every route except those of files is explained, and every input has a limit."""

from __future__ import annotations

import pytest

from keydyn.service.http.app import create_app
from keydyn.service.settings import Deployment
from keydyn.service.storage.database import Database
from tests.service.http.test_access import ROUTES
from tests.service.running import KEYS

# The others are files.
DESCRIBED = ("/v1", "/healthz", "/readyz", "/metrics")
LIMITS = {
    "string": ({"maxLength"}, {"enum"}, {"const"}, {"pattern"}),
    "array": ({"maxItems"},),
    "integer": ({"minimum", "maximum"}, {"enum"}, {"const"}),
    "number": ({"minimum", "maximum"},),
}


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('document') / 'service.db'}"
    database = Database(url)
    found = create_app(Deployment(database=url), database, KEYS).openapi()
    database.close()
    return found


def test_it_has_all_routes_but_those_of_files(document):
    assert document["info"]["description"]
    found = {(method, path) for path, method, _ in operations(document)}
    assert found == {place for place in ROUTES if place[0] != "WS" and place[1].startswith(DESCRIBED)}


def test_every_limit_is_in_the_document(document):
    missing = []
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        for parameter in operation.get("parameters", []):
            unlimited(document, parameter["schema"], f"{place} {parameter['name']}", missing)
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            assert set(content) == {"application/json"}, place
            unlimited(document, content["application/json"]["schema"], f"{place} body", missing)
    assert not missing, "\n".join(missing)


def test_every_operation_is_explained(document):
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        assert operation.get("summary"), place
        assert operation.get("description"), place
        parameters = operation.get("parameters", [])
        assert all(one.get("description") for one in parameters), place
        headers = [one for one in parameters if one["in"] == "header"]
        assert not any(one["required"] or one["schema"]["minLength"] < 1 for one in headers), place
        assert ("security" in operation) == path.startswith("/v1/"), place
        for needed in operation.get("security", []):
            assert needed.keys() <= document["components"]["securitySchemes"].keys(), place
        answers = operation["responses"]
        problems = {status for status in answers if status >= "400"}
        assert {"400", "401", "413", "422", "429", "500", "503"} <= problems, place
        for status in problems:
            shape = answers[status]["content"]["application/problem+json"]["schema"]
            assert shape == {"$ref": "#/components/schemas/ProblemAnswer"}, (place, status)
        good = [status for status in answers if status < "400"]
        assert len(good) == 1, place
        assert good == ["204"] or answers[good[0]]["content"], place


def operations(document):
    return [
        (path, method.upper(), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def unlimited(document, schema, where, missing):
    """Name the parts of a schema, at any depth, that have no limit."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        unlimited(document, document["components"]["schemas"][name], f"{where} {name}", missing)
        return
    inner = [*schema.get("anyOf", []), *schema.get("allOf", []), *schema.get("oneOf", [])]
    for each in inner:
        unlimited(document, each, where, missing)
    kind = schema.get("type")
    if kind is None and not inner:
        missing.append(f"{where}: of any type")
    if kind == "object":
        if schema.get("additionalProperties") is not False:
            missing.append(f"{where}: takes fields that are not described")
        for name, each in schema.get("properties", {}).items():
            unlimited(document, each, f"{where}.{name}", missing)
    if kind == "array":
        unlimited(document, schema["items"], f"{where}[]", missing)
    if kind in LIMITS and not any(limits <= set(schema) for limits in LIMITS[kind]):
        missing.append(f"{where}: {kind} without a limit")
