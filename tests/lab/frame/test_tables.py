"""Tables: exact values in CSV, the paper's form elsewhere, and names that are never taken for markup."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from keydyn.evaluation.rates.confidence import Estimate
from keydyn.lab.frame.table_text import latex, markdown, rich_table
from keydyn.lab.frame.tables import (
    Column,
    Table,
    csv_text,
    figure_column,
    fixed,
    mean_and_deviation,
    plain_table,
    published_beside,
    write_table,
)

HOSTILE = [
    "a_b & c",
    "50%",
    "[/b]",
    "*",
    "x|y",
    "<b>",
    "$x^2$ \\ {~#}",
    "Zoë 李",
    "line\nbreak",
    "[red]no[/red]",
]


def user_table(names: list[str] = HOSTILE) -> Table:
    frame = pd.DataFrame({"user": names, "samples": range(len(names)), "eer": np.linspace(0, 1, len(names))})
    return plain_table("users", "Users & errors", "50% are named", frame)


def long_frame() -> pd.DataFrame:
    """Two datasets, three detectors; the last has no published figures."""
    rows = [
        ("keypad", "hmm", 0.4784, 0.2871, 0.478, 0.287),
        ("keypad", "pohmm", 0.7481, 0.1512, 0.748, 0.151),
        ("keypad", "pohmm-recommended", 0.8, 0.1, np.nan, np.nan),
        ("own", "hmm", 0.5, np.nan, np.nan, np.nan),
        ("own", "pohmm", 0.6, 0.2, np.nan, np.nan),
    ]
    columns = ["dataset", "detector", "acc_mean", "acc_std", "published_acc_mean", "published_acc_std"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("mean", "std", "digits", "text"),
    [
        (0.8867, 0.1751, 3, "0.887 (0.175)"),
        (129.28, 95.5, 2, "129.28 (95.50)"),
        (1.0, 0.0, 3, "1.000 (0.000)"),
        (0.5, np.nan, 3, "0.500 (–)"),
        (np.nan, np.nan, 3, "–"),
        (None, None, 3, "–"),
        (-0.0001, 0.0, 3, "0.000 (0.000)"),
    ],
)
def test_mean_and_deviation_as_the_paper_prints_them(mean, std, digits, text):
    assert mean_and_deviation(mean, std, digits) == text


def test_a_number_that_rounds_to_something_keeps_its_sign():
    assert fixed(-0.0006, 3) == "-0.001"


def test_csv_is_exact_in_a_fixed_number_of_decimals():
    frame = pd.DataFrame(
        {
            "user": ["a,b", 'say "x"'],
            "count": [3, 12],
            "some": pd.array([1, None], dtype="Int64"),
            "rate": [1 / 3, np.nan],
            "mixed": [None, 0.1],
        }
    )
    rows = list(csv.reader(io.StringIO(csv_text(frame))))
    assert rows == [
        ["user", "count", "some", "rate", "mixed"],
        ["a,b", "3", "1", "0.333333", ""],
        ['say "x"', "12", "", "", "0.100000"],
    ]


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.floats(-1e6, 1e6)), min_size=1)
)
def test_csv_gives_names_and_values_back(rows):
    frame = pd.DataFrame(rows, columns=["user", "value"])
    text = csv_text(frame)
    back = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [row[0] for row in back] == frame["user"].tolist()
    np.testing.assert_allclose([float(row[1]) for row in back], frame["value"], rtol=0, atol=0.5000001e-6)


def test_published_figures_stand_below_the_measured_ones_and_say_so():
    frame = long_frame().assign(best=[False, True, False, False, False])
    table = published_beside("identification", "Identification", "", frame, "acc")
    assert table.shown.columns.tolist() == ["Dataset", "Source", "HMM", "POHMM", "POHMM (recommended)"]
    assert table.shown.to_numpy().tolist() == [
        ["Keypad", "measured", "0.478 (0.287)", "0.748 (0.151)", "0.800 (0.100)"],
        ["Keypad", "published", "0.478 (0.287)", "0.748 (0.151)", "–"],
        ["own", "measured", "0.500 (–)", "0.600 (0.200)", "–"],
    ]
    assert np.argwhere(table.bold.to_numpy()).tolist() == [[0, 3]]
    assert np.unique(np.argwhere(table.published.to_numpy())[:, 0]).tolist() == [1]
    assert "published_acc_mean" in csv_text(table.frame)
    assert "**0.748 (0.151)**" in markdown(table)
    assert r"\textbf{0.748 (0.151)}" in latex(table)
    assert "*published*" in markdown(table)
    assert "*" not in csv_text(table.frame)


def test_marks_stand_behind_measured_cells_only():
    frame = long_frame().assign(mark=["†", "", "", "", ""])
    table = published_beside("t", "T", "", frame, "acc")
    assert table.shown["HMM"].tolist() == ["0.478 (0.287)†", "0.478 (0.287)", "0.500 (–)"]
    assert r"0.478 (0.287)$\dagger$" in latex(table)


def test_two_rows_for_one_cell_and_missing_columns_are_refused():
    twice = pd.concat([long_frame(), long_frame().iloc[:1]])
    with pytest.raises(ValueError, match="two rows for keypad and hmm"):
        published_beside("t", "T", "", twice, "acc")
    with pytest.raises(ValueError, match="no column eer_mean"):
        published_beside("t", "T", "", long_frame(), "eer")


def test_every_line_of_markdown_has_the_same_cells():
    lines = [line for line in markdown(user_table()).splitlines() if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert bars == [4] * (len(HOSTILE) + 2)
    assert not re.search(r"(?<!\\)[<\[*_`$]", "\n".join(lines))


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_holds_no_command_or_separator_of_a_name(name):
    body = latex(user_table([name])).split(r"\midrule")[1].split(r"\bottomrule")[0].strip()
    known = r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar)\{\}|\\[{}$&#_%]"
    rest = re.sub(known, "", body)
    assert len(re.findall("&", rest)) == 2
    assert rest.count("\\\\") == 1
    assert not re.search(r"[$#_%^~<>|]", rest)
    assert rest.count("{") == rest.count("}")
    assert not re.match(r"[\[*]", body)


def test_a_terminal_shows_names_as_they_are():
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    console.print(rich_table(user_table()))
    shown = console.file.getvalue()
    assert all(name.replace("\n", " ") in shown for name in HOSTILE)


def test_writes_three_files_with_the_same_bytes_each_time(tmp_path):
    table = published_beside("identification", "Identification", "Note.", long_frame(), "acc")
    first = [(path.name, path.read_bytes()) for path in write_table(table, tmp_path / "a" / "tables")]
    second = [(path.name, path.read_bytes()) for path in write_table(table, tmp_path / "b")]
    assert first == second
    assert [name for name, _ in first] == ["identification.csv", "identification.md", "identification.tex"]
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [name for name, _ in first]


def test_an_empty_table_is_its_headings():
    table = plain_table("none", "Nothing", "", pd.DataFrame({"user": [], "eer": []}))
    assert csv_text(table.frame) == "user,eer\n"
    assert markdown(table).count("\n|") == 2
    assert latex(table).count(r"\\") == 1
    rich_table(table)


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "a/b"])
def test_a_name_that_is_no_file_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        plain_table(name, "T", "", pd.DataFrame({"x": [1]}))


def test_more_labels_than_columns_are_refused():
    with pytest.raises(ValueError, match="2 columns of labels, but 1 in all"):
        plain_table("t", "T", "", pd.DataFrame({"x": [1]}), labels=2)


def test_a_line_is_written_from_its_values_wherever_they_come_from():
    """Cells come from the lines, the CSV file from the frame; a value that is not there is an error."""
    columns = [
        Column("Who", "user"),
        Column("Rate", ("rate", "trials"), "{:.1f} of {}".format, lambda line: line["rate"] > 0.2),
        figure_column("Interval", "interval", 1),
    ]
    lines = [
        {"user": "ann", "rate": 0.25, "trials": 8, "interval": Estimate(1.0, 0.5, 2.0)},
        {"user": "bob", "rate": 0.125, "trials": 16, "interval": None},
    ]
    table = Table("t", "T", "", pd.DataFrame({"x": [1]}), columns, lines=lines)
    assert table.shown.to_numpy().tolist() == [
        ["ann", "0.2 of 8", "1.0 (0.5–2.0)"],
        ["bob", "0.1 of 16", "–"],
    ]
    assert table.bold.to_numpy().tolist() == [[False, True, False], [False, False, False]]
    assert not table.published.to_numpy().any()
    assert csv_text(table.frame) == "x\n1\n"
    with pytest.raises(KeyError, match="interval"):
        _ = Table(
            "t", "T", "", pd.DataFrame({"x": [1]}), columns, lines=[{"user": "", "rate": 0, "trials": 1}]
        ).shown
