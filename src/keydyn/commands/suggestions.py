"""What readers suggest, in terms of options: `sort=True` becomes `--sort`."""

from __future__ import annotations

import ast
import csv
import io
import re
import shlex
from typing import Any

# The arguments of `load_recordings` that are options of the same name.
OPTIONS = ("columns", "unit", "user", "session", "separator", "decimal", "encoding", "header", "sort")


def as_options(message: str) -> str:
    """A message whose suggestions, Python arguments between backticks, are given as options instead."""
    return re.sub(r"`([^`]+)`", lambda match: f"`{_option_text(match[1])}`", message)


def _option_text(code: str) -> str:
    if code in OPTIONS:
        return f"--{code}"
    try:
        call = ast.parse(f"f({code})", mode="eval").body
        arguments = {word.arg: ast.literal_eval(word.value) for word in call.keywords}  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, AttributeError):
        return code
    if not arguments or not all(name in OPTIONS for name in arguments):
        return code
    return " ".join(_option(str(name), value) for name, value in arguments.items())


def _option(name: str, value: Any) -> str:
    if value is True:
        return f"--{name}"
    if isinstance(value, dict):
        value = _joined([f"{ours}={theirs}" for ours, theirs in value.items()])
    elif isinstance(value, list):
        value = _joined(value)
    text = {"\t": r"\t"}.get(str(value), str(value))
    return f"--{name} {shlex.quote(text)}"


def _joined(names: list[str]) -> str:
    """As `--columns` and `--header` take them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
