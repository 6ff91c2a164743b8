"""What several tests of studies share: keystrokes, studies that are rebuilt, and studies that resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists
from keydyn.lab.frame import resuming


@pytest.fixture(scope="module")
def keystrokes():
    return make_typists(n_users=2, n_samples=2, text="copied", n_keys=40, random_state=0)


@pytest.fixture
def rebuilt_as_before(monkeypatch) -> Callable[[Path, str], None]:
    """Fails unless `keydyn report` restores a table that was lost, without fitting, and changes no other."""

    def check(folder: Path, lost: str) -> None:
        before = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}
        (folder / "tables" / f"{lost}.csv").unlink()
        monkeypatch.setattr("keydyn.detectors.templates.fit_templates", None)
        result = CliRunner().invoke(app, ["report", str(folder)])
        assert result.exit_code == 0, result.output
        assert {path.name: path.read_bytes() for path in (folder / "tables").iterdir()} == before

    return check


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The names of the parts that are made from now on."""
    names: list[str] = []
    keep = resuming.Parts.keep

    def noted(parts: resuming.Parts, name: str, inputs: Any, table: Any) -> Any:
        names.append(name)
        return keep(parts, name, inputs, table)

    monkeypatch.setattr(resuming.Parts, "keep", noted)
    return names
