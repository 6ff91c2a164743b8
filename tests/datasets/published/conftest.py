"""A dataset small enough to be served and fetched in a test, and a cache of its own for every test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keydyn.datasets.published import catalogue, fetching
from tests.datasets.published.server import FileServer, running

KEYSTROKES = b"user,session,keyname,timepress,timerelease\n" + b"".join(
    f"{user},{session},{key},{100 * i},{100 * i + 60 + user}\n".encode()
    for user in range(2)
    for session in range(3)
    for i, key in enumerate("fable")
)
VECTORS = b"user,session,du_a.mean\n" + b"".join(
    f"{user},{session},{60 + user}\n".encode() for user in range(2) for session in range(3)
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(fetching, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def small_fable(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Replace the catalogue's fable by a small one; its files, under the names they have at their source."""
    entry = catalogue.CATALOGUE["fable"]
    assert entry.vectors is not None
    small = replace(
        entry, keystrokes=_small(entry.keystrokes, KEYSTROKES), vectors=_small(entry.vectors, VECTORS)
    )
    monkeypatch.setitem(catalogue.CATALOGUE, "fable", small)
    return {"fixed_text.csv": KEYSTROKES, "fixed_text_features.csv": VECTORS}


@pytest.fixture
def server(small_fable: dict[str, bytes], cache: Path) -> Iterator[FileServer]:
    """A server of the small fable."""
    with running(small_fable) as server:
        yield server


def _small(file: catalogue.File, contents: bytes) -> catalogue.File:
    return replace(file, sha256=hashlib.sha256(contents).hexdigest(), size=len(contents))
