"""Tests that need what is not there are counted at the end, in a line for each missing thing."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

from tests.left_out import left_out
from tests.summary import counted, table_of
from tests.waiting import PATIENCE

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
    assert left_out([]) == []


def test_a_line_says_what_was_left_out_for_want_of_each_thing(tmp_path, pytestconfig):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    command = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        "1",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
        tmp_path,
    ]
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        cwd=pytestconfig.rootpath,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        timeout=PATIENCE,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("left out")]
    assert lines == [
        "left out: 1 test that needs Chromium: `make system-packages` installs it",
        "left out: 3 tests that need PostgreSQL: `make system-packages` installs it",
        "left out: 1 test: no reason",
    ]


def test_runs_stand_side_by_side_in_one_table():
    report = SimpleNamespace
    stats = {
        "passed": [report(nodeid="tests/model/test_a.py::test_b", duration=1.5)] * 2,
        "": [report(nodeid="tests/model/test_a.py::test_b", duration=0.5)] * 4,
        "skipped": [report(nodeid="tests/test_c.py::test_d", duration=0.0)],
        "error": [report(nodeid="tests/service/http/test_e.py::test_f", duration=10.0)],
        "deselected": [object()],
    }
    runs = {
        "all": {"groups": counted(stats), "left_out": ["left out: 1 test"]},
        "again": {"groups": counted({"passed": stats["passed"]}), "left_out": []},
    }
    lines = [line.split() for line in table_of(runs).splitlines()]
    assert lines[2:-2] == [
        ["model", "2", "0", "0", "5", "2", "0", "0", "3"],
        ["service", "0", "1", "0", "10", "0", "0", "0", "0"],
        ["tests", "0", "0", "1", "0", "0", "0", "0", "0"],
        ["all", "2", "1", "1", "15", "2", "0", "0", "3"],
    ]
    assert table_of(runs).splitlines()[-2:] == ["all: left out: 1 test", "again: nothing was left out"]
