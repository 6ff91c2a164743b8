"""The code on every page of the documentation runs, page by page, top to bottom and once.

Python blocks run with warnings as errors. In a block marked `sh`, every line that begins with `keydyn` runs:
it ends with exit code 0, or with the one that the comment on its line names. A block marked `console` shows
commands after `$`, and lines that they print, whatever their exit code; numbers may differ.

Pages that talk to the service run in `tests/service/test_served_pages.py`.
"""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import matplotlib
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from tests.documents import PAGES, ROOT, Block, all_blocks, blocks_of, needs_service

matplotlib.use("Agg")

# Guides to pages in a browser, where nothing is programmed.
IN_A_BROWSER = {"admin"}
# They open a browser, start a server, ask another machine, or take long and have tests of their own.
NOT_RUN = (
    "keydyn serve",
    "keydyn record",
    "keydyn demo",
    "keydyn data fetch",
    "keydyn study",
    "keydyn population fit",
    # These run on both databases in tests/service/test_deployment_page.py.
    "keydyn service database",
    'keydyn service keys list --database "$RESTORED"',
)
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# What tables are drawn with, and runs of spaces.
BLANK = re.compile(r"[\s\u2500-\u257f]+")


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
    return any(by_kind[block.kind](block.code) for block in all_blocks(page) if block.kind in by_kind)


RUNNING = [page for page in PAGES if not needs_service(page) and (blocks_of(page) or has_commands(page))]


def test_the_guide_has_examples() -> None:
    guide = [page for page in PAGES if page.parent.name == "guide"]
    assert guide
    assert {page.stem for page in guide if not blocks_of(page)} <= IN_A_BROWSER


def test_pages_that_get_something_done_have_commands_or_code() -> None:
    doing = [page for page in PAGES if page.parent.name in ("start", "how-to")]
    assert doing
    assert all(all_blocks(page) for page in doing)
    assert sum(has_commands(page) for page in RUNNING) >= 8


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if has_commands(page):
        request.getfixturevalue("sketched")
    namespace: dict[str, object] = {"__name__": "__documentation__"}
    for block in all_blocks(page):
        RUNNERS[block.kind](page, block, namespace)


def run_python(page: Path, block: Block, namespace: dict[str, object]) -> None:
    """Run a block; blank lines before the code give errors the page's own line numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)


def run_commands(page: Path, block: Block, namespace: dict[str, object]) -> None:
    """Run the commands of a block marked `sh`, and compare their exit codes."""
    for command in commands_of(block.code):
        expected = EXIT_CODE.search(command)
        exit_code, output = run(command)
        assert exit_code == (int(expected[1]) if expected else 0), f"{command}\n{output}"


def run_console(page: Path, block: Block, namespace: dict[str, object]) -> None:
    """Run the commands of a block marked `console`, and look for the lines that it shows."""
    for command, lines in shown_in(block.code):
        _, output = run(command)
        for line in lines:
            for part in line.split("…"):
                assert plain(part) in plain(output), f"{command}\n{output}"


RUNNERS = {"python": run_python, "sh": run_commands, "console": run_console}
