"""Chromium: its path, and options for no screen and no requests beyond this machine."""

from __future__ import annotations

import shutil

# Its own sandbox does not work where it runs as root, as in containers.
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """The path of the program, or None."""
    return shutil.which("chromium") or shutil.which("google-chrome")
