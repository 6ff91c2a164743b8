"""keydyn evaluate --report standard: order, bytes, what is missing, and options that make no sense."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.datasets import make_typists, save_recordings
from keydyn.lab.own_recordings.study import STANDARD_TABLES
from keydyn.lab.standard_report.stated_facts import QUESTIONS
from tests.conftest import leave_empty

pytestmark = pytest.mark.usefixtures("sketched")

runner = CliRunner()
# As ISO/IEC 19795-1 orders a report, then ISO/IEC 30107-3, then the claims.
ORDER = [
    "What was tested",
    "Who was tested",
    "What was recorded, and over what time",
    "What was left out, and why",
    "Protocol",
    "Decision policy",
    "Error rates",
    "Groups of people",
    "What was not tested",
    "Attacks",
    "Claims",
]


def run(*options):
    return runner.invoke(app, ["evaluate", *map(str, options), "--detector", "manhattan", "--jobs", "1"])


@pytest.fixture(scope="module")
def typing(tmp_path_factory):
    frame = make_typists(4, 4, random_state=0)
    frame["layout"] = np.where(frame["user"] < 2, "qwerty", "azerty")
    path = tmp_path_factory.mktemp("typing") / "typing.csv"
    save_recordings(frame, path)
    return path


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "mine.toml"
    path.write_text(
        '[test]\ntitle = "A <test> & more"\n[people]\nrecruitment = "By <script>alert(1)</script>"\n'
    )
    return path


@pytest.fixture(scope="module")
def out(typing, facts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        leave_empty(patch)
        result = run(typing, "--report", "standard", "--facts", facts, "--by", "layout", "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def test_sections_are_in_the_order_of_the_standard(out):
    text = (out / "standard.html").read_text()
    headings = [title for title in re.findall(r"<h2[^>]*>([^<]*)</h2>", text) if title != "Contents"]
    assert headings == [*ORDER, "How this was made"]
    document = json.loads((out / "standard.json").read_text())
    assert [section["title"] for section in document["sections"]] == ORDER


def test_the_same_input_gives_the_same_bytes(typing, facts, out, tmp_path):
    """In another folder, and built again from the scores alone."""
    before = {name: (out / name).read_bytes() for name in ("standard.html", "standard.json")}
    again = run(typing, "--report", "standard", "--facts", facts, "--by", "layout", "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    for name in before:
        (tmp_path / name).unlink()
    rebuilt = runner.invoke(app, ["report", str(tmp_path)])
    assert rebuilt.exit_code == 0, rebuilt.output
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_it_knows_neither_the_time_nor_the_machine(out):
    run_facts = json.loads((out / "run.json").read_text())
    text = (out / "standard.html").read_text() + (out / "standard.json").read_text()
    assert run_facts["version"] in text
    assert run_facts["time"] not in text
    assert run_facts["time"][:10] not in text
    assert "Matplotlib" not in text
    assert b"Matplotlib" not in (out / "figures" / "det.png").read_bytes()


def test_what_is_stated_is_text_and_what_is_not_is_missing(out):
    document = json.loads((out / "standard.json").read_text())
    assert document["title"] == "A <test> & more"
    asked = sum(map(len, QUESTIONS.values()))
    assert len(document["missing"]) == asked - 2
    assert document["stated"]["people"]["consent"] is None
    text = (out / "standard.html").read_text()
    assert text.count("<strong>missing</strong>") == asked - 2
    assert f"{asked - 2} of {asked} facts" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_claims_follow_from_the_people(out):
    """Four people without an error would show no limit below 1 − 0.05^(1/4), 52.7 %."""
    document = json.loads((out / "standard.json").read_text())
    claims = document["sections"][-1]["tables"]["limits"]
    assert {claim["people"] for claim in claims} == {4}
    fmr = next(claim for claim in claims if claim["limit"].startswith("FMR"))
    assert fmr["observed"] == 0.0
    assert fmr["bound"] == pytest.approx(1 - 0.05**0.25)
    assert fmr["outcome"] == "cannot be shown with 4 people: 29,956 are needed"
    assert "No attacks were tried" in (out / "standard.html").read_text()


def test_every_table_has_its_files(out):
    text = (out / "standard.html").read_text()
    links = set(re.findall(r'href="(tables/[^"]+)"', text))
    assert {"tables/limits.csv", "tables/groups.csv", "tables/facts_people.md"} <= links
    assert all((out / link).exists() for link in links)
    tables = {path.stem for path in (out / "tables").iterdir()}
    assert set(STANDARD_TABLES) - tables <= {"left_out", "left_out_by_user", "presentation_attacks"}


def test_without_facts_there_is_a_template(typing, tmp_path):
    result = run(typing, "--report", "standard", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "facts.toml").exists()
    assert "Groups of people: whether errors differ" in (tmp_path / "standard.html").read_text()
    # A later run without the report leaves neither page.
    assert run(typing, "--out", tmp_path).exit_code == 0
    assert not (tmp_path / "standard.html").exists()
    assert not (tmp_path / "tables" / "limits.csv").exists()
    assert (tmp_path / "facts.toml").exists()


def evaluate_scores(scores, folder):
    options = ["--scores", str(scores), "--report", "standard", "--out", str(folder)]
    result = runner.invoke(app, ["evaluate", *options])
    assert result.exit_code == 0, result.output
    assert (folder / "facts.toml").exists()
    return json.loads((folder / "standard.json").read_text())


def test_scores_of_any_system_have_a_report(tmp_path):
    """Twenty people and no error are too few for every limit on claims."""
    people = [f"person{n}" for n in range(20)]
    lines = [f"{a} {b} {b}1 {9 if a == b else 1}" for a in people for b in people]
    (tmp_path / "mine.txt").write_text("\n".join(lines) + "\n")
    document = evaluate_scores(tmp_path / "mine.txt", tmp_path / "out")
    titles = [section["title"] for section in document["sections"]]
    assert titles == [title for title in ORDER if title != "Groups of people"]
    claims = document["sections"][-1]["tables"]["limits"]
    assert [(claim["people"], claim["observed"], claim["needed"]) for claim in claims] == [
        (20, 0.0, 29956),
        (20, 0.0, 59),
        (20, 0.0, 29956),
        (20, 0.0, 99),
    ]


def test_scores_without_people_support_no_claim(tmp_path):
    for name, values in (("genuine", "9\n8\n7\n"), ("impostor", "1\n2\n3\n")):
        (tmp_path / f"{name}.txt").write_text(values)
    pair = f"{tmp_path / 'genuine.txt'},{tmp_path / 'impostor.txt'}"
    claims = evaluate_scores(pair, tmp_path / "out")["sections"][-1]
    assert claims["tables"] == {}
    assert "do not say whose they are" in claims["text"][0]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--report", "iso"], 2, "--report must be standard, not 'iso'"),
        (["--facts", "FACTS"], 2, "--facts are for --report standard"),
        (["--report", "standard", "--facts", "nowhere.toml"], 4, "nowhere.toml"),
        (["--report", "standard", "--facts", "TYPING"], 4, "is not TOML"),
        (["--by", "age"], 2, "no column 'age' to compare people by; there are layout"),
        (["--by", "session"], 2, "no column 'session'"),
    ],
)
def test_options_that_make_no_sense(typing, facts, tmp_path, options, code, words):
    paths = {"FACTS": str(facts), "TYPING": str(typing)}
    result = run(typing, "--out", tmp_path / "out", *(paths.get(option, option) for option in options))
    assert result.exit_code == code, result.output
    assert words in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
