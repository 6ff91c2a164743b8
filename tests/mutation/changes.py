"""Small faults that a programmer could make, as changes to the text of a source file."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
    "argmin": "argmax",
    "argmax": "argmin",
}
# The functions that make a function compiled; `within` is another as a decorator alone.
COMPILERS = {"compiled", "inner", "merged", "without_counting"}


@dataclass(frozen=True)
class Change:
    """One fault: what stands at a place of a file, and what would stand there instead."""

    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    compiled: bool
    # The first line of the innermost function around it, decorators included; None outside of functions.
    function: int | None

    @property
    def name(self) -> str:
        """By this it is found again, as long as its file is the same."""
        return f"{self.file}:{self.line}:{self.column} {self.kind} {self.after}"

    def applied(self, source: bytes) -> bytes:
        """The file with the fault in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def changes_in(file: str, source: bytes) -> list[Change]:
    """All faults that are tried in a file, in the order of their places."""
    tree = ast.parse(source)
    compiled = _compiled_functions(tree)
    functions = _functions(tree)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, top, is_condition in _code(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        # What a module computes when it is imported becomes part of its compiled functions.
        within = bool(compiled) and (top is None or top in compiled)
        negated = [("condition", f"(not {ast.unparse(node)})")] if is_condition else []
        for kind, after in [*_faults(node), *negated]:
            place = (file, node.lineno, node.col_offset)
            inside = max((first for first, last in functions if first <= node.lineno <= last), default=None)
            found.append(Change(*place, kind, before, after, start, end, within, inside))
    return found


def _functions(tree: ast.Module) -> list[tuple[int, int]]:
    """The first and last lines of all functions."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or 0) for node in found
    ]


def _faults(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The kind of each fault that can be made at a node, and the text that replaces it."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for other in COMPARISONS[type(operator)]:
                    changed = copy.deepcopy(node)
                    changed.ops[place] = other()
                    yield "comparison", _text(changed)
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC:
            changed = copy.deepcopy(node)
            changed.op = ARITHMETIC[type(operator)]()
            yield "arithmetic", _text(changed)
        case ast.AugAssign(op=operator):
            if type(operator) in ARITHMETIC:
                augmented = copy.deepcopy(node)
                augmented.op = ARITHMETIC[type(operator)]()
                yield "arithmetic", ast.unparse(augmented)
            yield "deleted statement", "pass"
        case ast.BoolOp(op=operator):
            both = copy.deepcopy(node)
            both.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "boolean", _text(both)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "sign or negation", _text(operand)
        case ast.Constant(value=bool(value)):
            yield "constant", str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", str(value + 1)
            if value > 0:
                yield "constant", str(value - 1)
        case ast.Constant(value=float(value)):
            yield "constant", repr(2 * value if value else 1.0)
        case ast.Call():
            yield from _faults_of_a_call(node)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield "deleted statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "deleted statement", "pass"


def _faults_of_a_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        other = copy.deepcopy(node)
        if isinstance(other.func, ast.Attribute):
            other.func.attr = NAMES[name]
        else:
            other.func = ast.Name(NAMES[name])
        yield "another function", _text(other)
    if len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args):
        for place in range(len(node.args) - 1):
            swapped = copy.deepcopy(node)
            swapped.args[place : place + 2] = swapped.args[place : place + 2][::-1]
            yield "swapped arguments", _text(swapped)
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            without = copy.deepcopy(node)
            del without.keywords[place]
            yield "dropped argument", _text(without)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _code(tree: ast.Module) -> Iterator[tuple[Any, str | None, bool]]:
    """Every node that does something, the function or class of the module that it is in, and whether it is a
    condition that is no comparison (those have faults of their own).
    """
    for statement in tree.body:
        top = statement.name if isinstance(statement, ast.FunctionDef | ast.ClassDef) else None
        conditions = {
            id(node.test)
            for node in ast.walk(statement)
            if isinstance(node, ast.If | ast.While | ast.IfExp)
            and isinstance(node.test, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        }
        yield from ((node, top, id(node) in conditions) for node in _inside(statement))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, without types, texts, imports, and the words of an error."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
        return
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    if hasattr(node, "lineno"):
        yield node
    if isinstance(node, ast.Raise):
        return
    skipped = {"annotation", "returns", "decorator_list"}
    if isinstance(node, ast.ClassDef):
        skipped |= {"bases", "keywords"}
    for field, value in ast.iter_fields(node):
        if field in skipped:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _inside(part)


def _compiled_functions(tree: ast.Module) -> set[str]:
    """The functions of a module that are compiled, by decorator or by a call that names them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            named = {getattr(part, "id", "") for one in node.decorator_list for part in ast.walk(one)}
            if named & {*COMPILERS, "within"}:
                found.add(node.name)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in COMPILERS:
            found |= {argument.id for argument in node.args if isinstance(argument, ast.Name)}
    return found
