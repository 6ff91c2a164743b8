"""Arrays that are worked on in turn: all in memory, or each in a file of a private folder."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Held:
    """Arrays in memory."""

    arrays: Arrays

    def load(self) -> Arrays:
        return self.arrays


@dataclass(frozen=True)
class Filed:
    """Arrays in a file, which every worker that sees the folder can read.

    The file has their bytes alone. NumPy's own format has a header that is parsed as Python, which in some
    versions of Python fails now and then if threads do so at the same time (CPython issue 106905).
    """

    path: Path
    kinds: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]

    def load(self) -> Arrays:
        with open(self.path, "rb") as file:
            return tuple(
                np.fromfile(file, kind, math.prod(shape)).reshape(shape) for kind, shape in self.kinds
            )


Stored = Held | Filed


class Store:
    """Keeps arrays in memory, or in files of a folder if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._count = 0

    def keep(self, *arrays: NDArray[Any]) -> Stored:
        """The arrays, to be loaded when they are needed."""
        if self._folder is None:
            return Held(arrays)
        self._count += 1
        path = self._folder / str(self._count)
        with open(path, "wb") as file:
            for array in arrays:
                array.tofile(file)
        return Filed(path, tuple((array.dtype, array.shape) for array in arrays))


@contextmanager
def store(in_memory: bool, parent: str | PathLike[str] | None) -> Iterator[Store]:
    """A store; its folder, which only this user can read, is made in `parent` and removed at the end."""
    if in_memory:
        yield Store(None)
        return
    with tempfile.TemporaryDirectory(prefix="keydyn-", dir=parent) as folder:
        yield Store(Path(folder))
