"""Every link in README and the documentation leads somewhere, and the map leads to every page."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.documents import DOCS, GENERATED, PAGES, ROOT

ELSEWHERE = re.compile(r"[a-z]+:", re.IGNORECASE)
ROLE = re.compile(r"{doc}`(?:[^`<]*<)?([^`>]+)>?`")
# A file of the repository in code: `tests/model/test_exactness.py::test_name`.
NAMED_FILE = re.compile(r"`((?:tests|src|docs|benchmarks|keydyn)/[\w./-]*)(?:::(\w+))?`")
MAP = DOCS / "index.md"
FIRST_QUESTIONS = {
    "How do I try it on myself?": "start/own-typing.md",
    "Is it good enough for login?": "how-to/is-it-good-enough-for-login.md",
    "How do I add my data?": "start/recording.md",
    "Which Python do I need, and on which system?": "start/install.md#what-you-need",
    "Does it store what I type?": "privacy.md",
    "Can it run offline?": "start/install.md#does-it-work-offline",
    "How much typing does it need?": "how-to/is-it-good-enough-for-login.md#how-much-must-people-type",
    "Can I use it for something other than keys?": "how-to/fit-other-events.md",
    "How do I deploy it?": "deployment.md",
    "How do I cite it?": "#citing-keydyn",
}
# Built by make docs.
MADE = {"docs/_build/html"}
NAMING = [page for page in PAGES if page.name != "CHANGELOG.md" and "`" in page.read_text(encoding="utf-8")]
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


def is_generated(target: Path) -> bool:
    return DOCS in target.parents and target.relative_to(DOCS).parts[0] in GENERATED


@cache
def links_of(page: Path) -> list[tuple[str, Path, str]]:
    """Each link of a page to a file of ours: as it is written, the file, and what stands behind #."""
    found = []
    for token in inside(parsed(page)):
        link = str(token.attrGet("href") or token.attrGet("src") or "")
        if link and not ELSEWHERE.match(link):
            name, _, anchor = link.partition("#")
            found.append((link, (page.parent / name).resolve() if name else page, anchor))
    text = "".join(token.content for token in inside(parsed(page)) if token.type == "inline")
    for name in ROLE.findall(text):
        target = (DOCS / name[1:] if name.startswith("/") else page.parent / name).resolve()
        found.append((name, target.with_name(f"{target.name}.md"), ""))
    return [link for link in found if not is_generated(link[1])]


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    return [
        link
        for link, target, anchor in links_of(page)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]


def within(clicks: int, start: Path) -> set[Path]:
    """The pages that a reader reaches from a page with this many clicks."""
    reached = {start}
    for _ in range(clicks):
        reached |= {target for page in reached for _, target, _ in links_of(page) if target.suffix == ".md"}
    return reached


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_link_is_broken(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", NAMING, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    for name, test in NAMED_FILE.findall(page.read_text(encoding="utf-8")):
        file = (ROOT / "src" if name.startswith("keydyn/") else ROOT) / name
        assert file.exists() or name in MADE, name
        assert not test or f"def {test}(" in file.read_text(encoding="utf-8"), f"{name}::{test}"


def test_files_that_the_architecture_names_exist() -> None:
    """Relative to src/keydyn, or to the folder that a table's heading names."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|(?<=/)[a-z_]+)?)`", text)
    paths = {name for name in named if "/" in name or name.endswith(".py")}
    assert len(paths) > 50
    places = [ROOT / "src" / "keydyn", ROOT / "src" / "keydyn" / "model" / "engine", ROOT]
    assert not {name for name in paths if not any((place / name).exists() for place in places)}


def test_every_decision_is_listed_once_by_its_title() -> None:
    index = DOCS / "decisions" / "index.md"
    links = Counter(target for _, target, _ in links_of(index))
    for page in sorted(index.parent.glob("0*.md")):
        assert links[page] == 1, page.name


def test_the_map_leads_to_every_page_with_two_clicks() -> None:
    """A decision, a result or a part of the reference through the index of its kind; the rest directly."""
    pages = {page for page in PAGES if page.is_relative_to(DOCS)}
    by_index = {page for page in pages if page.parent.name in ("decisions", "reference", "results")}
    assert pages - by_index <= within(1, MAP)
    assert pages <= within(2, MAP)


def test_the_sidebar_can_be_read_at_a_glance() -> None:
    """What is listed at its top level; the other pages are below these, and on the map."""
    trees = re.findall(r"```{toctree}\n(?::.*\n)*\n((?:.+\n)+?)```", MAP.read_text(encoding="utf-8"))
    assert len(trees) == 8
    assert sum(len(tree.splitlines()) for tree in trees) <= 28


def test_no_two_pages_have_the_same_title() -> None:
    """A reader who searches for a title, or looks for it in the sidebar, finds one page."""
    titles = Counter(parsed(page)[1].content for page in PAGES if page.is_relative_to(DOCS))
    assert [title for title, count in titles.items() if count > 1] == []


@pytest.mark.parametrize(("question", "where"), FIRST_QUESTIONS.items())
def test_newcomers_find_an_answer_with_two_clicks(question: str, where: str) -> None:
    """The map is linked in README, and the answer in the map's paragraph that asks the question."""
    assert MAP in within(1, ROOT / "README.md")
    asked = MAP.read_text(encoding="utf-8").partition(f"**{question}**")[2].partition("\n- **")[0]
    assert f"]({where})" in asked


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Title, of `code`\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    page = tmp_path / "page.md"
    right = "[a](other.md#title-of-code) [b](other.md#twice-1) [c](https://example.org/x) [d](other.md)"
    page.write_text(
        f"{right}\n\n[e](missing.md) ![f](missing.png) [g](other.md#no-such-heading)", encoding="utf-8"
    )
    assert broken(page) == ["missing.md", "missing.png", "other.md#no-such-heading"]
