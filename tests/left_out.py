"""Tests that need a program which is not installed are left out, and a line at the end says so."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

import pytest

SUFFIX = " is not installed"


def leave_out(program: str) -> NoReturn:
    """Skip the test that asks for it, because this program is not there."""
    pytest.skip(program + SUFFIX)


def left_out(reasons: list[str]) -> str:
    """One line about the tests that were skipped for these reasons; empty if all programs were there."""
    missing = Counter(
        reason.removeprefix("Skipped: ").removesuffix(SUFFIX) for reason in reasons if reason.endswith(SUFFIX)
    )
    counts = [
        f"{count} {'test that needs' if count == 1 else 'tests that need'} {program}"
        for program, count in sorted(missing.items())
    ]
    return f"left out: {', '.join(counts)}; `make system-packages` installs what they need" if counts else ""
