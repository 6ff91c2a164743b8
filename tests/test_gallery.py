"""Every script of the gallery runs, warnings as errors, draws something, and says what to learn from it."""

import ast
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from tests.documents import DOCS

matplotlib.use("Agg")

SCRIPTS = sorted((DOCS / "examples").glob("*/*.py"))


def test_a_part_of_the_examples_is_not_about_keys() -> None:
    others = [script for script in SCRIPTS if script.parent.name == "other-events"]
    assert len(SCRIPTS) >= 14
    assert len(others) >= 4
    for script in others:
        code = script.read_text(encoding="utf-8")
        assert "make_typists" not in code
        assert "keydyn.keystrokes" not in code


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_says_what_it_is_about(script: Path) -> None:
    code = script.read_text(encoding="utf-8")
    title, line, *question = (ast.get_docstring(ast.parse(code)) or "").split("\n")
    assert line == "=" * len(title)
    assert "simulated" in "\n".join(question)
    last_cell = code.split("\n# %%\n")[-1].split("\n")
    assert last_cell[0] == "# What to learn from it"
    assert all(text.startswith("#") for text in last_cell if text)
    assert len(" ".join(last_cell[3:])) > 100


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__gallery__"}
    # Other tests may have left figures open.
    plt.close("all")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), names)
        figures = [value for value in names.values() if isinstance(value, Figure)]
        # What pyplot has drawn and nobody has named would not be shown.
        assert {plt.figure(number) for number in plt.get_fignums()} <= set(figures)
    finally:
        plt.close("all")
    assert figures
    for figure in figures:
        for axes in figure.axes:
            # Panels that share an axis label it once, and a bar of colours has one axis only.
            assert axes.get_xlabel() or axes.get_ylabel()
