"""Pictures of every state of the page: python -m tests.service.pages.screenshots FOLDER"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.service.pages.chromium import FLAGS, chromium
from tests.service.pages.conftest import database_in, served
from tests.service.pages.visiting import Visitor, every_state

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


def main(folder: Path) -> None:
    """Write one picture per state, width and scheme of colours."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False, args=FLAGS)
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                place = Path(temporary) / f"{size}-{scheme}"
                place.mkdir()
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
                )
                with served(database_in(place)) as service:
                    visitor = Visitor(context.new_page())
                    for state in every_state(visitor, service):
                        path = folder / f"{state}-{size}-{scheme}.png"
                        visitor.page.screenshot(path=path, full_page=True)
                        print(path, flush=True)
                    context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
