"""The changes are the ones meant, and a run notices what its tests notice."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import FunctionType

import pytest

from keydyn import arrays
from tests.mutation.changes import COMPILERS, Change, changes_in
from tests.mutation.covered import AREAS, BUDGET, SLOW, WITHOUT_COMPILER, Covered, Run, files_of, own_tests
from tests.mutation.report import report
from tests.mutation.run import ROOT, drawn
from tests.mutation.scratch import users_of


def after(source: str) -> set[tuple[str, str]]:
    return {(change.kind, change.after) for change in changes_in("a.py", source.encode())}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {("comparison", "(a <= b)"), ("comparison", "(a > b)")}),
        ("x = a is None", {("comparison", "(a is not None)")}),
        ("x = a + b * c", {("arithmetic", "(a - b * c)"), ("arithmetic", "(b / c)")}),
        ("x = 3", {("constant", "4"), ("constant", "2")}),
        ("x = True", {("constant", "False")}),
        ("x = not a or b", {("boolean", "(not a and b)"), ("sign or negation", "(a)")}),
        ("x = f(a, b, c=d)", {("swapped arguments", "(f(b, a, c=d))"), ("dropped argument", "(f(a, b))")}),
        ("x = max(a)", {("another function", "(min(a))")}),
        ("x += a", {("arithmetic", "x -= a"), ("deleted statement", "pass")}),
        ("if a:\n    raise ValueError(1)", {("condition", "(not a)"), ("deleted statement", "pass")}),
        ("x: int | None = None", set()),
        ('"""A text of 3 < 4."""\nfrom a import b', set()),
        ("x = f'{1 + 1}'", set()),
    ],
)
def test_what_is_changed(source: str, expected: set[tuple[str, str]]) -> None:
    assert after(source) == expected


def test_a_change_touches_its_place_and_nothing_else() -> None:
    source = "é = 'ü'\nif é  <  3:  # why\n    pass\n".encode()
    changed = {one.applied(source).decode() for one in changes_in("a.py", source) if one.kind == "comparison"}
    assert changed == {f"é = 'ü'\nif (é {sign} 3):  # why\n    pass\n" for sign in ("<=", ">")}


def test_every_way_to_compile_a_function_is_known() -> None:
    ways = {name for name, made in vars(arrays).items() if isinstance(made, FunctionType)}
    takes_one = {name for name in ways if next(iter(signature(vars(arrays)[name]).parameters)) == "function"}
    assert takes_one == {*COMPILERS, "within"}


def test_which_changes_make_compiled_code_invalid() -> None:
    functions = [
        b"@partial(compiled, x=0)",
        b"def a(): return 2",
        b"def b(): return 3",
        b"def _c(): return 4",
    ]
    source = b"\n".join([b"N = 1", *functions, b"c = inner(_c, x=5)"])
    found = {one.before: one.compiled for one in changes_in("a.py", source) if one.kind == "constant"}
    assert found == {"1": True, "2": True, "3": False, "4": True, "5": True}


@pytest.mark.parametrize("area", AREAS)
def test_drawn_changes_can_be_compiled_and_are_the_same_each_time(area: str) -> None:
    found = drawn(area, 0, 12)
    assert found == drawn(area, 0, 12) != drawn(area, 1, 12)
    for change in found:
        compile(change.applied((ROOT / change.file).read_bytes()), change.file, "exec")


def test_the_tests_of_every_area_are_there() -> None:
    for area in AREAS:
        names = files_of(ROOT / "tests", [area])
        assert names
        assert all((ROOT / "tests" / name).is_file() for name in names)


def test_every_area_with_compiled_code_is_tried_without_the_compiler() -> None:
    found = {area for area in AREAS if any(change.compiled for change in drawn(area, 0, 100))}
    assert found <= set(WITHOUT_COMPILER)


def test_the_innermost_function_is_known_by_its_first_line() -> None:
    """As Python has it: the line of the first decorator."""
    methods = ["    def g(x=3):", "        def h():", "            return 4", "        return 5"]
    text = "\n".join(["A = 1", "@d", "def f():", "    return 2", "class C:", *methods])
    found = {one.line: one.function for one in changes_in("a.py", text.encode())}
    assert found == {1: None, 4: 2, 6: 6, 8: 7, 9: 6}


def test_the_quickest_tests_that_call_a_function_are_asked() -> None:
    covered = Covered()
    covered.runs[False] = {
        "too slow": Run(BUDGET, {"a.py": [3]}),
        "quick": Run(1.0, {"a.py": [3, 7], "b.py": [1]}),
        "other": Run(0.5, {"a.py": [7], "c.py": [1]}),
    }
    covered.runs[True] = {"by hand": Run(9.0, {"a.py": [3]})}
    change = Change("a.py", 4, 0, "constant", "1", "2", 0, 1, compiled=False, function=3)
    nobody: frozenset[str] = frozenset()
    assert covered.chosen(change, nobody) == ["quick"]
    assert covered.chosen(replace(change, function=None), nobody) == ["other", "quick"]
    # What no test calls may have been called by an import.
    assert covered.chosen(replace(change, function=5), nobody) == ["other", "quick"]
    assert covered.chosen(replace(change, file="d.py"), nobody) == []
    compiled = replace(change, compiled=True)
    assert covered.chosen(compiled, frozenset({"c.py"})) == ["other"]
    assert covered.chosen(compiled, nobody, without_compiler=True) == ["by hand"]


def test_tests_of_the_same_name_are_asked_first_then_those_of_the_same_folder_and_slow_ones_last() -> None:
    assert own_tests("src/keydyn/model/fit/many.py") == "tests/model/fit/test_many.py"
    change = Change("src/keydyn/model/a.py", 4, 0, "constant", "1", "2", 0, 1, compiled=False, function=3)
    expected = {
        "tests/model/test_a.py::own": 1.0,
        "tests/model/test_b.py::near": 0.5,
        "tests/b/test_b.py::far": 0.1,
        "tests/model/test_a.py::own but slow": 2 * SLOW,
    }
    covered = Covered()
    for test in sorted(expected):
        covered.runs[False][test] = Run(expected[test], {change.file: [3]})
    assert covered.chosen(change, frozenset()) == list(expected)


def test_code_is_used_through_other_modules(tmp_path: Path) -> None:
    (tmp_path / "src" / "p").mkdir(parents=True)
    for name, text in {"a": "", "b": "from p.a import x", "c": "from p import b", "d": "import p"}.items():
        (tmp_path / "src" / "p" / f"{name}.py").write_text(text)
    assert users_of(tmp_path / "src", "src/p/a.py") == {"src/p/a.py", "src/p/b.py", "src/p/c.py"}


def test_the_table_has_wilson_s_interval() -> None:
    """Wilson (1927), by hand for 9 of 10: (0.9 + z²/20 ± z √(0.009 + z²/400)) / (1 + z²/10), z = 1.96."""
    row = {"area": "a", "kind": "k", "change": "c", "before": "b"}
    rows = [row | {"outcome": "noticed"}] * 9 + [row | {"outcome": "survived"}]
    text = report(rows)
    assert "| all | 10 | 9 | 90 % | 60–98 % |" in text
    assert text.endswith("- `c` (was `b`)")
