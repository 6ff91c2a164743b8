"""Tests that need what is not installed are named in one line at the end."""

from __future__ import annotations

import subprocess
import sys

from tests.left_out import left_out

TESTS = """
import pytest
from tests.left_out import leave_out

@pytest.mark.parametrize("n", range(3))
def test_one(n):
    leave_out("PostgreSQL")

@pytest.fixture
def browser():
    leave_out("Chromium")

def test_two(browser):
    pass

def test_three():
    pytest.skip("no reason")
"""


def test_nothing_is_said_if_nothing_is_missing():
    assert left_out([]) == ""
    assert left_out(["Skipped: no real recordings: set KEYDYN_DATA"]) == ""


def test_one_line_says_what_was_left_out(tmp_path, pytestconfig):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    command = ["-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        cwd=pytestconfig.rootpath,
        timeout=120,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("left out")]
    assert lines == [
        "left out: 1 test that needs Chromium, 3 tests that need PostgreSQL; `make system-packages` installs "
        "what they need"
    ]
