"""The benchmark's own parts: two ways give the same numbers; results are written and pasted in place."""

from __future__ import annotations

import ast
import contextlib
import csv
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DETAILS = BENCHMARKS.parent / "docs" / "performance-details.md"
PASTED = ("performance-details.md", "performance.md", "guide/cluster.md")


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The scripts import each other by their names; nothing of them stays behind."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_targets_need_what_they_refer_to():
    from targets import target_of

    assert target_of("a", {"hmmlearn (scaling)": 210.0}) == pytest.approx(60.0)
    assert target_of("b", {"hmmlearn (scaling)": 4_800.0, "dynamax (by hand)": 200.0}) == pytest.approx(50.0)
    assert target_of("b", {"hmmlearn (scaling)": 4_800.0}) is None
    assert target_of("family gamma", {"a": 30.0}) == pytest.approx(90.0)
    assert target_of("encoding", {}) is None


def test_every_row_has_a_case():
    from cases import CASES
    from speed import STREAM, THREADED, TITLES

    assert {name.split()[0] for name in TITLES} | {STREAM, "threads", "agreement"} <= set(CASES)
    assert set(TITLES) >= THREADED


@pytest.mark.slow
def test_a_process_reports_what_each_part_of_its_start_takes(tmp_path):
    from running import Bench
    from start_up import _process

    found = _process(Bench(tmp_path), "dependencies", "import")
    assert list(found) == ["dependencies", "import"]
    assert all(processor > 0.0 and clock > 0.0 for processor, clock in found.values())


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        ([11.0, 12.0, 12.0], "slower"),
        ([8.0, 9.0, 9.0], "faster"),
        ([10.5, 12.0, 12.0], "within the spread"),
        ([11.0, 12.0], "too few turns"),
    ],
)
def test_a_row_is_slower_only_beyond_the_spread(now, verdict):
    from against import Compared

    row = Compared("A", [10.0, 10.3, 10.6], now)
    assert row.verdict == verdict
    assert row.cells()[1:3] == ["10.3", "±2.9 %"]


def test_two_revisions_take_turns(tmp_path, monkeypatch):
    import against

    order = []

    class Fake:
        def __init__(self, cache, sources):
            self.side = "before" if "before" in cache.name else "now"

        def forget(self):
            order.clear()

        def case(self, name, *arguments):
            order.append(self.side)
            # The first turn compiles, and does not count.
            slow = 100.0 if len(order) <= 2 else 1.0
            return {"ns": slow * (2_000.0 if self.side == "before" else 20.0)}

    monkeypatch.setattr(against, "Bench", Fake)
    monkeypatch.setattr(against, "_check", lambda bench, sources: None)
    monkeypatch.setattr(against, "worktree", lambda revision: contextlib.nullcontext(tmp_path))
    (row,) = against.compare("v1", {"online codes": "online"}, tmp_path, turns=3)
    assert order == ["before", "now", "now", "before"] * 2
    assert row.verdict == "faster"
    assert row.ratio == pytest.approx(0.01)
    assert (
        "| online | 2,000 | ±0.0 % | 20 | ±0.0 % | 0.010 | faster |" in (tmp_path / "against.md").read_text()
    )
    assert (tmp_path / "against.csv").read_text().splitlines()[1:] == [
        f"online,{turn},2000.0,20.0" for turn in (1, 2, 3)
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_revision_is_checked_out_beside_the_working_tree(tmp_path, monkeypatch):
    import against

    def git(*arguments):
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    for text in ("old", "new"):
        (tmp_path / "code.py").write_text(text)
        git("add", "code.py")
        git("commit", "--quiet", "--message", text)
    monkeypatch.setattr(against, "HERE", tmp_path / "benchmarks")
    with against.worktree("HEAD~1") as folder:
        assert (folder / "code.py").read_text() == "old"
    assert not folder.exists()
    assert len(git("worktree", "list").splitlines()) == 1
    with pytest.raises(SystemExit, match=r"git worktree: .*no-such"), against.worktree("no-such"):
        pass


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
PEOPLE = {
    "compiling_s": 9.0,
    **{f"{what}_us": 1_500.0 for what in ("fit", "enrol", "enrol_long", "pohmm_fit")},
    **{f"{what}_us": 1.25 for what in ("compare_with", "compare_without", "pohmm_compare")},
    **{f"{what}_nats": -11.5 for what in ("half", "added", "all")},
    "people": 10_000.0,
    "large_s": 90.0,
    "large_mb": 200.0,
}


def test_results_are_written_as_the_page_says_and_pasted(tmp_path, monkeypatch, capsys):
    import paste
    import report
    from start_up import Line

    parts = [Line("first `fit`", 8.0, 9.0), Line("together", 9.25, 10.5, 15.0)]
    report.show([dict(row) for row in ROWS], parts, STREAM, PEOPLE, tmp_path)
    with (tmp_path / "speed.csv").open(newline="") as file:
        ours, theirs = csv.DictReader(file)
    described = next(line for line in DETAILS.read_text().splitlines() if line.startswith("| `speed.csv`"))
    assert [f"`{name}`" in described for name in ours] == [True] * len(ours)
    assert float(ours["target_ratio"]) == 2.0
    assert theirs["ratio"] == ""
    assert (tmp_path / "start_up.csv").read_text().splitlines() == [
        "what,processor_s,clock_s,target_s",
        "first `fit`,8.0,9.0,",
        "together,9.25,10.5,15.0",
    ]
    assert "| A | keydyn | 30 | 4 | 60 | 2 | 1.2 | – | – |" in (tmp_path / "speed.md").read_text()
    assert "10,000 people in 90 s" in (tmp_path / "speed.md").read_text()
    assert "large_s" in (tmp_path / "people.csv").read_text()
    assert (tmp_path / "speed.png").stat().st_size > 0

    docs = tmp_path / "docs"
    (docs / "guide").mkdir(parents=True)
    for page in PASTED:
        (docs / page).write_text((DETAILS.parent / page).read_text())
    monkeypatch.setattr(paste, "DOCS", docs)
    monkeypatch.setattr(sys, "argv", ["paste.py", str(tmp_path)])
    paste.main()
    once = [(docs / page).read_text() for page in PASTED]
    assert "| A | keydyn | 30 |" in once[0]
    assert "| together | 9.25 | 10.50 | 15 |" in once[0]
    # What users read: 10.5 s by the clock, and 1,500 µs to enrol somebody
    assert (
        "| import, fit, score and find states for the first time | once per installation | 10\u00a0s |"
        in once[1]
    )
    assert "| enrol a person with the population model | 10 samples of 36 keys | 1.5\u00a0ms |" in once[1]
    assert (
        "| fit a POHMM to each and score, whole process | 1,000 people, 500 at a time | 301 MB |" in once[1]
    )
    assert "models_a_second = 1_800\n" in once[2]
    # 100 million users at 1,800 a second on 16 cores, and the last task
    assert f"| 1 | {(1e8 / 1_800 / 16 + 1_000 / 1_800) / 3600:.2g} h |" in once[2]
    (tmp_path / "start_up.md").unlink()
    paste.main()
    assert [(docs / page).read_text() for page in PASTED] == once
    assert "start_up.md is not there" in capsys.readouterr().out


def test_times_of_whole_tasks_in_short(tmp_path):
    from in_short import blocks, duration
    from speed import TITLES

    assert [duration(s) for s in (20.8, 2.28, 0.0906, 0.00218, 3.3e-6, 3.3e-7)] == [
        *("21\u00a0s", "2.3\u00a0s", "91\u00a0ms", "2.2\u00a0ms", "3.3\u00a0µs", "0.33\u00a0µs")
    ]
    libraries = {
        "keydyn": 100.0,
        "hmmlearn (log)": 900.0,
        "hmmlearn (scaling)": 300.0,
        "dynamax (by hand)": 200.0,
    }
    with (tmp_path / "speed.csv").open("w", newline="") as file:
        lines = [(title, *pair, 61.5) for title in TITLES.values() for pair in libraries.items()]
        csv.writer(file).writerows([("workload", "library", "ns", "peak_mb"), *lines])
    found = blocks(tmp_path)
    assert (
        "| fit a POHMM to a long recording | 100,000 keys, 20 iterations | 200\u00a0ms |"
        in found["measured in short"]
    )
    assert "| follow a live session, from Python | one event | 0.1\u00a0µs |" in found["measured in short"]
    # The faster of two settings
    assert "| fit one sequence of 100,000 | 100 | 300 | 200 |" in found["measured beside others"]
    assert found["measured beside others"].count("\n") == 5
    assert "| fit a POHMM | 1,000,000 events of 50 kinds | 61.5 MB |" in found["measured memory"]


def test_a_page_without_markers_is_told(tmp_path):
    import paste

    page = tmp_path / "page.md"
    page.write_text("nothing here")
    with pytest.raises(SystemExit, match=r"page\.md must have <!-- measured table: begin -->"):
        paste.put(page, "measured table", "text")


def test_a_coarse_clock_moves_every_time_to_the_tick_before_it():
    import pandas as pd
    from clocks import on_clock

    random = np.random.default_rng(0)
    press = np.cumsum(random.uniform(0.5, 40, 400))
    typed = pd.DataFrame({"user": "ann", "session": np.repeat([0, 1], 200), "keyname": "a"})
    typed = typed.assign(timepress=press, timerelease=press + random.uniform(0.5, 40, 400), row=range(400))
    found = on_clock(typed, 16.0)
    for _, part in found.groupby("session"):
        before = typed.iloc[part["row"]]
        lowest, highest = 0.0, 16.0
        for name in ("timepress", "timerelease"):
            seen = part[name].notna().to_numpy()
            moved = part.loc[seen, name].to_numpy() - before.loc[seen, name].to_numpy()
            assert np.all(part.loc[seen, name] % 16.0 == 0)
            # There is a phase p with t + p - 16 < moved time <= t + p for all of them.
            lowest, highest = max(lowest, moved.max()), min(highest, (moved + 16.0).min())
        assert lowest <= highest
    # Of keys pressed at one tick the first is kept; a release at the tick of its press is not seen.
    assert found["timepress"].groupby(found["session"]).apply(lambda times: times.is_unique).all()
    assert not (found["timerelease"] == found["timepress"]).any()
    assert len(found) < len(typed)
    assert found["timerelease"].isna().any()


def test_the_house_is_counted(tmp_path):
    """A package of three modules, counted by hand."""
    import house

    package = tmp_path / "src" / "keydyn"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text('"""A package."""\n')
    (package / "one.py").write_text(
        '"""The same,\n\nin three lines."""\n\nimport os\n\n\ndef f(a, b, c, d, e, f, g):\n    return os\n'
    )
    (package / "room" / "one.py").write_text(
        "from keydyn.one import f\n\n\nclass Thing:\n    # so many, whoever counts\n    call = f\n"
    )
    (package / "lab").mkdir()
    (package / "lab" / "study.py").write_text("TABLES = ()\nFIGURES = ()\n")
    found = house.counts(tmp_path)
    assert (found["files"], found["lines"]) == (4, 18)
    assert (found["lines of the core"], found["lines of the laboratory"]) == (16, 2)
    kinds = ("code", "imports", "docstrings", "comments", "blank")
    assert [found[f"lines: {kind}"] for kind in kinds] == [6, 2, 4, 1, 5]
    assert found["modules with exactly one importer"] == 1
    assert found["file names that occur twice"] == 1
    assert found["functions with more than 6 parameters"] == 1
    assert found["functions with more than 12 parameters"] == 0
    assert found['docstrings that begin with "The same"'] == 1
    assert found['lines with "so many"'] == 1
    assert found["lines with a whoever, somebody or nobody"] == 1


def test_what_only_an_import_calls_is_not_passed(tmp_path, monkeypatch):
    """The body of a class runs when its module is imported; its method, when it is called."""
    import house_paths

    file = tmp_path / "passed_by.py"
    file.write_text("class Thing:\n    def called(self):\n        return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.getprofile()
    sys.setprofile(house_paths.notice)
    try:
        with house_paths.watched():
            module = import_module("passed_by")
            imported = str(file) in house_paths.entered
            module.Thing().called()
    finally:
        sys.setprofile(before)
    assert not imported
    assert str(file) in house_paths.entered


@pytest.mark.slow
def test_the_files_that_a_fit_passes():
    import house

    found = house.passed(BENCHMARKS.parent, "fit")
    assert "model/fit/estimator.py" in found
    assert "model/engine/recursions.py" in found
    assert not any(path.startswith(("keystrokes", "service")) for path in found)


def test_what_two_revisions_decide_differently_is_named():
    from same_decisions import difference

    before = {"said": [["ada", "accept"], [False, "ada"]], "numbers": [1.0, float("inf"), float("nan")]}
    assert difference(before, before) == 0.0
    assert difference(before, before | {"numbers": [1.25, float("inf"), float("nan")]}) == 0.25
    with pytest.raises(SystemExit, match="decision 0 was"):
        difference(before, before | {"said": [["ada", "reject"], [False, "ada"]]})
    with pytest.raises(SystemExit, match="3 numbers"):
        difference(before, before | {"numbers": [1.0, 2.0]})
    with pytest.raises(SystemExit, match="others are missing"):
        difference(before, before | {"numbers": [float("nan"), float("inf"), float("nan")]})


def test_parts_of_a_flame_graph_have_the_looks_that_found_them():
    from flame import Part, said

    whole = Part()
    for names in (["verify", "score"], ["verify", "score"], ["verify"], ["read"]):
        whole.add(names)
    assert whole.looks == 4
    assert whole.called["verify"].looks == 3
    assert whole.called["verify"].called["score"].looks == 2
    assert [line.split() for line in said(whole, whole)] == [
        ["75.0", "%", "verify"],
        ["50.0", "%", "score"],
        ["25.0", "%", "read"],
    ]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    """Most imports stand in functions, which no other test runs."""
    script = ast.parse(path.read_text())
    # What is imported from where an earlier revision has it.
    handlers = [node for node in ast.walk(script) if isinstance(node, ast.ExceptHandler)]
    earlier = {id(inner) for handler in handlers for inner in ast.walk(handler)}
    for node in ast.walk(script):
        if isinstance(node, ast.ImportFrom) and id(node) not in earlier:
            package = str(node.module).split(".")[0]
            module = import_module(str(node.module)) if package in ("keydyn", "tests") else None
            for name in node.names if module else ():
                found = hasattr(module, name.name) or find_spec(f"{node.module}.{name.name}")
                assert found, f"line {node.lineno}: {node.module} has no {name.name}"
