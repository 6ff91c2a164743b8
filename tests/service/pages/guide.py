"""Blocks of code of the recorder's guide, unchanged."""

from __future__ import annotations

import re

from tests.documents import ROOT

GUIDE = (ROOT / "docs" / "guide" / "recorder.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8421"


def block(language: str, begins: str, address: str = ADDRESS) -> str:
    """The only block that begins with this text, with another address of the service."""
    (found,) = re.findall(rf"^```{language}\n({re.escape(begins)}.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return str(found).replace(ADDRESS, address)
