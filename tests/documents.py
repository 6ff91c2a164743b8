"""The pages of the documentation, the code on them, and the programs in docs/ that write some of them."""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Written while the documentation is built, and tested where they are made.
GENERATED = {"_build", "commands", "gallery", "http"}
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in GENERATED),
]
BLOCK = re.compile(r"^```(python|sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code on a page: its language, the line on which the code begins, and the code."""

    kind: str
    line: int
    code: str


@cache
def all_blocks(page: Path) -> list[Block]:
    """The Python, shell and console blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], text.count("\n", 0, match.start(2)) + 1, match[2]) for match in BLOCK.finditer(text)
    ]


def blocks_of(page: Path) -> list[tuple[int, str]]:
    """The line on which each Python block's code begins, and the code."""
    return [(block.line, block.code) for block in all_blocks(page) if block.kind == "python"]


def needs_service(page: Path) -> bool:
    """Whether a block of the page talks to a service."""
    return any("keydyn.client" in code for _, code in blocks_of(page))


def program(name: str) -> ModuleType:
    """A module of docs/, which is not a package."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))
    return importlib.import_module(name)
