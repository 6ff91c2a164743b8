"""Files are whole or not there."""

from __future__ import annotations

import os

import pytest

from keydyn.atomic import replacing, write_bytes, write_text


def test_an_error_midway_leaves_what_was_there(tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_while_it_is_written_the_old_file_stands(tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are those of POSIX")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    """As /dev/null must: root could replace it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "τ")
        assert os.read(reader, 100) == b"\xcf\x84"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "no file")


def test_text_and_bytes_come_back_and_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "t.md", "τ\n")
    write_bytes(tmp_path / "x.png", b"\x00\r\n")
    assert (tmp_path / "a" / "b" / "t.md").read_bytes() == b"\xcf\x84\n"
    assert (tmp_path / "x.png").read_bytes() == b"\x00\r\n"
