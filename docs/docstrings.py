"""Docstrings as napoleon reads them, with the type and default of each parameter from the signature."""

from __future__ import annotations

import inspect
import re
from typing import Any

# "name : what it is", and several of them on a line: napoleon would take the text for a type.
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*)$")
NEXT_ENTRY = re.compile(r"; (?=\w+(?:, \w+)* : )")
PARAMETER = re.compile(r"^(\w+(?:, \w+)*)(?: : (.*))?$")
HEADING = re.compile(r"^-{3,}$")
SPECIAL = re.compile(r"(`+[^`]*`+)|(\w_)(?!\w)|([|])")


def as_written(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: a trailing underscore or a bar outside of code and examples is itself."""
    if what == "data" and lines and lines[0] in str(type(obj).__doc__):
        lines.clear()  # a constant without a docstring shows that of its type
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(": ", "; ")
    written: list[str] = []
    section, example = "", False
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        section = line if HEADING.match(following) else section
        example = line.startswith(">>>") or (example and line.strip() != "")
        if example or section == line or HEADING.match(line):
            written.append(line)
        elif section == "Parameters" and (entry := PARAMETER.match(line)):
            # Of several names, the last has the text, as in a table with joined cells.
            written += [f"{name} : {type_and_default(obj, name)}" for name in entry[1].split(", ")]
            written += [f"    {_escaped(entry[2])}"] if entry[2] else []
        else:
            for part in NEXT_ENTRY.split(line) if ENTRY.match(line) else [line]:
                entry = ENTRY.match(part)
                written += [entry[1], f"    {_escaped(entry[2])}"] if entry else [_escaped(part)]
    lines[:] = written


def type_and_default(obj: Any, name: str) -> str:
    """What the signature says of a parameter; a `KeyError` if it does not have it."""
    parameter = inspect.signature(obj).parameters[name]
    given = parameter.annotation
    kind = given if isinstance(given, str) else getattr(given, "__name__", str(given))
    kind = "any object" if kind == "Any" else f"`{kind.replace(' | None', '').replace(' | ', ' or ')}`"
    words = [kind]
    if parameter.default is None:
        words.append("optional")
    elif parameter.default is not inspect.Parameter.empty:
        words.append(f"default `{parameter.default!r}`")
    return ", ".join(words)


def _escaped(text: str) -> str:
    return SPECIAL.sub(_literal, text)


def _literal(match: re.Match[str]) -> str:
    code, underscore, sign = match.groups()
    if code is not None:
        return str(code)
    return f"{underscore[0]}\\_" if underscore else f"\\{sign}"
