"""What a process does with memory that its threads have freed."""

from __future__ import annotations

import ctypes
import sys

# Names of settings in glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# Bytes from which a block is the system's again as soon as it is freed, and of which the heap's end is.
RETURNED = 128 << 10


def return_freed_memory() -> None:
    """Have all threads share one heap, and large blocks returned to the system when they are freed.

    Otherwise every thread of a process has a heap of its own, which stays as large as it ever was. Nothing
    changes where the C library is not glibc. It must be called before threads are started.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(ARENA_MAX, 1)
        set_option(MMAP_THRESHOLD, RETURNED)
        set_option(TRIM_THRESHOLD, RETURNED)
