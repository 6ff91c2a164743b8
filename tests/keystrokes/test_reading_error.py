"""A reading error has fields, from which the library and the commands make their messages."""

import copy
from pathlib import Path

import pytest

from keydyn.commands.recording_options import ReadingOptions
from keydyn.datasets import load_recordings
from keydyn.keystrokes import ReadingError
from keydyn.keystrokes.reading_error import FilePosition, Finding, Remedy


def caught(folder, text):
    path = folder / "mine.csv"
    path.write_text(text)
    with pytest.raises(ReadingError) as error:
        load_recordings(path)
    return path, error.value


def test_fields_say_what_is_wrong_where_and_what_helps(tmp_path):
    rows = "ann,0,a,0,80\nann,0,b,50,90\nann,0,c,20,95\n"
    path, error = caught(tmp_path, "user,session,keyname,timepress,timerelease\n" + rows)
    found = error.finding
    assert found.problem == "timepress is before the press above it"
    assert (found.source, found.place) == (str(path), FilePosition("line", 4))
    assert [remedy.arguments for remedy in found.remedies] == [{"sort": True}]


def test_two_wordings(tmp_path):
    path, error = caught(tmp_path, "user\tsession\tkeyname\ttimepress\ttimerelease\nann\t0\ta\t0\t80\n")
    assert str(error) == f"{path}: its columns are separated by tabs; give `separator='\\t'`"
    options = error.finding.worded(ReadingOptions(path).as_options)
    assert options == f"{path}: its columns are separated by tabs; give `--separator '\\t'`"


def test_each_side_leaves_out_what_it_cannot_do():
    remedies = (
        Remedy("{} leaves such rows out", {"clean": True}),
        Remedy("{} names the other columns to keep", {"others": ...}),
        Remedy("look at the clock"),
        Remedy("{} sorts", {"sort": True}),
    )
    finding = Finding("it is wrong", remedies)
    assert finding.worded() == (
        "it is wrong; `others` names the other columns to keep; look at the clock; `sort=True` sorts"
    )
    as_options = ReadingOptions(Path("mine.csv")).as_options
    assert finding.worded(as_options) == (
        "it is wrong; `--clean` leaves such rows out; look at the clock; `--sort` sorts"
    )
    assert finding.without("sort", "clean").worded(as_options) == "it is wrong; look at the clock"


def test_a_copy_says_the_same():
    """Other processes hand errors over by the same protocol."""
    error = ReadingError(
        "it is wrong", Remedy("give {}", {"unit": "s"}), place=FilePosition("row", 3)
    ).changed(source="mine.csv")
    assert str(copy.copy(error)) == "mine.csv: row 3: it is wrong; give `unit='s'`"
