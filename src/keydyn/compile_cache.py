"""Compiled functions on disk: where they are kept, and that nothing is run that is damaged or not ours.

What is read from the cache is executed, so it stands in a folder that no other user can write to, or nowhere.
Numba's own files break in two ways: a damaged one raises an error in every later process, and two processes
that compile at the same time can give an entry the other's code. Here an entry is one file whose name has the
digest of its content; one that does not fit its name is removed, and the function compiled again.
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
    """Let a compiled function look for its code on disk, and leave it there; in memory alone if it cannot."""
    config: Any = numba.config
    given = config.CACHE_DIR
    # keydyn.population.score.kernel: its code may contain that of other files of the population.
    _, package, *_ = f"{function.__module__}..".split(".")
    folder = _folder(given, package)
    if folder is None:
        return
    try:
        # Numba asks this setting where to put the files of the function that it is given.
        config.CACHE_DIR = str(folder)
        dispatcher._cache = _Cache(function)
    except (OSError, RuntimeError):
        return
    finally:
        config.CACHE_DIR = given


class _Cache(FunctionCache):
    """A cache that may fail at any time, with no other consequence than the time it takes."""

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
    """Let code that is loaded find the functions of Numba's runtime, which allocate arrays.

    Before it loads anything, Numba itself would import all of the compiler, and SciPy, and compile a part of
    the runtime that compiled code has in it already: half a second and 50 MB for every process.
    """
    runtime: Any = nrt
    for name, address in runtime._nrt.c_helpers.items():
        runtime.ll.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Files(IndexDataCacheFile):
    """One file per entry, NAME.KEY.DIGEST.nbc, written at once."""

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
    """A private folder for the compiled functions of a package and the present state of the sources: where
    the user says, or beside the package, or among the user's caches. None if there is none.

    Numba looks only at the file of a function to see whether its code still holds, not at those of the
    functions that it calls. These are in the same package or in `model`.
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
    """Where programs keep what they can make again, by the rules of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def is_private(folder: Path) -> bool:
    """Whether only this user, its owner, can write in a folder, and no other user can replace it."""
    if not hasattr(os, "getuid"):
        return True
    own, parent = folder.lstat(), folder.parent.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid() or own.st_mode & others:
        return False
    # In a sticky folder, such as one for temporary files, no user can move what belongs to another.
    safe = not parent.st_mode & others or parent.st_mode & stat.S_ISVTX
    return bool(safe) and parent.st_uid in (0, os.getuid())
