"""Memory: all threads share one heap, by glibc's count, and code that only starting needs is let go."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from keydyn.service import serving
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


MAPS = """\
55d0c0e00000-55d0c0e10000 r--p 00000000 fe:00 11 /usr/lib/constants.so
Size:                 64 kB
Rss:                  64 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
55d0c0e10000-55d0c0e30000 r-xp 00010000 fe:00 11 /usr/lib/a name with spaces.so (deleted)
Size:                128 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
55d0c0e30000-55d0c0e40000 r--p 00030000 fe:00 11 /usr/lib/addresses_written_by_the_loader.so
Size:                 64 kB
Anonymous:             4 kB
55d0c0e40000-55d0c0e50000 rw-p 00040000 fe:00 11 /usr/lib/variables.so
Anonymous:             0 kB
55d0c0e50000-55d0c0e60000 r--s 00000000 fe:00 12 /var/shared
Anonymous:             0 kB
55d0c0e60000-55d0c0e70000 r-xp 00000000 00:00 0
Anonymous:             0 kB
55d0c0e70000-55d0c0e80000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
"""


def test_only_unchanged_parts_of_files_are_let_go():
    assert [(hex(begin), hex(end)) for begin, end in serving._unchanged_code(MAPS)] == [
        ("0x55d0c0e00000", "0x55d0c0e10000"),
        ("0x55d0c0e10000", "0x55d0c0e30000"),
    ]


WORKING = """
import re
from pathlib import Path
from keydyn.service.serving import return_code, warm

def resident():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

warm()
before = resident()
return_code()
after = resident()
warm()
print(before, after, resident())
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux lists what is in memory")
def test_code_that_was_needed_to_start_is_let_go_and_read_again():
    done = subprocess.run([sys.executable, "-c", WORKING], capture_output=True, text=True, check=True)
    before, after, again = map(int, done.stdout.split())
    # Half is far more than what returns while the process looks.
    assert after < before / 2
    assert after <= again < before
