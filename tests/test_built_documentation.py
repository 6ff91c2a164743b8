"""The documentation as a reader opens it: built without a warning, offline, on a phone, and searched."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.documents import DOCS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"(https?:)?//", re.IGNORECASE)
PHONE = 390


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(DOCS),
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def pages(built: Path) -> list[Path]:
    return [page for page in sorted(built.rglob("*.html")) if "_static" not in page.parts]


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    assert pages(built)
    assert [page.name for page in pages(built) if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_no_page_is_wider_than_a_phone(built: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": PHONE, "height": 844}, offline=True)
    page, wide = context.new_page(), {}
    for path in pages(built):
        page.goto(path.as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE:
            wide[str(path.relative_to(built))] = width
    context.close()
    assert wide == {}


def test_search_finds_pages_offline(built: Path, browser: Browser) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(f"{(built / 'search.html').as_uri()}?q=calibration")
    page.wait_for_selector("#search-results li a")
    found = [link.get_attribute("href") for link in page.query_selector_all("#search-results li a")]
    # The page is opened from a file, from which a browser fetches nothing.
    page.wait_for_selector("#search-results li p.context")
    excerpt = page.inner_text("#search-results li p.context")
    context.close()
    assert "calibration" in excerpt.lower()
    assert any("guide/decisions" in str(link) for link in found)
    # Design decisions are left out.
    assert not any("decisions/00" in str(link) for link in found)
