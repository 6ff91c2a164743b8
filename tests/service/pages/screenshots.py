"""Pictures of every state of the page, and of the administration.

`python -m tests.service.pages.screenshots FOLDER` writes them all; with `--figures docs/figures`, also those
in the documentation.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import chain
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.service.pages import administering
from tests.service.pages.chromium import FLAGS, chromium
from tests.service.pages.conftest import database_in, served
from tests.service.pages.visiting import Visitor, every_state

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
# What the documentation shows: the picture, how much of it in pixels from the top, and its name there.
FIGURES = {
    "watch-locked-desktop-light": (1165, "page_watch"),
    "rhythm-desktop-light": (900, "page_rhythm"),
    "admin-errors-desktop-light": (1250, "admin_errors"),
}


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
                    office = administering.Office(service, "shop")
                    administering.make_busy(office)
                    administration = administering.every_state(visitor.page, office)
                    named = (f"admin-{state}" for state in administration)
                    for state in chain(every_state(visitor, service), named):
                        path = folder / f"{state}-{size}-{scheme}.png"
                        visitor.page.screenshot(path=path, full_page=True)
                        print(path, flush=True)
                    context.close()
        browser.close()


def figures(folder: Path, out: Path) -> None:
    """Cut the pictures for the documentation."""
    for picture, (height, name) in FIGURES.items():
        cut(folder / f"{picture}.png", height, out / f"{name}.png")


def cut(picture: Path, height: int, figure: Path) -> None:
    """Keep the upper part of a picture, and reduce its colours to those needed."""
    with Image.open(picture) as whole:
        part = whole.convert("RGB").crop((0, 0, whole.width, min(height, whole.height)))
    part.quantize(200, dither=Image.Dither.NONE).save(figure, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    main(options.folder)
    if options.figures is not None:
        figures(options.folder, options.figures)
