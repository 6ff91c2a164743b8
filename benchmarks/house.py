"""How large the house is: files, lines, names, parameters, and the files that a piece of work passes through.

`make house` counts the working tree; with HOUSE_OPTIONS="--against REVISION", another revision beside it.
Nothing is imported for the counts of the source: they come from its syntax trees.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from against import worktree
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
# What each piece of work is called in the table; house_paths.py does the work.
WORK = {
    "fit": "POHMM.fit",
    "verify": "Verifier.verify",
    "request": "a verification request",
    "study": "keydyn study verification",
}
SMALL_FILE, MANY_FILES = 100, 15
MANY_PARAMETERS, TOO_MANY_PARAMETERS = 6, 12
LABORATORY = ("keydyn", "lab")
PEOPLE = re.compile(r"\b(whoever|somebody|nobody)\b", re.IGNORECASE)


class Source:
    """All Python files of a tree's `src`, parsed."""

    def __init__(self, tree: Path) -> None:
        self.root = tree / "src"
        self.paths = sorted(self.root.rglob("*.py"))
        self.texts = {path: path.read_text(encoding="utf-8") for path in self.paths}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """All nodes of these kinds."""
        return (node for tree in self.trees.values() for node in ast.walk(tree) if isinstance(node, kinds))

    def module(self, path: Path) -> str:
        """The dotted name of a file."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def counts(tree: Path) -> dict[str, int]:
    """All rows that need the source only."""
    source = Source(tree)
    kinds = lines(source)
    laboratory = sum(
        len(text.splitlines())
        for path, text in source.texts.items()
        if path.relative_to(source.root).parts[:2] == LABORATORY
    )
    return {
        **kinds,
        "lines of the core": kinds["lines"] - laboratory,
        "lines of the laboratory": laboratory,
        "modules with exactly one importer": one_importer(source),
        f"files under {SMALL_FILE} lines": sum(
            len(text.splitlines()) < SMALL_FILE for text in source.texts.values()
        ),
        "file names that occur twice": repeated(
            path.name for path in source.paths if not path.name.startswith("__")
        ),
        "public class names that occur twice": repeated(
            node.name  # type: ignore[attr-defined]
            for node in source.nodes(ast.ClassDef)
            if not node.name.startswith("_")  # type: ignore[attr-defined]
        ),
        f"folders with more than {MANY_FILES} files": sum(
            number > MANY_FILES for number in Counter(path.parent for path in source.paths).values()
        ),
        f"functions with more than {MANY_PARAMETERS} parameters": many_parameters(source, MANY_PARAMETERS),
        f"functions with more than {TOO_MANY_PARAMETERS} parameters": many_parameters(
            source, TOO_MANY_PARAMETERS
        ),
        'docstrings that begin with "The same"': sum(
            (ast.get_docstring(node) or "").startswith("The same")  # type: ignore[arg-type]
            for node in source.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ),
        'lines with "so many"': matching(source, re.compile(r"\bso many\b", re.IGNORECASE)),
        "lines with a whoever, somebody or nobody": matching(source, PEOPLE),
    }


def lines(source: Source) -> dict[str, int]:
    """Lines by what they hold. A blank line in a docstring belongs to the docstring."""
    kinds: Counter[str] = Counter()
    for path, text in source.texts.items():
        every = text.splitlines()
        kind = [_kind(line.strip()) for line in every]
        for node in ast.walk(source.trees[path]):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                _mark(kind, node, "imports")
            elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
                ast.get_docstring(node) is not None
            ):
                _mark(kind, node.body[0], "docstrings")
        kinds.update(kind)
    shown = {name: kinds[name] for name in ("code", "imports", "docstrings", "comments", "blank")}
    return {"files": len(source.paths), "lines": sum(shown.values())} | {
        f"lines: {name}": number for name, number in shown.items()
    }


def _kind(line: str) -> str:
    return "comments" if line.startswith("#") else "code" if line else "blank"


def _mark(kind: list[str], node: ast.stmt, name: str) -> None:
    for line in range(node.lineno - 1, node.end_lineno or node.lineno):
        kind[line] = name


def one_importer(source: Source) -> int:
    """Modules, packages aside, that exactly one other module imports, anywhere in its code."""
    modules = {source.module(path): path for path in source.paths}
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for path, tree in source.trees.items():
        importer = source.module(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                within = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [name if name in modules else node.module for name in within]
            else:
                continue
            for name in named:
                if name in importers and name != importer:
                    importers[name].add(importer)
    return sum(len(by) == 1 for name, by in importers.items() if not modules[name].name.startswith("__"))


def many_parameters(source: Source, most: int) -> int:
    """Functions with more parameters than this, without self and cls; *args and **kwargs are one each."""
    total = 0
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        given = node.args  # type: ignore[attr-defined]
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        own = sum(name not in ("self", "cls") for name in names)
        total += own + (given.vararg is not None) + (given.kwarg is not None) > most
    return total


def repeated(names: Iterator[str]) -> int:
    """How many of the names occur more than once."""
    return sum(number > 1 for number in Counter(names).values())


def matching(source: Source, pattern: re.Pattern[str]) -> int:
    """Lines that hold the pattern."""
    return sum(bool(pattern.search(line)) for text in source.texts.values() for line in text.splitlines())


def passed(tree: Path, work: str) -> list[str]:
    """The files of the tree's package that a piece of work passes through."""
    paths = os.pathsep.join([str(tree / "src"), str(tree)])
    done = subprocess.run(
        [sys.executable, str(HERE / "house_paths.py"), work],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{WORK[work]} in {tree}:\n{done.stderr}")
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(tree: Path, work: list[str], listed: bool) -> dict[str, int]:
    """All rows of a tree."""
    rows = counts(tree)
    for name in work:
        found = passed(tree, name)
        rows[f"files that {WORK[name]} passes"] = len(found)
        if listed:
            print(f"{WORK[name]} in {tree}:", *found, sep="\n  ")
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", nargs="?", type=Path, default=HERE.parent, help="by default this one")
    parser.add_argument("--against", metavar="REVISION", help="another revision beside it")
    parser.add_argument("--work", default=",".join(WORK), help=f"of {', '.join(WORK)}; or none")
    parser.add_argument("--list", action="store_true", help="list the files that work passes")
    options = parser.parse_args()
    work = [name for name in options.work.split(",") if name in WORK]
    columns = {}
    if options.against:
        with worktree(options.against) as tree:
            columns[options.against] = measured(tree, work, options.list)
    columns["the working tree"] = measured(options.tree.resolve(), work, options.list)
    table = Table("", *columns, title="The house", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in next(iter(columns.values())):
        table.add_row(name, *(f"{rows[name]:,}" for rows in columns.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
