"""The types of the wire: strict for requests, tolerant for answers, and independent of the rest of keydyn."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.client import Client, Decision, Settings, Text, User
from keydyn.service.http.routing import CURSOR_ID, CURSOR_NUMBER, cursor_at, cursor_values, located
from keydyn.service.problems import Problem
from keydyn.service.wire import answers, both_ways, report_answers, requests
from keydyn.service.wire.both_ways import Moment, decoded, encoded
from tests.documents import ROOT

USER = {
    "id": "ada",
    "created_at": 1_750_000_000_123,
    "profiles": [],
    "failed_attempts": 0,
    "wait_s": 0,
    "takeover_chance_spent": 0.01,
}
ROWS = [{"keyname": "a", "timepress": 100.0 * n, "timerelease": 100.0 * n + 50} for n in range(60)]


def test_the_client_imports_nothing_else_of_keydyn():
    code = "import sys, keydyn.client; print(*(name for name in sys.modules if name.startswith('keydyn')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = ("keydyn.client", "keydyn.service.wire")
    others = {name for name in done.stdout.split() if not name.startswith(allowed)}
    assert others == {"keydyn", "keydyn.on_demand", "keydyn.service", "keydyn.short_repr"}


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_dates_are_whole_milliseconds(milliseconds):
    moment = Moment.at(milliseconds)
    assert moment.milliseconds == milliseconds
    assert moment.tzinfo is UTC
    assert decoded(Moment, encoded(moment)) == moment


def test_an_answer_is_read_as_it_was_sent():
    user = decoded(User, json.dumps(USER).encode())
    assert user.created_at == datetime(2025, 6, 15, 15, 6, 40, 123000, tzinfo=UTC)
    assert json.loads(encoded(user)) == USER


@pytest.mark.parametrize("wrong", [{"created_at": 1.5}, {"created_at": "now"}, {"created_at": 10**20}])
def test_what_is_no_date_is_not_taken_for_one(wrong):
    with pytest.raises(msgspec.ValidationError):
        decoded(User, json.dumps(USER | wrong).encode())


def test_a_client_takes_fields_of_a_newer_service_and_the_service_takes_none():
    newer = {"kind": "free", "added_later": 1}
    assert decoded(Text, json.dumps(newer).encode()) == Text()
    assert decoded(Settings, b'{"levels": {"added_later": 1}, "added_later": 1}') == Settings()
    for kind, body in [
        (requests.TypedText, newer),
        (requests.TenantSettings, {"levels": {"added_later": 1}}),
        (requests.NewUser, {"added_later": 1}),
        (requests.SampleBody, {"keystrokes": [{"keyname": "a", "timepress": 0, "added_later": 1}]}),
    ]:
        with pytest.raises(msgspec.ValidationError, match="added_later"):
            decoded(kind, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"keystrokes": [*ROWS, {"keyname": "a\n", "timepress": 1}]}, "/body/keystrokes/60/keyname"),
        ({"keystrokes": [{"keyname": "a"}]}, "/body/keystrokes/0/timepress"),
        ({"keystrokes": [{"keyname": "a", "timepress": 1, "x": 1}]}, "/body/keystrokes/0/x"),
        ({"keystrokes": [{"keyname": "a", "timepress": True}]}, "/body/keystrokes/0/timepress"),
        ({"keystrokes": [{"keyname": "a", "timepress": 1e16}]}, "/body/keystrokes/0/timepress"),
        ({"keystrokes": []}, "/body/keystrokes"),
        ({"keystrokes": None}, "/body"),
        ({"text": {"kind": "fixed"}}, "/body/text"),
        ({"text": {"kind": "free", "name": "pin"}}, "/body/text"),
        ({"level": "highest"}, "/body/level"),
    ],
)
def test_the_first_error_is_named_with_its_place(change, pointer):
    body = json.dumps({"keystrokes": ROWS} | change).encode()
    with pytest.raises(msgspec.ValidationError) as caught:
        decoded(requests.ClaimBody, body)
    assert located(str(caught.value))[0] == pointer


def test_names_end_where_their_pattern_does():
    for id in ("ada\n", "", "a b", "a" * 129):
        with pytest.raises(msgspec.ValidationError):
            decoded(requests.NewUser, json.dumps({"id": id}).encode())
    assert decoded(requests.NewUser, b'{"id": "ada@example.org"}').id == "ada@example.org"


def test_every_field_is_described():
    kinds = [
        kind
        for module in (answers, both_ways, report_answers, requests)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    ]
    assert len(kinds) > 40
    for kind in kinds:
        schema = msgspec.json.schema(kind, schema_hook=lambda _: {"type": "integer"})
        for name, each in schema["$defs"][kind.__name__].get("properties", {}).items():
            assert each.get("description"), f"{kind.__name__}.{name}"


def test_secrets_are_not_printed():
    token = answers.Token("kdt_x", "watch", None, Moment.at(0))
    assert "kdt_x" not in repr(token)
    assert "watch" in repr(token)


def test_types_of_the_client_are_those_of_the_service():
    assert Decision is answers.Decision
    assert Client.verify.__annotations__["return"] == "Decision"


def test_one_thread_at_a_time_prepares_a_type(monkeypatch):
    """msgspec shows other threads a struct that is half prepared, and ends the process when they use it."""
    made, real = [], msgspec.json.Decoder

    def noted(kind, **options):
        assert both_ways._PREPARING.locked()
        made.append(kind)
        return real(kind, **options)

    monkeypatch.setattr(both_ways, "_DECODERS", {})
    monkeypatch.setattr(both_ways.msgspec.json, "Decoder", noted)
    for _ in range(2):
        assert decoded(Text, b"{}") == both_ways.converted(Text, {}) == Text()
    assert made == [Text]


@pytest.mark.parametrize("folder", ["service", "client"])
def test_types_are_prepared_nowhere_else_but_on_import(folder):
    found = {
        path.name
        for path in (ROOT / "src" / "keydyn" / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("msgspec.json.decode", "msgspec.convert")
        # Without a type, or with one that is no struct.
        if any(one.arg == "type" for one in node.keywords)
        or (len(node.args) > 1 and ast.unparse(node.args[1]) != "Device")
    }
    assert found <= {"both_ways.py"}


def test_cursors_hold_what_was_put_into_them_and_nothing_else():
    fields = CURSOR_NUMBER, CURSOR_ID
    for number in (-(1 << 60), 0, 1 << 60):
        assert cursor_values(cursor_at(number, "0" * 32), *fields) == (number, "0" * 32)
    assert cursor_values(None, *fields) is None
    wrong = [
        (1 << 61, "0" * 32),
        (-(1 << 61), "0" * 32),
        (1, "0" * 31),
        (1,),
        (1, "0" * 32, 1),
        ("1", "0" * 32),
    ]
    for cursor in ("x", "é", *(cursor_at(*values) for values in wrong)):
        with pytest.raises(Problem) as caught:
            cursor_values(cursor, *fields)
        assert (caught.value.status, caught.value.kind) == (400, "bad-cursor")


def test_a_message_says_where_the_error_is_and_is_cut():
    assert located("Expected `int` - at `$.a[3].b`") == ("/body/a/3/b", "Expected `int`")
    assert located("Object contains unknown field `x` - at `$.a`") == (
        "/body/a/x",
        "Object contains unknown field `x`",
    )
    assert located("x" * 300) == ("/body", "x" * 200)
