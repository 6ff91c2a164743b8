"""The guide to the service against the code: its tables name every problem and every setting."""

from __future__ import annotations

import ast
import re

import pytest

from keydyn.service.http.problem_answers import HTTP_KINDS, OTHER_KIND
from keydyn.service.storage.tables import metadata
from keydyn.service.wire.requests import TenantSettings
from tests.documents import ROOT
from tests.service.tries import failures_allowed

GUIDE = (ROOT / "docs" / "guide" / "service.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\d, ]+) \| ((?:`[a-z-]+`(?:, )?)+) \|", re.MULTILINE)


def problems_in_the_code() -> set[str]:
    """The kinds of all problems that are raised."""
    found = {*HTTP_KINDS.values(), OTHER_KIND}
    for file in (ROOT / "src" / "keydyn" / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                kinds = [part.value for part in ast.walk(node.args[1]) if isinstance(part, ast.Constant)]
                found |= {kind for kind in kinds if isinstance(kind, str)}
    return found


def test_the_tables_of_problems_are_complete_and_name_nothing_else() -> None:
    named = {kind for row in ROW.finditer(GUIDE) for kind in re.findall("[a-z-]+", row[2])}
    assert named == problems_in_the_code()


def test_the_table_of_settings_is_complete() -> None:
    section = GUIDE.split("## Settings")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(TenantSettings.__struct_fields__)


def test_the_table_of_attempts_is_what_the_service_allows() -> None:
    section = GUIDE.split("## Attempts and chances")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\d.]+) \| `(\w+)` \| (.+) \| ([\d.]+) % \|$", section, re.MULTILINE)
    assert len(rows) == len({row[:2] for row in rows}) == 12
    for chance, asked, failures, largest in rows:
        settings = TenantSettings(takeover_chance=float(chance))
        allowed = failures_allowed(settings, asked)
        said = {level: int(number) for number, level in re.findall(r"(\d+) at `(\w+)`", failures)}
        assert said == allowed
        # The union bound.
        union = sum(getattr(settings.levels, level) * number for level, number in said.items())
        assert 100 * union == pytest.approx(float(largest))


def test_tests_that_pages_name_exist() -> None:
    for name in ("security.md", "deployment.md", "service.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for path in re.findall(r"`(tests/[\w/.]+)`", page):
            assert (ROOT / path).exists(), f"{name}: {path}"


def test_the_security_page_names_every_table() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.split("## What is stored")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(metadata.tables)
