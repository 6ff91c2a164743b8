"""Pages of results: every study has a question, an answer that its tables give, and a page."""

from __future__ import annotations

import json
import re

import pytest

from keydyn.evaluation.rates.confidence import Rate
from keydyn.lab.frame.names import of_all, percent, rate_words, size_of, span
from keydyn.lab.frame.outputs import read_values
from keydyn.lab.run_study import STUDIES
from tests.documents import ROOT, program

results_page = program("results_page")
OVERVIEW = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
PAGES = {name: study.page for name, study in STUDIES.items() if study.page}
RESULTS = ROOT / "docs" / "results"
VALUES = RESULTS / "tables"
FLOATS = "float64"


def text_of(name):
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def values_of(name):
    """The values that a page's first run left."""
    return read_values(VALUES / name, PAGES[name].values)


def test_every_study_of_the_command_line_has_a_page():
    assert {name for name, study in STUDIES.items() if study.subcommand} == set(PAGES)
    assert {path.stem for path in RESULTS.glob("*.md")} == set(PAGES)


def test_a_page_shows_only_what_its_study_leaves():
    for name, page in PAGES.items():
        for run in page.runs:
            assert {*run.tables, *page.values} <= {*STUDIES[name].tables}


def test_values_of_all_runs_are_kept():
    """Those that an answer is computed from, and those of tables too long for a page."""
    for name, page in PAGES.items():
        for run in page.runs:
            kept = {path.stem for path in (VALUES / (run.folder or name)).glob("*.csv")}
            assert kept
            assert kept <= {*page.values, *run.tables}
            assert page.answer(read_values(VALUES / (run.folder or name), page.values)) in text_of(name)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_the_question_and_its_tables_answer_it(name):
    page, text, values = PAGES[name], text_of(name), values_of(name)
    assert page.question.endswith("?")
    title, question, answer, figure = text.split("\n\n")[:4]
    assert (title, question, answer) == (f"# {page.title}", f"**{page.question}**", page.answer(values))
    # Only one study has no figure.
    assert figure.startswith("![") or name == "recommended"
    assert re.search(r"\d", answer)
    for table, reading in page.runs[0].tables.items():
        shown = text.partition(f"{reading}\n\n<!-- table: {table} -->\n")[2]
        file = f"tables/{name}/{table}.csv"
        assert shown.startswith("|") or (f"]({file})" in shown.splitlines()[0] and (RESULTS / file).exists())
    assert f"keydyn study {name}" in text.split("## How this was measured")[1]
    for figure in re.findall(r"\]\(\.\./figures/results/(.*?)\)", text):
        assert (ROOT / "docs" / "figures" / "results" / figure).exists()


@pytest.mark.parametrize("name", PAGES)
def test_the_overview_has_question_answer_and_link(name):
    page = PAGES[name]
    assert f"| [{page.question}](results/{name}.md) | {page.answer(values_of(name))} |" in OVERVIEW
    assert f"\nresults/{name}\n" in OVERVIEW


@pytest.mark.parametrize("name", PAGES)
def test_other_numbers_in_the_tables_give_another_answer(name):
    """Nothing of an answer is typed by hand."""
    values = values_of(name)
    others = {
        table: frame.assign(**{column: 0.9 - 0.7 * frame[column] for column in frame.select_dtypes(FLOATS)})
        for table, frame in values.items()
    }
    assert PAGES[name].answer(others) != PAGES[name].answer(values)


@pytest.mark.parametrize("name", PAGES)
def test_one_dataset_is_enough_for_an_answer(name):
    """As with --dataset; what is measured on one dataset needs no range."""
    values = values_of(name)
    first = next(iter(values.values()))
    key = next(key for key in ("dataset", "truth", "dataset_to") if key in first)
    # A place that is in other tables alone is not one that --dataset names.
    one = sorted(set(first[key]) - {"all"})[0]
    some = {table: frame[frame[key].isin((one, "all"))] for table, frame in values.items()}
    answer = PAGES[name].answer(some)
    assert answer.endswith(".")
    assert "unknown" not in answer.replace("unknown to the system", "")


def test_ranges_and_counts_in_words():
    shares = {"fable": 0.8871, "mobile+": 0.971, "essay": 0.909}
    assert span(shares, percent) == "88.7\u00a0% (Fable) to 97.1\u00a0% (Mobile+)"
    assert span({}, percent) == "an unknown number"
    rates = {"fable": Rate(0.0, trials=80), "essay": Rate(0.5, 0.4, 0.6, 100)}
    words = "less than 3.8\u00a0% (Fable) to 50.0\u00a0% (Essay)"
    assert span(rates, rate_words, size_of) == words
    counts = [of_all(part, whole, "dataset") for part, whole in ((0, 3), (2, 3), (3, 3), (2, 2), (1, 1))]
    assert counts == ["no dataset", "2 of 3 datasets", "all 3 datasets", "both datasets", "the only dataset"]


@pytest.mark.parametrize("many", [results_page.LONG, results_page.LONGEST])
def test_pages_are_written_from_the_folders_of_studies(tmp_path, monkeypatch, many):
    """Short tables before long ones, of which the longest are files; an unfinished study is left out."""
    docs, out = tmp_path / "docs", tmp_path / "out"
    docs.mkdir()
    monkeypatch.setattr(results_page, "DOCS", docs)
    monkeypatch.setattr("sys.argv", ["results_page.py", str(out)])
    folder = out / "recommended"
    (folder / "tables").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"version": "1.2", "seconds": 3.2, "time": "2031-05-06T"}))
    (folder / "words.md").write_text("Some words.\n")
    for table, count in (("choices", many), ("candidates", 1)):
        rows = [f"| {name} | a | 0.1 | 0.2 | 0.3 |" for name in ("all", *map(str, range(count)))]
        head = "| dataset | chosen | eer on the others | acc | eer |\n| --- | --- | --- | --- | --- |"
        (folder / "tables" / f"{table}.md").write_text(
            f"**{table}**\n\n{head}\n" + "\n".join(rows) + "\n\nNote.\n"
        )
    values = "dataset,chosen,eer_on_the_others,acc,eer\nall,a,0.1,,\nfable,a,0.1,0.2,0.3\n"
    (folder / "tables" / "choices.csv").write_text(values)
    results_page.main()
    text = (docs / "results" / "recommended.md").read_text()
    order = ["**Which", "Some words.", "## candidates", "## Long tables", "### choices", "## How this was"]
    assert sorted(order, key=text.index) == order
    assert ("](tables/recommended/choices.csv)\n\nNote." in text) == (many == results_page.LONGEST)
    assert ("| all | a |" in text.partition("### choices")[2]) == (many == results_page.LONG)
    assert "Version 1.2 on 2031-05-06; it took 3 s." in text
    assert "30\u00a0% (Fable) on the dataset itself" in text
    assert (docs / "results" / "tables" / "recommended" / "choices.csv").read_text() == values
    overview = (docs / "results.md").read_text()
    assert overview.count("](results/") == 1
    assert "results/recommended\n```" in overview


def test_the_page_of_a_study_that_was_not_run_again_stays(tmp_path, monkeypatch):
    """The overview then has the answer from the values that were kept."""
    docs, kept = tmp_path / "docs", tmp_path / "docs" / "results" / "tables" / "recommended"
    kept.mkdir(parents=True)
    (kept / "choices.csv").write_text(
        "dataset,chosen,eer_on_the_others,acc,eer\nall,a,0.1,,\nfable,a,0.1,0.2,0.3\n"
    )
    (docs / "results" / "recommended.md").write_text("As it was.")
    monkeypatch.setattr(results_page, "DOCS", docs)
    monkeypatch.setattr("sys.argv", ["results_page.py", str(tmp_path / "out")])
    results_page.main()
    assert (docs / "results" / "recommended.md").read_text() == "As it was."
    assert "30\u00a0% (Fable) on the dataset itself" in (docs / "results.md").read_text()
