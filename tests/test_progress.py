"""Long work shows what it is doing where standard error is no terminal."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from keydyn import progress
from keydyn.progress import progress_bar, share_bar, working
from keydyn.terminal import being_quiet, column_widths


def wait_for(capsys, words):
    """What was printed on standard error, as soon as it has these words."""
    seen = ""
    for _ in range(20_000):
        seen += capsys.readouterr().err
        if words in seen:
            return seen
        threading.Event().wait(0.005)
    raise AssertionError(f"{words!r} did not come: {seen!r}")


def test_lines_come_although_the_work_does_not_call(capsys, monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 3.0))
    with working("reading", every_s=0.01):
        wait_for(capsys, "keydyn: reading, 0 s\n")
    with progress_bar("fitting", 40, every_s=0.01) as show:
        show(12)
        wait_for(capsys, "keydyn: fitting, 12 of 40, 0 s\n")
    with share_bar(every_s=0.01) as show:
        show("fable", 0.25)
        wait_for(capsys, "keydyn: fable, 25%, 0 s\n")
    capsys.readouterr()
    assert threading.active_count() == 1 or not any(
        "report" in thread.name for thread in threading.enumerate()
    )


@pytest.mark.parametrize("hidden", [True, False])
def test_nothing_is_shown_when_asked_for(capsys, hidden):
    with being_quiet(not hidden), progress_bar("fitting", 3, hidden=hidden, every_s=0.0) as show:
        for done in range(4):
            show(done)
            threading.Event().wait(0.01)
    assert capsys.readouterr().err == ""


def test_no_word_is_broken_while_there_is_room():
    """By hand: the longest words first, then the longest line gets what is left."""
    columns = [["name", "a very long one"], ["rate", "0.5"]]
    assert column_widths(columns, 100) == [15, 4]
    assert column_widths(columns, 4 + 4 + 7) == [4, 4]
    assert column_widths(columns, 4 + 4 + 7 + 3) == [7, 4]
    assert column_widths(columns, 1) == [4, 4]
