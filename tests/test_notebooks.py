"""The notebooks are what Jupyter opens, and their cells run one after the other."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from tests.documents import DOCS

matplotlib.use("Agg")
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
# The fields that version 4.5 of the format demands of each kind of cell.
FIELDS = {
    "markdown": {"cell_type", "id", "metadata", "source"},
    "code": {"cell_type", "id", "metadata", "source", "outputs", "execution_count"},
}


def cells_of(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    return list(notebook["cells"])


def test_there_are_notebooks_and_the_map_leads_to_them() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 2
    assert all(f"notebooks/{path.name}" in index for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_without_outputs(path: Path) -> None:
    cells = cells_of(path)
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        assert set(cell) == FIELDS[cell["cell_type"]]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_show_something_short(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sketched: None
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    code = ["".join(cell["source"]) for cell in cells_of(path) if cell["cell_type"] == "code"]
    assert code
    for k, source in enumerate(code):
        tree = ast.parse(source)
        last = tree.body.pop()
        exec(compile(tree, f"{path.name}, cell {k}", "exec"), namespace)
        assert isinstance(last, ast.Expr)
        shown = eval(compile(ast.Expression(last.value), f"{path.name}, cell {k}", "eval"), namespace)
        assert max(map(len, repr(shown).splitlines())) <= 500
    assert list(tmp_path.iterdir()) == []
