"""A setting of the C library that returns freed memory to the system."""

from __future__ import annotations

import ctypes
import sys

# The numbers of options in glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# The size in bytes from which a freed block, or the free end of the heap, is returned to the system at once.
RETURNED = 128 << 10


def return_freed_memory() -> None:
    """Let all threads share one heap, and return large blocks to the system when they are freed.

    Otherwise each thread has a heap of its own, which never shrinks. This has no effect if the C library is
    not glibc. It must be called before threads are started.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(ARENA_MAX, 1)
        set_option(MMAP_THRESHOLD, RETURNED)
        set_option(TRIM_THRESHOLD, RETURNED)
