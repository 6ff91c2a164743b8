"""Chromium, as the service's pages have it."""

from tests.service.pages.conftest import browser

__all__ = ["browser"]
