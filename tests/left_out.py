"""Tests that need what is not there are left out, and a line at the end says so for each missing thing."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

import pytest

NEEDED = "needs "
PACKAGES = "`make system-packages` installs it"


def leave_out(missing: str, remedy: str = PACKAGES) -> NoReturn:
    """Skip the test that asks for it, because this is not there."""
    pytest.skip(f"{NEEDED}{missing}: {remedy}")


def left_out(reasons: list[str]) -> list[str]:
    """A line for each reason for which tests were skipped."""
    lines = []
    for reason, count in sorted(Counter(reason.removeprefix("Skipped: ") for reason in reasons).items()):
        if reason.startswith(NEEDED):
            reason = reason if count == 1 else reason.replace(NEEDED, "need ", 1)
            lines.append(f"left out: {count} {'test that' if count == 1 else 'tests that'} {reason}")
        else:
            lines.append(f"left out: {count} {'test' if count == 1 else 'tests'}: {reason}")
    return lines
