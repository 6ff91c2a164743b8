"""The cache of compiled functions on disk, which never runs code that is damaged or not the user's own.

What is read from the cache is executed, so the cache is in a folder that no other user can write to, or there
is none. Numba's own files fail in two ways: a damaged one raises an error in every later process, and if two
processes compile at the same time, an entry can get the code of the other. Here an entry is one file whose
name contains the digest of its content; a file that does not match its name is removed, and the function
compiled again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import nrt

PACKAGE = Path(__file__).parent


def keep_on_disk(dispatcher: Any, function: Callable[..., object]) -> None:
    """Let a compiled function load its code from disk and save it there, if there is a private folder."""
    config: Any = numba.config
    given = config.CACHE_DIR
    # For example, the code of keydyn.population.score.kernel may contain that of other files of `population`.
    _, package, *_ = f"{function.__module__}..".split(".")
    folder = _folder(given, package)
    if folder is None:
        return
    try:
        # Numba reads from this setting where to put the files of the function.
        config.CACHE_DIR = str(folder)
        dispatcher._cache = _Cache(function)
    except (OSError, RuntimeError):
        return
    finally:
        config.CACHE_DIR = given


class _Cache(FunctionCache):
    """A cache that may fail at any time, at no other cost than the time to compile again."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            _add_runtime()
            return self._load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            # A full disk, or a folder that has become read-only.
            return


@cache
def _add_runtime() -> None:
    """Let loaded code find the functions of Numba's runtime that allocate arrays.

    Otherwise Numba, before loading anything, would import the whole compiler and SciPy, and compile a part of
    the runtime that compiled code already contains: half a second and 50 MB for every process.
    """
    runtime: Any = nrt
    for name, address in runtime._nrt.c_helpers.items():
        runtime.ll.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Files(IndexDataCacheFile):
    """Cache files, one per entry, named NAME.KEY.DIGEST.nbc and written in one step."""

    def load(self, key: Any) -> Any:
        for path in sorted(Path(self._cache_path).glob(f"{self._entry(key)}.*.nbc")):
            if hashlib.sha256(path.read_bytes()).hexdigest() == path.name.split(".")[-2]:
                return self._load_data(path.name)
            path.unlink(missing_ok=True)
        return None

    def save(self, key: Any, data: Any) -> None:
        content = self._dump(data)
        name = f"{self._entry(key)}.{hashlib.sha256(content).hexdigest()}.nbc"
        with self._open_for_write(self._data_path(name)) as file:
            file.write(content)

    def _entry(self, key: Any) -> str:
        of_key = hashlib.sha256(repr((self._version, self._source_stamp, key)).encode()).hexdigest()
        return f"{self._index_name.removesuffix('.nbi')}.{of_key[:16]}"


@cache
def _folder(given: str, package: str) -> Path | None:
    """Find or make a private folder for the compiled functions of a package; None if there is none.

    It is where the user says, in the package's folder, or among the user's caches. Its name depends on the
    state of the sources: to see whether code is outdated, Numba looks only at the file of the function, not
    at those of the functions that it calls, which are in the same package or in `model`.
    """
    paths = {path for name in ("model", package) for path in (PACKAGE / name).rglob("*.py")}
    sources = [PACKAGE / "arrays.py", Path(__file__), *sorted(paths)]
    stamps = [(path.name, path.stat().st_mtime_ns) for path in sources]
    name = f"compiled-{package}-{hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]}"
    for parent in [Path(given)] if given else [PACKAGE / "__pycache__", user_caches() / "keydyn"]:
        folder = parent / name
        try:
            is_new = not folder.exists()
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if not is_private(folder) or not os.access(folder, os.W_OK | os.X_OK):
                continue
        except OSError:
            continue
        for outdated in parent.glob(f"compiled-{package}-*") if is_new and not given else ():
            if outdated != folder:
                shutil.rmtree(outdated, ignore_errors=True)
        return folder
    return None


def user_caches() -> Path:
    """The folder for caches of the user, by the conventions of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def is_private(folder: Path) -> bool:
    """Whether a folder is this user's own, and no other user can write to it or replace it."""
    if not hasattr(os, "getuid"):
        return True
    own, parent = folder.lstat(), folder.parent.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid() or own.st_mode & others:
        return False
    # In a sticky folder, such as /tmp, users cannot move files of others.
    safe = not parent.st_mode & others or parent.st_mode & stat.S_ISVTX
    return bool(safe) and parent.st_uid in (0, os.getuid())
