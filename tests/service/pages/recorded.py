"""Reading what a page has recorded."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page


def sample_of(page: Page) -> dict[str, Any]:
    """The body that the page would send, unchanged."""
    found: dict[str, Any] = page.evaluate("JSON.parse(JSON.stringify(recorder.sample()))")
    return found


def quality_of(page: Page) -> dict[str, Any]:
    """The quality that the page would send with it."""
    found: dict[str, Any] = page.evaluate("recorder.sample().quality")
    return found


def names_of(page: Page) -> list[str]:
    """The names of the keys."""
    return [row["keyname"] for row in sample_of(page)["keystrokes"]]


def times_of(page: Page) -> list[tuple[float, float | None]]:
    """The times of presses and releases."""
    return [(row["timepress"], row["timerelease"]) for row in sample_of(page)["keystrokes"]]


# Chromium moves each time to the multiple of 0.1 ms before it or after it, at random. A difference of two
# times is off by no more than this, milliseconds.
PRECISION = 0.2
