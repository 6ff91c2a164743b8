"""Only regular files of a sane size are read: nothing waits for ever, and nothing fills the memory."""

import gzip
import os
import socket

import pandas as pd
import pytest

from keydyn import load
from keydyn.datasets import load_recordings
from keydyn.datasets.files.file_tables import parse_table
from keydyn.model import ModelFileError
from keydyn.regular_files import UnusableFileError, opened, read_regular, read_unpacked

posix = pytest.mark.skipif(os.name != "posix", reason="named pipes and devices are those of POSIX")
# More than there is memory; it takes no room on the disk.
SPARSE = 20 * 10**9


def pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def device(folder):
    return "/dev/zero"


def listening(folder):
    path = folder / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    return path


def sparse(folder):
    with open(folder / "sparse", "wb") as file:
        file.truncate(SPARSE)
    return folder / "sparse"


def link_to_a_pipe(folder):
    (folder / "link").symlink_to(pipe(folder))
    return folder / "link"


NOT_REGULAR = [pipe, device, listening, sparse, link_to_a_pipe, lambda folder: folder]


@posix
@pytest.mark.parametrize("make", NOT_REGULAR)
def test_what_is_no_regular_file_is_refused_at_once(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path)
    with pytest.raises(ModelFileError, match="is not a keydyn model"):
        load(path)
    # A socket cannot be opened at all.
    with pytest.raises((ValueError, OSError), match=r"it is a|it has 20,000,000,000 bytes|No such device"):
        load_recordings(path)


def test_a_name_that_no_file_can_have():
    with pytest.raises(ModelFileError, match="null"):
        load("a\0b")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load("nowhere.keydyn")


def test_a_file_is_read_whole_or_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 100) == read_unpacked(path, 100) == b"x" * 100
    with pytest.raises(UnusableFileError, match="it has 100 bytes; at most 99 are read"):
        read_regular(path, 99)


def test_a_file_that_grows_while_it_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    with opened(path, 100) as file:
        with open(path, "ab") as more:
            more.write(b"y" * 1000)
        assert len(file.read(101)) == 101


@pytest.mark.parametrize("make", [gzip.compress, lambda contents: gzip.compress(contents)[:-9]])
def test_a_packed_file_is_bounded_by_what_it_holds(make, tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(make(bytes(50 << 20)))
    assert path.stat().st_size < 100_000
    with pytest.raises(UnusableFileError, match="it holds more than 1,000,000 bytes"):
        read_unpacked(path, 1_000_000)


def test_a_packed_file_that_is_cut_short(tmp_path):
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(b"user,session" * 100)[:-9])
    with pytest.raises(UnusableFileError, match="it cannot be unpacked"):
        read_unpacked(path, 10_000)


def test_a_parquet_file_is_bounded_by_what_it_describes(tmp_path):
    path = tmp_path / "typing.parquet"
    frame = pd.DataFrame(
        {"user": 1, "session": 0, "keyname": "a", "timepress": 0.0, "timerelease": 0.0}, range(10**5)
    )
    frame.to_parquet(path)
    assert len(load_recordings(path)) == 10**5
    assert path.stat().st_size < 10**5
    with pytest.raises(
        ValueError, match="it would take 4,000,000 bytes of memory; at most 1,000,000 are read"
    ):
        parse_table(path.read_bytes(), largest=10**6)
