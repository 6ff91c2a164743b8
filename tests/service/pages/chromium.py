"""Where Chromium is, and how it is started: without a screen, and asking for nothing beyond this machine."""

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
    """The program, None where there is none."""
    return shutil.which("chromium") or shutil.which("google-chrome")
