"""Writing the pages that are made while the documentation is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, pages: Mapping[str, str]) -> list[Path]:
    """Write pages by name and remove others; files that would not change are left alone."""
    folder.mkdir(exist_ok=True)
    written = [folder / f"{name}.md" for name in pages]
    for path, text in zip(written, pages.values(), strict=True):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for left in set(folder.glob("*.md")) - set(written):
        left.unlink()
    return written
