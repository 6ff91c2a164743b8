"""Accessibility of every state of the page: axe finds nothing, in light and dark, wide and narrow."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.service.pages.visiting import COLOURS, Visitor, every_state
from tests.waiting import PATIENCE

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = [
    pytest.param([("light", WIDE)], id="light-1280"),
    pytest.param([("light", NARROW), ("dark", WIDE)], id="light-390 dark-1280", marks=pytest.mark.slow),
    pytest.param([("dark", NARROW)], id="dark-390", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("looks", LOOKS)
def test_axe_finds_nothing_and_nothing_is_cut_off(browser: Browser, service, looks):
    # The page's own policy does not let a script be injected.
    context = browser.new_context(reduced_motion="reduce", bypass_csp=True)
    context.set_default_timeout(1000 * PATIENCE)
    visitor, axe, seen = Visitor(context.new_page()), Axe(), []
    for state in every_state(visitor, service):
        for scheme, size in looks:
            visitor.page.emulate_media(color_scheme=scheme)
            visitor.page.set_viewport_size(size)
            found = axe.run(visitor.page, options=COLOURS if scheme == "dark" else {})
            assert found.violations_count == 0, f"{state}, {scheme}: {found.generate_report()}"
        for size in (NARROW, WIDE):
            visitor.page.set_viewport_size(size)
            wide = visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{state} is {wide} pixels too wide"
        seen.append(state)
    assert len(seen) > 12
    # The other looks begin anew.
    service.client(service.key("page")).delete("/v1/users/ada")
    context.close()
