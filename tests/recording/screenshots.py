"""Pictures of every state of the page of keydyn record.

`python -m tests.recording.screenshots FOLDER` writes them all; with `--figures docs/figures`, also the one in
the documentation.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.recording.course import every_state
from tests.service.pages.chromium import FLAGS, chromium
from tests.service.pages.screenshots import SIZES, cut


def main(folder: Path) -> None:
    """Write one picture per state, width and scheme of colours."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), chromium_sandbox=False, args=FLAGS)
        with tempfile.TemporaryDirectory() as temporary:
            page = browser.new_context(reduced_motion="reduce").new_page()
            for state in every_state(page, Path(temporary)):
                for size, (width, height) in SIZES.items():
                    page.set_viewport_size({"width": width, "height": height})
                    for scheme in ("light", "dark"):
                        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                        page.screenshot(path=folder / f"record-{state}-{size}-{scheme}.png", full_page=True)
                print(state, flush=True)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    main(options.folder)
    if options.figures is not None:
        cut(options.folder / "record-copy-desktop-light.png", 640, options.figures / "record.png")
