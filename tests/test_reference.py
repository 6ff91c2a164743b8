"""The reference has every public name, and every name has an example that works as printed.

Public is what `__all__` lists, and what README and documentation import. The example of a method continues
that of its class.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from sphinx.ext.napoleon import Config, NumpyDocstring

import keydyn
from keydyn.client import Client
from keydyn.datasets import make_typists
from keydyn.keystrokes import sequences_of
from keydyn.service.wall_clock import wall_clock
from tests.documents import DOCS, PAGES, ROOT, blocks_of, program
from tests.service.running import running
from tests.waiting import PATIENCE

matplotlib.use("Agg")

PACKAGES = (
    *("keydyn", "keydyn.model", "keydyn.keystrokes", "keydyn.datasets", "keydyn.population"),
    *("keydyn.detectors", "keydyn.evaluation", "keydyn.decisions", "keydyn.figures", "keydyn.client"),
)
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)
# Names, separated by commas, and the name whose example shows them.
SHOWN = re.compile(r"^\| ((?:`keydyn[\w.]+`(?:, )?)+) \| `(keydyn[\w.]+)` \|$", re.MULTILINE)
NAME = re.compile(r"`(keydyn(?:\.\w+)+)`")
# What changed names things that are gone.
NAMING = [
    page for page in PAGES if page.name != "CHANGELOG.md" and NAME.search(page.read_text(encoding="utf-8"))
]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Characters of a value as the last line of a notebook cell shows it.
LONGEST_REPR = 1000
ADDRESS = "http://127.0.0.1:8421"
# Their examples read real recordings, as the docstrings say.
WITH_RECORDINGS = {
    f"keydyn.datasets.{name}" for name in ("Dataset", "load_dataset", "fetch_dataset", "stream_aalto")
}


@cache
def directives() -> dict[str, tuple[str, str]]:
    """The kind and the options of each name's directive on the pages."""
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")]
    return {name: (kind, options) for page in pages for kind, name, options in DIRECTIVE.findall(page)}


def reference() -> dict[str, str]:
    """The kind of each name on the pages."""
    return {name: kind for name, (kind, _) in directives().items()}


@cache
def public_classes() -> set[type]:
    """The classes on the pages."""
    return {found(name) for name, kind in reference().items() if kind == "class"}


@cache
def shown_elsewhere() -> dict[str, str]:
    """Names without an example of their own, and whose example shows them."""
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")]
    rows = (row for page in pages for row in SHOWN.findall(page))
    return {name: shown for names, shown in rows for name in NAME.findall(names)}


@cache
def found(path: str) -> Any:
    """What a dotted path names."""
    where, _, name = path.rpartition(".")
    if not where:
        return importlib.import_module(path)
    thing = found(where)
    return getattr(thing, name) if hasattr(thing, name) else importlib.import_module(path)


def imported(code: str) -> Iterator[str]:
    """The names of keydyn that a block of code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "keydyn":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def public_names() -> set[str]:
    """All of them, by the path from which they are imported."""
    listed = {f"{name}.{each}" for name in PACKAGES for each in importlib.import_module(name).__all__}
    used = {name for page in PAGES for _, code in blocks_of(page) for name in imported(code)}
    return (listed | used) - {"keydyn.__version__"}


def test_every_public_name_is_on_a_page() -> None:
    documented = [found(name) for name in reference()]
    missing = {name for name in public_names() if not any(found(name) is one for one in documented)}
    assert not {name for name in missing if not inspect.ismodule(found(name))}


@pytest.mark.parametrize("page", NAMING, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_the_text_of_a_page_exist(page: Path) -> None:
    for name in NAME.findall(page.read_text(encoding="utf-8")):
        assert found(name) is not None


def test_every_directive_suits_its_name() -> None:
    for name, kind in reference().items():
        thing = found(name)
        is_error = inspect.isclass(thing) and issubclass(thing, Exception)
        expected = "exception" if is_error else "class" if inspect.isclass(thing) else "function"
        assert kind == (expected if callable(thing) else "data"), name


def test_every_name_has_an_example_or_says_where_it_is_shown() -> None:
    without = {name for name, kind in reference().items() if kind != "data" and not example_of(found(name))}
    assert without == set(shown_elsewhere())


def example_of(thing: Any) -> str:
    """The Examples section of something's own docstring; empty if it has none."""
    doc = inspect.cleandoc(thing.__doc__ or "")
    return doc.partition("\nExamples\n--------\n")[2]


def methods_of(name: str) -> dict[str, Any]:
    """The methods of a class that have examples: its own, and inherited ones if its page shows them."""
    kind = found(name)
    kinds = reversed(kind.__mro__) if ":inherited-members:" in directives()[name][1] else (kind,)
    names = [each for one in kinds for each in vars(one) if not each.startswith("_")]
    methods = {each: getattr(kind, each) for each in dict.fromkeys(names)}
    return {each: method for each, method in methods.items() if callable(method) and example_of(method)}


CASES = [name for name, kind in sorted(reference().items()) if kind != "data" and example_of(found(name))]
SERVED = [name for name in CASES if ADDRESS in example_of(found(name))]
ALONE = [name for name in CASES if name not in SERVED]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sketched: None, own_registries: None) -> None:
    """An empty folder and caches, and nothing that is registered stays so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # No cluster answers in any case.
    monkeypatch.setattr("keydyn.parallel.PATIENCE", 0.2)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A service at which bela is enrolled, and a key for it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('reference') / 'service.db'}"
    with running(url, wall_clock) as service:
        key = service.key()
        with Client(service.url, key, timeout_s=PATIENCE, patience_s=2 * PATIENCE) as client:
            client.create_user("bela")
            typed = make_typists(1, 5, "free", 60, first_user=9)
            for n in range(5):
                client.enrol("bela", typed[typed["session"] == n])
        yield service.url, key


@pytest.mark.parametrize("name", ALONE)
def test_example(
    name: str, quiet: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in WITH_RECORDINGS:
        monkeypatch.setenv("KEYDYN_DATA", str(request.getfixturevalue("recordings")))
    check(name)


@pytest.mark.parametrize("name", SERVED)
def test_example_that_talks_to_a_service(
    name: str, quiet: None, monkeypatch: pytest.MonkeyPatch, served: tuple[str, str]
) -> None:
    address, key = served
    monkeypatch.setenv("KEY", key)
    check(name, address)


def check(name: str, address: str = ADDRESS) -> None:
    """Run the example of something and those of its methods, and look for the types that they are to show."""
    thing = found(name)
    namespace = ran(name, example_of(thing), {}, address)
    shown = {name: namespace}
    try:
        for method, each in methods_of(name).items() if inspect.isclass(thing) else ():
            shown[f"{name}.{method}"] = ran(f"{name}.{method}", example_of(each), namespace, address)
    finally:
        for value in namespace.values():
            if isinstance(value, Client):
                value.close()
    for each in [value for names in shown.values() for value in names.values()]:
        if type(each) in public_classes():
            assert len(repr(each)) <= LONGEST_REPR, repr(each)
    for kind, where in shown_elsewhere().items():
        if where in shown:
            thing = found(kind)
            kinds = thing if isinstance(thing, type) else ()
            assert any(each is thing or isinstance(each, kinds) for each in contents(shown[where])), kind


def ran(name: str, example: str, before: Mapping[str, Any], address: str) -> dict[str, Any]:
    """The names that an example leaves; it must print what it says."""
    namespace = {"__name__": "__main__", **before}
    test = doctest.DocTestParser().get_doctest(example.replace(ADDRESS, address), namespace, name, None, None)
    assert test.examples
    out: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=out.append, clear_globs=False)
    assert result.failed == 0, "".join(out)
    return test.globs


def contents(thing: Any, depth: int = 4) -> Iterator[Any]:
    """A value and what is in it."""
    yield thing
    if depth == 0 or isinstance(thing, str):
        return
    inside: list[Any] = []
    if isinstance(thing, Mapping):
        inside = list(thing.values())
    elif isinstance(thing, list | tuple):
        inside = list(thing)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        inside = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    elif hasattr(type(thing), "__struct_fields__"):
        inside = [getattr(thing, field) for field in type(thing).__struct_fields__]
    elif hasattr(type(thing), "model_fields"):
        inside = [getattr(thing, field) for field in type(thing).model_fields]
    for each in inside:
        yield from contents(each, depth - 1)


def test_a_model_with_many_event_types_is_printed_on_a_line() -> None:
    model = keydyn.POHMM().fit(sequences_of(make_typists(2, 4)))
    for value in (model, model.marginal_, model.emission_, model.online()):
        assert len(repr(value)) <= LONGEST_REPR, repr(value)
        assert "\n" not in repr(value)


def documented() -> Iterator[tuple[str, Any]]:
    """Everything on the pages that takes parameters: functions, classes and their methods."""
    for name, kind in reference().items():
        if kind == "data":
            continue
        yield name, found(name)
        if inspect.isclass(found(name)):
            methods = [each for each in vars(found(name)) if not each.startswith("_")]
            yield from (
                (f"{name}.{each}", getattr(found(name), each))
                for each in methods
                if callable(getattr(found(name), each))
            )


def test_every_documented_parameter_is_in_the_signature_with_its_type_and_default() -> None:
    """As napoleon reads the docstrings, so that prose that it would take for a parameter is noticed."""
    as_written = program("docstrings").as_written
    seen = 0
    for name, thing in documented():
        lines = inspect.cleandoc(thing.__doc__ or "").splitlines()
        if "Parameters" not in lines:
            continue
        as_written(None, "function", name, thing, None, lines)
        fields = str(NumpyDocstring("\n".join(lines), Config(napoleon_use_ivar=True)))
        parameters = inspect.signature(thing).parameters
        for parameter, kind in re.findall(r"^:type (.*?): (.*)$", fields, re.MULTILINE):
            default = parameters[parameter].default
            assert default in (None, inspect.Parameter.empty) or repr(default) in kind, (name, parameter)
            seen += 1
        described = re.findall(r"^:param (.*?):", fields, re.MULTILINE)
        assert set(described) <= set(parameters), name
        assert len(described) == fields.count("\n:type "), name
        attributes = re.findall(r"^:ivar (.*?):", fields, re.MULTILINE)
        assert all(each.isidentifier() for some in attributes for each in some.split(", ")), name
    assert seen > 50
    nothing: list[str] = []
    as_written(None, "data", "without.a.docstring", 1, None, nothing)
    assert nothing == []


def test_an_example_that_prints_something_else_is_noticed() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        ran("wrong", ">>> 1 + 1\n3\n", {}, ADDRESS)
