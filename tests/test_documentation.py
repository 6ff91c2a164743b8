"""Every Python block in the documentation runs, page by page, top to bottom, warnings as errors.

Pages that talk to the service run in `tests/service/test_served_pages.py`, and those whose code writes what
their commands read in `tests/test_howto_commands.py`.
"""

import warnings
from pathlib import Path

import matplotlib
import pytest

from tests.documents import PAGES, ROOT, blocks_of, needs_service
from tests.test_howto_commands import RUNNING

matplotlib.use("Agg")

# Guides to pages in a browser, where nothing is programmed.
IN_A_BROWSER = {"admin", "page"}
ALONE = [page for page in PAGES if blocks_of(page) and not needs_service(page) and page not in RUNNING]


def test_the_guide_has_examples() -> None:
    guide = [page for page in PAGES if page.parent.name == "guide"]
    assert guide
    assert {page.stem for page in guide if not blocks_of(page)} <= IN_A_BROWSER


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("page", ALONE, ids=lambda p: str(p.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__documentation__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line, code in blocks_of(page):
            # Blank lines before the code give errors the page's own line numbers.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
