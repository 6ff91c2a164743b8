"""Pages of results: every study has a question, an answer that its tables give, and a page."""

from __future__ import annotations

import json
import re

import pytest

from keydyn.lab.frame.cells import of_all, percent, span
from keydyn.lab.frame.markdown_rows import rows_of
from keydyn.lab.run_study import STUDIES
from tests.documents import ROOT, program

results_page = program("results_page")
OVERVIEW = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
PAGES = {name: study.results for name, study in STUDIES.items() if study.results}
TABLE = re.compile(r"<!-- table: (\w+) -->\n((?:\|.*\n)+)")


def text_of(name):
    return (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")


def tables_of(name):
    """The tables on a page of the documentation; a second run's do not replace the first's."""
    found = {}
    for table, text in TABLE.findall(text_of(name)):
        found.setdefault(table, rows_of(text))
    return found


def test_every_study_of_the_command_line_has_a_page():
    assert {name for name, study in STUDIES.items() if study.subcommand} == set(PAGES)
    assert {path.stem for path in (ROOT / "docs" / "results").glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_the_question_and_its_tables_answer_it(name):
    page, text, tables = PAGES[name], text_of(name), tables_of(name)
    assert page.question.endswith("?")
    title, question, answer, figure = text.split("\n\n")[:4]
    assert (title, question, answer) == (f"# {page.title}", f"**{page.question}**", page.answer(tables))
    # Only one study has no figure.
    assert figure.startswith("![") or name == "recommended"
    assert re.search(r"\d", answer)
    for table, reading in page.runs[0].tables.items():
        assert f"{reading}\n\n<!-- table: {table} -->\n|" in text
    assert f"keydyn study {name}" in text.split("## How this was measured")[1]
    for figure in re.findall(r"\]\(\.\./figures/results/(.*?)\)", text):
        assert (ROOT / "docs" / "figures" / "results" / figure).exists()


@pytest.mark.parametrize("name", PAGES)
def test_the_overview_has_question_answer_and_link(name):
    page = PAGES[name]
    assert f"| [{page.question}](results/{name}.md) | {page.answer(tables_of(name))} |" in OVERVIEW
    assert f"\nresults/{name}\n" in OVERVIEW


@pytest.mark.parametrize("name", PAGES)
def test_other_numbers_in_the_tables_give_another_answer(name):
    """Nothing of an answer is typed by hand."""
    tables = tables_of(name)
    digits = str.maketrans("0123456789", "9876543210")
    others = {
        table: [
            {column: cell.translate(digits) if "." in cell else cell for column, cell in row.items()}
            for row in rows
        ]
        for table, rows in tables.items()
    }
    assert PAGES[name].answer(others) != PAGES[name].answer(tables)


@pytest.mark.parametrize("name", PAGES)
def test_one_dataset_is_enough_for_an_answer(name):
    """As with --dataset; what is measured on one dataset needs no range."""
    tables = tables_of(name)
    key = next((key for key in ("Dataset", "dataset", "truth") if key in next(iter(tables.values()))[0]), "")
    kept = {row[key] for rows in tables.values() for row in rows if key in row}
    one = sorted(kept - {"all"})[0]
    some = {
        table: [row for row in rows if row.get(key, one) in (one, "all")] for table, rows in tables.items()
    }
    answer = PAGES[name].answer(some)
    assert answer.endswith(".")
    assert "unknown" not in answer.replace("unknown to the system", "")


def test_ranges_and_counts_in_words():
    cells = {"fable": "**0.887 (0.175)**", "mobile+": "0.971 (0.039)", "essay": "0.909"}
    assert span(cells) == "0.887 (Fable) to 0.971 (Mobile+)"
    assert span(cells, percent) == "88.7\u00a0% (Fable) to 97.1\u00a0% (Mobile+)"
    assert span({"fable": "< 3.8 %"}) == "less than 3.8\u00a0% (Fable)"
    counts = [of_all(part, whole, "dataset") for part, whole in ((0, 3), (2, 3), (3, 3), (2, 2), (1, 1))]
    assert counts == ["no dataset", "2 of 3 datasets", "all 3 datasets", "both datasets", "the only dataset"]


def test_pages_are_written_from_the_folders_of_studies(tmp_path, monkeypatch):
    """Short tables before long ones; a study that is not finished is left out of the overview."""
    docs, out = tmp_path / "docs", tmp_path / "out"
    docs.mkdir()
    monkeypatch.setattr(results_page, "DOCS", docs)
    monkeypatch.setattr("sys.argv", ["results_page.py", str(out)])
    folder = out / "recommended"
    (folder / "tables").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"version": "1.2", "seconds": 3.2, "time": "2031-05-06T"}))
    (folder / "words.md").write_text("Some words.\n")
    for table, count in (("choices", results_page.LONG), ("candidates", 1)):
        rows = [f"| {name} | a | 0.1 | 0.2 | 0.3 |" for name in ("all", *map(str, range(count)))]
        head = "| dataset | chosen | eer on the others | acc | eer |\n| --- | --- | --- | --- | --- |"
        (folder / "tables" / f"{table}.md").write_text(
            f"**{table}**\n\n{head}\n" + "\n".join(rows) + "\n\nNote.\n"
        )
    results_page.main()
    text = (docs / "results" / "recommended.md").read_text()
    order = ["**Which", "Some words.", "## candidates", "## Long tables", "### choices", "## How this was"]
    assert sorted(order, key=text.index) == order
    assert "Version 1.2 on 2031-05-06; it took 3 s." in text
    overview = (docs / "results.md").read_text()
    assert overview.count("](results/") == 1
    assert "results/recommended\n```" in overview
