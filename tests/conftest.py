"""Where the real recordings are, if they are anywhere, and which tests were left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.left_out import left_out


def data_folder() -> Path | None:
    """`KEYDYN_DATA`, or shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (os.environ.get("KEYDYN_DATA"), beside):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; tests that ask for it are left out where there is none."""
    folder = data_folder()
    if folder is None:
        pytest.skip("no real recordings: set KEYDYN_DATA")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which tests were left out because a program is not installed."""
    skipped = terminalreporter.stats.get("skipped", [])
    line = left_out([report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)])
    if line:
        terminalreporter.write_line(line, yellow=True)
