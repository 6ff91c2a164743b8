"""Where the real recordings are, what need not be drawn, and which tests were left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

# Its profile must be known before the options are read.
import tests.examples  # noqa: F401
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


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures empty, for tests of studies that look at something else: drawing takes most of the time.

    What fixtures of a wider scope have drawn is not touched: it is made before.
    """
    from matplotlib.figure import Figure

    save = Figure.savefig

    def sketch(figure: Figure, path: Path, **options: Any) -> None:
        save(Figure(figsize=(0.5, 0.5)), path, **options)

    monkeypatch.setattr(Figure, "savefig", sketch)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which tests were left out because a program is not installed."""
    skipped = terminalreporter.stats.get("skipped", [])
    line = left_out([report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)])
    if line:
        terminalreporter.write_line(line, yellow=True)
