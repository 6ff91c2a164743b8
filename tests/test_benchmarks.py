"""The benchmark's own parts: two ways give the same numbers; results are written and pasted as told."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PERFORMANCE = BENCHMARKS.parent / "docs" / "performance.md"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The scripts import each other by their names; nothing of them stays behind."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


@pytest.mark.parametrize("module", ["kernel_choices", "model_choices"])
def test_both_ways_of_every_choice_give_the_same_numbers(module):
    choices = vars(__import__(module))[module.upper()]
    for make in choices:
        name, plain, chosen, _ = make()
        # Sums in another order, and logarithms and exponentials that are rounded another way.
        np.testing.assert_allclose(chosen(), plain(), rtol=1e-9, err_msg=name)


def test_operations_are_told_apart():
    from choices import operations

    lines = [
        "vmulpd %zmm1, %zmm2, %zmm3",
        "vaddsd %xmm0, %xmm1, %xmm0",
        "vfmadd213pd (%rax), %ymm1, %ymm2",
        "ret",
    ]
    assert operations("\n\t".join(["", *lines])) == ({"z": 1, "y": 1, "x": 0}, 1)


def test_targets_need_what_they_refer_to():
    from targets import target_of

    assert target_of("a", {"hmmlearn (scaling)": 210.0}) == pytest.approx(60.0)
    assert target_of("b", {"hmmlearn (scaling)": 4_800.0, "dynamax (by hand)": 200.0}) == pytest.approx(50.0)
    assert target_of("b", {"hmmlearn (scaling)": 4_800.0}) is None
    assert target_of("encoding", {}) is None


ROWS = [
    {"workload": "A", "library": "keydyn", "ns": 30.0, "ratio": 4.0, "target": 60.0, "peak_mb": 1.25},
    {"workload": "A", "library": "hmmlearn (log)", "ns": 120.0, "peak_mb": 0.5, "first_call_s": 0.001},
]
STREAM = {
    "users": 1_000.0,
    **{f"{what}_us": 10.0 for what in ("simulate", "prepare", "fit", "score")},
    "models_a_second": 1_849.0,
    "memory_first_chunk_mb": 300.0,
    "memory_end_mb": 301.0,
}


def test_results_are_written_as_the_page_says_and_pasted(tmp_path, monkeypatch, capsys):
    import paste
    import report

    start_up = {"bare": 1.0, "compiling": 40.0, "cached": 1.4}
    report.show([dict(row) for row in ROWS], start_up, STREAM, tmp_path)
    with (tmp_path / "speed.csv").open(newline="") as file:
        ours, theirs = csv.DictReader(file)
    described = next(
        line for line in PERFORMANCE.read_text().splitlines() if line.startswith("| `speed.csv`")
    )
    assert [f"`{name}`" in described for name in ours] == [True] * len(ours)
    assert float(ours["target_ratio"]) == 2.0
    assert theirs["ratio"] == ""
    assert "0.40 s over the dependencies" in (tmp_path / "summary.csv").read_text()
    assert "| A | keydyn | 30 | 4 | 60 | 2 | 1.2 | – | – |" in (tmp_path / "speed.md").read_text()
    assert (tmp_path / "speed.png").stat().st_size > 0

    docs = tmp_path / "docs"
    (docs / "guide").mkdir(parents=True)
    for page in ("performance.md", "guide/cluster.md"):
        (docs / page).write_text((PERFORMANCE.parent / page).read_text())
    monkeypatch.setattr(paste, "DOCS", docs)
    monkeypatch.setattr(sys, "argv", ["paste.py", str(tmp_path)])
    paste.main()
    once = [(docs / page).read_text() for page in ("performance.md", "guide/cluster.md")]
    assert "| A | keydyn | 30 |" in once[0]
    assert "models_a_second = 1_800\n" in once[1]
    # 100 million users at 1,800 a second on 16 cores, and the last task
    assert f"| 1 | {(1e8 / 1_800 / 16 + 1_000 / 1_800) / 3600:.2g} h |" in once[1]
    paste.main()
    assert [(docs / page).read_text() for page in ("performance.md", "guide/cluster.md")] == once
    assert "choices.md is not there" in capsys.readouterr().out


def test_a_page_without_markers_is_told(tmp_path):
    import paste

    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(SystemExit, match=r"page\.md must have <!-- measured table: begin -->"):
        paste.put(page, "measured table", "text")
