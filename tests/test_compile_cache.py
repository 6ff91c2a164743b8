"""Compiled functions on disk: damaged files, several processes, folders that are read-only or open."""

import gc
import importlib
import os
import pkgutil
import stat
import subprocess
import sys

import numba
import pytest
from numba.core import event

import keydyn
from keydyn import compile_cache
from keydyn.arrays import compiled
from tests.waiting import PATIENCE

# Compiles one small function and prints its result, and how often it was compiled and loaded.
WORK = """
import numpy as np
from keydyn.model.engine.sums import add_weights
sums = np.zeros((2, 1))
add_weights(np.array([0, 1, 1, 5]), np.ones((4, 1)), sums)
stats = add_weights.stats
print(*sums.ravel(), sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""
COMPILED, LOADED = "1.0 2.0 1 0", "1.0 2.0 0 1"


def start(folder, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment},
    )


def outcome(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out.strip()


def shorten(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.slow
def test_a_damaged_entry_is_compiled_again(tmp_path):
    """Each time the process after the damage has the right result, and the one after that loads it."""
    assert outcome(start(tmp_path)) == COMPILED
    assert outcome(start(tmp_path)) == LOADED
    for damage in (lambda path: path.write_bytes(b""), shorten, flip):
        (entry,) = tmp_path.rglob("*add_weights*.nbc")
        damage(entry)
        assert outcome(start(tmp_path)) == COMPILED
    replace_by_folder(next(tmp_path.rglob("*add_weights*.nbc")))
    # Nothing can be kept where a folder is in the way; all else works.
    assert outcome(start(tmp_path)).startswith("1.0 2.0")


def test_processes_that_compile_at_the_same_time_leave_a_cache_that_holds(tmp_path):
    assert [outcome(process) for process in [start(tmp_path) for _ in range(2)]] != []
    assert outcome(start(tmp_path)) == LOADED


def larger_by_one(number):
    return number + 1


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_without_a_private_folder_there_is_no_cache_and_all_works(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for name, mode in (("open", 0o777), ("private", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    for name in ("file", "open", "private"):
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / name))
        assert compiled(larger_by_one)(1) == 2
    kept = [path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.nbc")]
    assert kept == ["private"]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_what_is_private(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    assert compile_cache.is_private(folder)
    folder.chmod(0o770)
    assert not compile_cache.is_private(folder)
    folder.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert not compile_cache.is_private(link)
    tmp_path.chmod(0o777)
    assert not compile_cache.is_private(folder)
    tmp_path.chmod(0o1777)
    assert compile_cache.is_private(folder)
    tmp_path.chmod(0o700)


def test_where_the_package_cannot_be_written_the_user_has_a_folder(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "model").mkdir(parents=True)
    (package / "arrays.py").touch()
    (package / "__pycache__").touch()
    monkeypatch.setattr(compile_cache, "PACKAGE", package)
    monkeypatch.setattr(compile_cache, "user_caches", lambda: tmp_path / "caches")
    folder = compile_cache._folder.__wrapped__("", "model")
    assert folder.parent == tmp_path / "caches" / "keydyn"
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    monkeypatch.setattr(compile_cache, "user_caches", lambda: tmp_path / "file")
    assert compile_cache._folder.__wrapped__("", "model") is None


@pytest.mark.parametrize(
    ("changed", "outdated"),
    [
        ("arrays.py", {"model", "population", "decisions"}),
        ("model/a.py", {"model", "population", "decisions"}),
        ("population/score/b.py", {"population"}),
        ("service/c.py", set()),
    ],
)
def test_folders_of_former_sources_go(tmp_path, monkeypatch, changed, outdated):
    """Compiled code contains that of other files, of its own package or of the model."""
    package = tmp_path / "package"
    for name in ("arrays.py", "model/a.py", "population/score/b.py", "decisions/d.py", "service/c.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    monkeypatch.setattr(compile_cache, "PACKAGE", package)

    def folders():
        names = ("model", "population", "decisions")
        return {name: compile_cache._folder.__wrapped__("", name) for name in names}

    before = folders()
    os.utime(package / changed, (1, 1))
    after = folders()
    assert {name for name in before if before[name] != after[name]} == outdated
    assert {name for name in before if not before[name].exists()} == outdated
    assert all(folder.is_dir() for folder in after.values())


def test_no_compiled_function_returns_an_array():
    """A signal handler that raises while an array is handed to Python ends in a `SystemError` or a crash."""
    modules = [
        importlib.import_module(name)
        for _, name, _ in pkgutil.walk_packages(keydyn.__path__, "keydyn.")
        if name != "keydyn.__main__" and ".migrations." not in name
    ]
    loops = {
        loop
        for module in modules
        for loop in vars(module).values()
        if type(loop).__name__ == "CPUDispatcher" and not loop.targetoptions.get("no_cpython_wrapper")
    }
    assert len(loops) > 10
    returned = {loop.__name__: loop.py_func.__annotations__.get("return") for loop in loops}
    assert {
        name: kind for name, kind in returned.items() if kind not in ("None", "int", "float", "bool")
    } == {}


class Watcher(event.Listener):
    """Notes whether garbage is collected when something is compiled."""

    def __init__(self):
        self.collecting = []

    def on_start(self, _):
        self.collecting.append(gc.isenabled())

    def on_end(self, _):
        pass


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_not_collected_while_numba_compiles_and_then_as_before(enabled):
    before, watcher = gc.isenabled(), Watcher()
    (gc.enable if enabled else gc.disable)()
    try:
        with event.install_listener("numba:compile", watcher):
            assert numba.njit(lambda x: x + 1)(1) == 2
        assert watcher.collecting
        assert not any(watcher.collecting)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
