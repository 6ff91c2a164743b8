"""Keystrokes that several tests of studies share."""

from __future__ import annotations

import pytest

from keydyn.datasets import make_typists


@pytest.fixture(scope="module")
def keystrokes():
    return make_typists(n_users=2, n_samples=2, text="copied", n_keys=40, random_state=0)
