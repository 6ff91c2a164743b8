"""keydyn evaluate --scores from end to end: files of several systems, a report, rebuilt, exported again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.evaluation.rates.confidence import signed_rank_p
from keydyn.evaluation.rates.detection_cost import DetectionCost, min_dcf
from keydyn.evaluation.rates.error_curve import equal_error_rate
from keydyn.evaluation.rates.system_figures import SystemFigures
from keydyn.evaluation.score_files.reading import read_scores
from keydyn.evaluation.score_files.writing import EXPORTS, write_scores
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.lab.frame.chosen import FORMS
from keydyn.lab.system_scores.figures import prior_errors
from tests.documents import DOCS
from tests.evaluation.rates.test_system_figures import made_claims

pytestmark = pytest.mark.usefixtures("sketched")


def run(arguments: Sequence[object], code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sketched_set_up: None) -> Path:
    """Two systems with the same people, one of them attacked; and a report of both."""
    place = tmp_path_factory.mktemp("scores")
    one, other = made_claims(8, 4, seed=1), made_claims(8, 4, seed=2)
    names = np.array(one.people)
    rows = {
        "claimed": names[one.claimed],
        "real": names[one.typist],
        "sample": one.sample,
        "score": one.score,
    }
    robots = {"claimed": names, "real": "robot", "sample": range(900, 908), "score": 4.0}
    frame = pd.concat([pd.DataFrame(rows).assign(attack=""), pd.DataFrame(robots).assign(attack="robot")])
    write_scores(ScoredClaims.of(frame.reset_index(drop=True)), place, "network", "bob-csv")
    write_scores(other, place, "machine", "bob")
    write_scores(other, place, "machine", "kvc")
    write_scores(other, place, "machine", "pyeer")
    files = ("--scores", place / "network.csv", "--scores", place / "machine.txt")
    run(["evaluate", *files, "--ratios", "--prior", "0.8", "--out", place / "out", "--export", "bob"])
    return place


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "out" / "tables" / f"{name}.csv")


def test_tables_have_the_figures_of_the_files(folder: Path) -> None:
    rates, costs = table(folder, "rates"), table(folder, "costs")
    for name in ("network.csv", "machine.txt"):
        (claims,) = read_scores(folder / name).values()
        own = rates[rates["system"] == name].set_index("figure")
        # The files of tables have six decimals.
        assert own.loc["eer", "value"] == pytest.approx(equal_error_rate(*claims.scores), abs=1e-6)
        least = costs[(costs["system"] == name) & (costs["figure"] == "min_dcf")]["value"].item()
        assert least == pytest.approx(min_dcf(*claims.scores, DetectionCost(0.8)), abs=1e-6)


def test_systems_are_tested_over_the_people_they_share(folder: Path) -> None:
    compared = table(folder, "compared").set_index("system")
    users = [SystemFigures(*read_scores(folder / name).values()).users["eer"] for name in compared.index]
    p = signed_rank_p(users[0].to_numpy(), users[1].loc[users[0].index].to_numpy())
    assert compared.loc[~compared["best"], "p"].item() == pytest.approx(p, abs=1e-6)
    assert compared["mean"].tolist() == pytest.approx([one.mean() for one in users], abs=1e-6)


def test_attacks_are_counted_apart(folder: Path) -> None:
    attacks = table(folder, "attacks").set_index("at")
    (claims,) = read_scores(folder / "network.csv").values()
    impostors = np.sort(claims.scores[1])[::-1]
    # At FMR 10 % a tenth of impostors may be accepted, and all robots score 4.
    allowed = int(0.1 * len(impostors))
    accepted = impostors[allowed] < 4.0
    assert attacks.loc["fnmr_at_fmr_10", "value"] == float(accepted)
    assert np.isnan(attacks.loc["fnmr_at_fmr_1", "value"])


def test_the_report_shows_every_figure_and_is_rebuilt(folder: Path) -> None:
    page = (folder / "out" / "report.html").read_text()
    for name in ("det", "roc", "tippett", "calibration", "ape", "epc", "cmc", "attacks"):
        assert f"figures/{name}.png" in page
    for title in ("Error rates", "Costs and calibration", "Systems compared", "Attacks"):
        assert f">{title}</h2>" in page
    before = (folder / "out" / "tables" / "rates.csv").read_bytes()
    run(["report", folder / "out"])
    assert (folder / "out" / "tables" / "rates.csv").read_bytes() == before


def test_scores_are_exported_as_they_were_read(folder: Path) -> None:
    (read,) = read_scores(folder / "out" / "exported" / "machine.txt.txt").values()
    (given,) = read_scores(folder / "machine.txt").values()
    assert (np.sort(read.score) == np.sort(given.score)).all()
    assert tuple(EXPORTS) == FORMS


def test_lists_without_people_and_predictions(folder: Path, tmp_path: Path) -> None:
    lists = f"{folder / 'machine_genuine.txt'},{folder / 'machine_impostor.txt'}"
    answer = json.loads(run(["evaluate", "--scores", lists, "--out", tmp_path, "--json"]))
    assert {row["figure"] for row in answer["tables"]["costs"]} == {"min_dcf", "min_cllr"}
    assert "do not say whose they are" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "figures" / "calibration.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name either a FILE of recordings or files of scores"),
        (("typing.csv", "--scores", "machine.txt"), "name either a FILE"),
        (("--scores", "machine.txt", "--prior", "1.5"), "a prior lies between 0 and 1"),
        (("--scores", "machine.txt", "--match-cost", "-1"), "the cost of a false match must be above 0"),
        (("--scores", "machine.txt", "--export", "xml"), "there is no form 'xml'"),
        (("--scores", "machine.txt", "--scores", "machine.txt"), "two systems are called machine.txt"),
    ],
)
def test_wrong_usage(
    folder: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert message in " ".join(run(["evaluate", *arguments], code=2).split())


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a a 1 0.5\na b 2 nan\n")
    output = run(["evaluate", "--scores", tmp_path / "a.txt", "--out", tmp_path], code=4)
    assert "line 2: the score is nan" in " ".join(output.split())


def test_the_report_in_the_documentation_is_small_and_stands_alone() -> None:
    page = (DOCS / "_static" / "scores-report.html").read_text(encoding="utf-8")
    assert len(page) < 400_000
    assert ">machine.txt</th>" in page
    assert 'class="links"' not in page
    # Nothing of the machine that made it.
    assert "<dt>time</dt>" not in page
    assert "numpy" not in page


def test_errors_at_each_prior_are_those_of_bayes_decisions() -> None:
    claims = made_claims(6, 3)
    genuine, impostor = claims.scores
    found = prior_errors(SystemFigures(claims))
    both = np.concatenate([genuine, impostor, [np.inf]])
    assert found.actual is not None
    for log_odds, least, known, actual in zip(
        found.log_odds[::20], found.least[::20], found.known[::20], found.actual[::20], strict=True
    ):
        prior = np.exp(log_odds) / (1 + np.exp(log_odds))
        every = [
            prior * (genuine < t).mean() + (1 - prior) * (impostor >= t).mean() for t in (*both, -log_odds)
        ]
        assert least == pytest.approx(min(every), abs=1e-12)
        assert actual == pytest.approx(every[-1], abs=1e-12)
        assert known == pytest.approx(min(prior, 1 - prior), rel=1e-9)
