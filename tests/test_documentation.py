"""Every Python block in the documentation runs, page by page, top to bottom, warnings as errors.

Pages that talk to the service run in `tests/service/test_served_pages.py`.
"""

import re
import warnings
from pathlib import Path

import matplotlib
import pytest

from keydyn.detectors import detector
from keydyn.model.families import family as emissions

matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Written while the documentation is built, and tested where they are made.
GENERATED = {"_build", "commands", "gallery", "http"}
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in GENERATED),
]
# Guides to pages in a browser, where nothing is programmed.
IN_A_BROWSER = {"admin", "page"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> list[tuple[int, str]]:
    """The line on which each block's code begins, and the code."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in BLOCK.finditer(text)]


def needs_service(page: Path) -> bool:
    """Whether a block of the page talks to a service."""
    return any("keydyn.client" in code for _, code in blocks_of(page))


ALONE = [page for page in PAGES if blocks_of(page) and not needs_service(page)]


def test_the_guide_has_examples() -> None:
    guide = [page for page in PAGES if page.parent.name == "guide"]
    assert guide
    assert {page.stem for page in guide if not blocks_of(page)} <= IN_A_BROWSER


@pytest.mark.parametrize("page", ALONE, ids=lambda p: str(p.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A family or a detector that a page registers is gone after it.
    monkeypatch.setattr(emissions, "_FAMILIES", dict(emissions._FAMILIES))
    monkeypatch.setattr(detector, "_DETECTORS", dict(detector._DETECTORS))
    namespace: dict[str, object] = {"__name__": "__documentation__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line, code in blocks_of(page):
            # Blank lines before the code give errors the page's own line numbers.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
