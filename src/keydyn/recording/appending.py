"""Files that grow: what was appended is durable when `append` returns."""

from __future__ import annotations

import os
from pathlib import Path

from keydyn.atomic import sync_folder


class AppendedFile:
    """A file of whole lines, the first of which names the columns.

    A line that was only partly written, when the process or the machine died, is cut off when the file is
    opened; so are zeros, which some file systems leave where nothing was written.
    """

    def __init__(self, path: Path, header: bytes) -> None:
        self.path, self._header = path, header
        new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if new:
            sync_folder(path.parent)
        contents = path.read_bytes()
        whole = contents.partition(b"\0")[0]
        self.size = whole.rfind(b"\n") + 1
        if not header.startswith(whole[: len(header)]):
            os.close(self._file)
            raise ValueError(f"{path}: its columns are not those that keydyn record writes")
        if self.size != len(contents):
            self.cut(self.size)

    def append(self, lines: bytes) -> None:
        """Add lines; after an `OSError` the file is as it was before."""
        before = self.size
        try:
            os.lseek(self._file, before, os.SEEK_SET)
            left = memoryview(lines if before else self._header + lines)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            self.cut(before)
            raise
        self.size = os.lseek(self._file, 0, os.SEEK_CUR)

    def cut(self, size: int) -> None:
        """Keep the first bytes only."""
        os.ftruncate(self._file, size)
        os.fsync(self._file)
        self.size = size

    def cut_lines(self, count: int) -> None:
        """Take back the last lines."""
        if count:
            self.cut(len(self.path.read_bytes().rsplit(b"\n", count + 1)[0]) + 1)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
