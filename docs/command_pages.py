"""A page for every command, from the help that it shows itself; written when the documentation is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import written_pages

from keydyn.cli import app

FOLDER = Path(__file__).parent / "commands"
EXAMPLE = re.compile(r"^`(keydyn .*)`$", re.MULTILINE)
INDEX = """# Commands

Each command shows the same with `--help`. `--quiet` leaves out all but warnings and errors, and `--json`
prints results for machines. Exit codes: 0 done or accepted, 1 rejected, 2 wrong usage, 3 not enough evidence,
4 input or files that cannot be used, 70 internal error, 130 interrupted.
"""


def write_pages(folder: Path = FOLDER) -> list[Path]:
    """Write the pages and their index."""
    root = typer.main.get_command(app)
    commands = list(_commands(root, "keydyn"))
    rows = [f"| {{doc}}`{_file(name)}` | {_first_line(command)} |" for name, command in commands]
    toctree = ["```{toctree}", ":hidden:", "", *(_file(name) for name, _ in commands), "```"]
    pages = {"index": "\n".join([INDEX, "| | |", "| --- | --- |", *rows, "", *toctree, ""])}
    pages |= {_file(name): _page(name, command) for name, command in commands}
    return written_pages.write(folder, pages)


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands that do something, by their whole names."""
    inside = getattr(command, "commands", None)
    if not inside:
        yield name, command
        return
    for each, of_group in inside.items():
        if not of_group.hidden:
            yield from _commands(of_group, f"{name} {each}")


def _file(name: str) -> str:
    return name.replace(" ", "-")


def _first_line(command: Any) -> str:
    return str(command.help).partition("\n")[0]


def _page(name: str, command: Any) -> str:
    text, _, _ = str(command.help).partition("\nExample")
    examples = EXAMPLE.findall(command.help) + re.findall(r"Example: `(keydyn .*?)`", command.help)
    parts = [f"# {name}\n", text.strip() + "\n"]
    if examples:
        parts += ["## Examples\n", "```sh", *examples, "```\n"]
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    if arguments:
        parts += ["## Arguments\n", "| | |", "| --- | --- |", *map(_row, arguments), ""]
    options = [param for param in shown if param.param_type_name == "option"]
    for panel in dict.fromkeys(param.rich_help_panel for param in options):
        parts += [f"## {panel or 'Options'}\n", "| | |", "| --- | --- |"]
        parts += [*(_row(param) for param in options if param.rich_help_panel == panel), ""]
    return "\n".join(parts)


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        names = f"`{param.metavar or param.name.upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    notes = []
    if param.required and param.param_type_name == "option":
        notes.append("Required.")
    elif param.default not in (None, "", False, ()) and not callable(param.default):
        notes.append(f"Default: `{param.default}`.")
    return f"| {names} | {' '.join([_escaped(param.help or ''), *notes])} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
