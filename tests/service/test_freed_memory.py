"""Memory: all threads share one heap, by glibc's own count."""

import ctypes
import subprocess
import sys

import pytest

from tests.waiting import PATIENCE

# Threads that all allocate before any of them frees: each takes a heap of its own if it may.
PROGRAM = """
import ctypes, sys, threading
from keydyn.service.serving import return_freed_memory
if sys.argv[1] == "returned":
    return_freed_memory()
all_there = threading.Barrier(8)
def work():
    kept = [bytearray(1000) for _ in range(100)]
    all_there.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


def heaps(mode: str) -> int:
    """The number of heaps of a process at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc says how many heaps there are"
)
def test_threads_share_one_heap():
    assert heaps("as it is") > 1
    assert heaps("returned") == 1
