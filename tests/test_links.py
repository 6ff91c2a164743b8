"""Every link in README and the documentation leads to a page, a heading or a file that exists."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.documents import DOCS, GENERATED, PAGES, ROOT

ELSEWHERE = re.compile(r"[a-z]+:", re.IGNORECASE)
ROLE = re.compile(r"{doc}`(?:[^`<]*<)?([^`>]+)>?`")
TARGET = re.compile(r"^\((.+)\)=$", re.MULTILINE)


def inside(tokens: list[Token]) -> list[Token]:
    """All tokens, those inside of others too."""
    return [each for token in tokens for each in (token, *inside(token.children or []))]


@cache
def parsed(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """What may stand behind # in a link to the page, by GitHub's rule, which the documentation follows."""
    found: set[str] = set(TARGET.findall(page.read_text(encoding="utf-8")))
    tokens = parsed(page)
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            text = "".join(each.content for each in token.children or [] if not each.children)
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            repeats = sum(1 for each in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each))
            found.add(f"{slug}-{repeats}" if repeats else slug)
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for token in inside(parsed(page)):
        link = str(token.attrGet("href") or token.attrGet("src") or "")
        if not link or ELSEWHERE.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if DOCS in target.parents and target.relative_to(DOCS).parts[0] in GENERATED:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    text = "".join(token.content for token in inside(parsed(page)) if token.type == "inline")
    for name in ROLE.findall(text):
        target = (DOCS / name[1:] if name.startswith("/") else page.parent / name).resolve()
        if (
            target.relative_to(DOCS).parts[0] not in GENERATED
            and not target.with_name(f"{target.name}.md").exists()
        ):
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_link_is_broken(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Title, of `code`\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    page = tmp_path / "page.md"
    right = "[a](other.md#title-of-code) [b](other.md#twice-1) [c](https://example.org/x) [d](other.md)"
    page.write_text(
        f"{right}\n\n[e](missing.md) ![f](missing.png) [g](other.md#no-such-heading)", encoding="utf-8"
    )
    assert broken(page) == ["missing.md", "missing.png", "other.md#no-such-heading"]
