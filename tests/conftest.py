"""Where the real recordings are, a browser, what need not be drawn, and which tests were left out."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from keydyn.arrays import Direct

# Its profiles must be known before the options are read.
from tests.examples import THOROUGH
from tests.left_out import leave_out, left_out
from tests.service.pages.chromium import FLAGS, chromium
from tests.summary import keep
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Read before any test: none sees what the user has set for keydyn.
NAMED = os.environ.get("KEYDYN_DATA")


def data_folder() -> Path | None:
    """`KEYDYN_DATA`, or shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (NAMED, beside):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


@pytest.fixture(scope="session", autouse=True)
def nothing_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds the settings of the user who runs it, what that user has downloaded, or a proxy."""
    from keydyn.datasets.published import fetching

    empty = tmp_path_factory.getbasetemp() / "no downloads"
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            # Servers of tests are on this machine, where no proxy finds them.
            if name.startswith("KEYDYN_") or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setattr(fetching, "cache_folder", lambda: empty)
        yield


@pytest.fixture(scope="session", autouse=True)
def types_checked() -> Iterator[None]:
    """Compiled functions that are called without a look at their arguments' types check these in tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Direct, "checks", True)
        yield


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; tests that ask for it are left out where there is none."""
    folder = data_folder()
    if folder is None:
        leave_out("real recordings", "set KEYDYN_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window: one for all tests, because a process can start Playwright only once."""
    program = chromium()
    if program is None:
        leave_out("Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, chromium_sandbox=False, args=FLAGS, timeout=1000 * PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def no_loop_of_the_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hide the loop that Playwright keeps running in this thread from tests that start one of their own."""
    loop = asyncio._get_running_loop()
    if loop is None or "browser" in request.fixturenames:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.fixture
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family or a detector that a test registers is gone after it."""
    from keydyn.detectors import detector
    from keydyn.model.families import family

    # A module that registers its detectors while the copy is in place would not do so again.
    detector.detector_names()
    for module, name in ((family, "_FAMILIES"), (detector, "_DETECTORS")):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures empty, for tests of studies that look at something else: drawing takes most of the time.

    What fixtures of a wider scope have drawn is not touched: it is made before.
    """
    leave_empty(monkeypatch)


@pytest.fixture(scope="module")
def sketched_set_up() -> Iterator[None]:
    """In `make test`, leave figures empty that the fixtures of a file draw; `make test-all` draws them."""
    with pytest.MonkeyPatch.context() as patch:
        if settings().max_examples < THOROUGH:
            leave_empty(patch)
        yield


def leave_empty(patch: pytest.MonkeyPatch) -> None:
    """Figures are saved, with nothing in them."""
    from matplotlib.figure import Figure

    save = Figure.savefig

    def sketch(figure: Figure, path: Path, **options: Any) -> None:
        save(Figure(figsize=(0.5, 0.5)), path, **options)

    patch.setattr(Figure, "savefig", sketch)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--order-seed N` runs the tests in another order, to see whether any depends on those before it."""
    parser.addoption("--order-seed", help="shuffle the files of tests, and the tests of each, by this seed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All that is imported and collected stays to the end: nobody looks through it for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files stay together, because their tests share what is expensive to set up."""
    if (seed := config.getoption("--order-seed")) is not None:
        shuffled = random.Random(seed)
        places = {path: shuffled.random() for path in dict.fromkeys(item.path for item in items)}
        items.sort(key=lambda item: (places[item.path], shuffled.random()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line per missing thing how many tests were left out because of it."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = left_out([report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)])
    keep(terminalreporter.stats, lines)
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
