"""The commands of the start and how-to pages run, page by page and in order, and print what the pages show.

In a block marked `sh`, every line that begins with `keydyn` runs. It ends with exit code 0, or with the one
that the comment on its line names. A block marked `console` shows commands after `$`, and lines that they
print, whatever their exit code; numbers may differ. Python blocks run in between: they write what commands
read.

Pages that talk to the service run in `tests/service/test_served_pages.py`.
"""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from tests.documents import DOCS, needs_service

PAGES = [DOCS / "start.md", *sorted((DOCS / "start").glob("*.md")), *sorted((DOCS / "how-to").glob("*.md"))]
# They open a browser, start a server, ask another machine, or take long and have tests of their own.
NOT_RUN = (
    "keydyn serve",
    "keydyn record",
    "keydyn demo",
    "keydyn data fetch",
    "keydyn study",
    "keydyn population fit",
)
BLOCK = re.compile(r"^```(python|sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# What tables are drawn with, and runs of spaces.
BLANK = re.compile(r"[\s\u2500-\u257f]+")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The language and the code of each block, in order."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands_of(code: str) -> list[str]:
    """The commands of a block that are keydyn's and run here; lines that end in a backslash continue."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("keydyn ") and not line.startswith(NOT_RUN)]


def shown_in(code: str) -> list[tuple[str, list[str]]]:
    """Each command of a block marked `console`, and the lines that are shown below it."""
    shown: list[tuple[str, list[str]]] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            shown.append((line[2:], []))
        elif line.strip():
            shown[-1][1].append(line)
    return [(command, lines) for command, lines in shown if commands_of(command)]


def run(command: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    _, *words = shlex.split(command, comments=True)
    given = None
    if "<" in words:
        given = Path(words[words.index("<") + 1]).read_bytes()
        words = words[: words.index("<")]
    done = CliRunner().invoke(app, words, input=given, env={"COLUMNS": "200"})
    return done.exit_code, done.output


def plain(text: str) -> str:
    """What is compared: words, in a single line, without numbers and tables' frames."""
    return BLANK.sub(" ", NUMBER.sub("0", text)).strip()


def has_commands(page: Path) -> bool:
    """Whether a command of the page runs here."""
    by_kind = {"sh": commands_of, "console": shown_in}
    return any(by_kind[kind](code) for kind, code in blocks_of(page) if kind in by_kind)


RUNNING = [page for page in PAGES if has_commands(page) and not needs_service(page)]


def test_most_pages_have_commands_that_run() -> None:
    assert len(RUNNING) > len(PAGES) / 3


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(DOCS)))
@pytest.mark.usefixtures("sketched", "own_registries")
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    namespace: dict[str, object] = {"__name__": "__documentation__"}
    for kind, code in blocks_of(page):
        if kind == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(code, str(page), "exec"), namespace)
        elif kind == "sh":
            for command in commands_of(code):
                expected = EXIT_CODE.search(command)
                exit_code, output = run(command)
                assert exit_code == (int(expected[1]) if expected else 0), f"{command}\n{output}"
        else:
            for command, lines in shown_in(code):
                _, output = run(command)
                for line in lines:
                    for part in line.split("…"):
                        assert plain(part) in plain(output), f"{command}\n{output}"
