"""Score files: every layout, written by hand; messages about bad ones; files written and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from keydyn.evaluation.score_files.reading import read_scores
from keydyn.evaluation.score_files.writing import EXPORTS, write_scores
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.evaluation.scores import Scores
from keydyn.lab.frame.score_datasets import score_table
from tests.evaluation.rates.test_system_figures import made_claims

FOUR = "ann ann one 2.5\nann bob two 0.1\nbob bob two 1.5\nbob ann one -4e-1\n"
FIVE = "ann m1 ann one 2.5\nann m1 bob two 0.1\nbob m2 bob two 1.5\nbob m2 ann one -4e-1\n"
ALIGNED = "ann  ann   one   2.5\nann\tbob two 0.1\n\nbob bob two 1.5\nbob ann one -0.4\n"
CSV = (
    "probe_template_id,probe_subject_id,probe_age,bio_ref_template_id,bio_ref_subject_id,score\n"
    'one,ann,30,m1,ann,2.5\ntwo,bob,"4,0",m1,ann,0.1\ntwo,bob,40,m2,bob,1.5\none,ann,30,m2,bob,-0.4\n'
)


@pytest.mark.parametrize("text", [FOUR, FIVE, ALIGNED, CSV, "\ufeff" + CSV])
def test_layouts_of_bob(tmp_path: Path, text: str) -> None:
    (tmp_path / "svm.x").write_text(text, encoding="utf-8")
    systems = read_scores(tmp_path / "svm.x")
    assert [*systems] == ["svm.x"]
    claims = systems["svm.x"]
    assert claims.scores[0].tolist() == [2.5, 1.5]
    assert claims.scores[1].tolist() == [0.1, -0.4]
    assert [claims.people[u] for u in claims.claimed] == ["ann", "ann", "bob", "bob"]
    assert [claims.people[u] for u in claims.typist] == ["ann", "bob", "bob", "ann"]
    assert claims.trials == (2, 2)


def test_distances_are_turned_round(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FOUR)
    assert read_scores(tmp_path / "a.txt", distances=True)["a.txt"].scores[0].tolist() == [-2.5, -1.5]


def test_attacks_are_a_column_of_bobs_csv(tmp_path: Path) -> None:
    rows = "a,a,1,,3.0\na,b,2,,1.0\na,b,3,robot,2.0\n"
    header = "bio_ref_subject_id,probe_subject_id,probe_key,probe_attack_type,score\n"
    (tmp_path / "v.csv").write_text(header + rows)
    claims = read_scores(tmp_path / "v.csv")["v.csv"]
    assert claims.attacks == ("robot",)
    assert claims.attack is not None
    assert claims.attack.tolist() == [-1, -1, 0]
    assert claims.scores[1].tolist() == [1.0]


def test_lists_of_pyeer(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0.5\n0.25\n")
    (tmp_path / "i.txt").write_text("one two 0.125\n\nthree four 0\n")
    claims = read_scores(f"{tmp_path / 'g.txt'},{tmp_path / 'i.txt'}")["g.txt"]
    assert claims.scores[0].tolist() == [0.5, 0.25]
    assert claims.scores[1].tolist() == [0.125, 0.0]
    assert not claims.has_people
    with pytest.raises(ValueError, match=r"g\.txt has scores alone: name both lists"):
        read_scores(tmp_path / "g.txt")


@pytest.mark.parametrize(
    ("comparisons", "predictions"),
    [
        ("7_1 7_2\n7_1 8_1\n8_1 8_2\n", "0.9\n0.2\n0.8\n"),
        ("7_1,7_2\n7_1,8_1\n8_1,8_2", "[0.9, 0.2, 0.8]"),
        ("[('7_1', '7_2'), ('7_1', '8_1'), ('8_1', '8_2')]", "0.9\n0.2\n0.8"),
        ("x y 1\nx z 0\nu v 1\n", "0.9\n0.2\n0.8\n"),
    ],
)
def test_lists_of_the_challenge(tmp_path: Path, comparisons: str, predictions: str) -> None:
    (tmp_path / "c.txt").write_text(comparisons)
    (tmp_path / "p.txt").write_text(predictions)
    claims = read_scores(tmp_path / "p.txt", tmp_path / "c.txt")["p.txt"]
    assert claims.scores[0].tolist() == [0.9, 0.8]
    assert claims.scores[1].tolist() == [0.2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.txt is empty"),
        ("\n\n", r"a\.txt is empty"),
        ("ann ann one nan\n" + FOUR, r"a\.txt, line 1: the score is nan, which is not finite"),
        (FOUR + "\nann bob three inf\n", r"a\.txt, line 6: the score is inf"),
        (FOUR + "ann bob three much\n", r"a\.txt, line 5: the score 'much' is not a number"),
        (
            FOUR + "ann bob 3\n",
            r"line 5: there are 3 columns, not 4 \(claimed, real, sample, score\)",
        ),
        (FOUR + "ann bob two 7\n", r"a\.txt, line 5: this comparison is in line 2 too \(claimed ann"),
        ("ann ann one 1\nbob bob two 2\n", r"a\.txt has genuine scores only; error rates need both"),
        ("ann bob one 1\nbob ann two 2\n", r"a\.txt has impostor scores only"),
        ("user session\n1 2\n", r"line 1: 'user session' is not in a known layout"),
        ("probe_subject_id,score\na,1\n", r"there is no column bio_ref_subject_id"),
        (CSV + "one,ann,30,m1,ann\n", r"a\.txt, line 6: there are 5 columns, not 6"),
        (CSV + "one,ann,30,m3,ann,\n", r"a\.txt, line 6: the score '' is not a number"),
        (CSV.splitlines()[0] + "\n", r"a\.txt has no scores"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_scores(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("comparisons", "predictions", "message"),
    [
        ("7_1 7_2\n7_1 8_1\n", "1\n", "has 1 predictions, but .* has 2 comparisons"),
        ("7_1 7_2\nx 8_1\n", "1\n2\n", r"line 2: 'x' does not name its user"),
        ("7_1 7_2\n7_1\n", "1\n2\n", "line 2: a comparison needs two sessions"),
        ("7_1 7_2\n7_1 7_2\n", "1\n2\n", "line 2: this comparison occurs twice"),
        ("a b 1\na c 2\n", "1\n2\n", "line 2: the label must be 0 or 1"),
        ("a b 1\na c 0\n", "1\nnan\n", "line 2: the score is nan"),
        ("[[", "1\n", "cannot be read as a list"),
        ("[]", "1\n", "no entries"),
    ],
)
def test_what_is_wrong_with_lists(tmp_path: Path, comparisons: str, predictions: str, message: str) -> None:
    (tmp_path / "c.txt").write_text(comparisons)
    (tmp_path / "p.txt").write_text(predictions)
    with pytest.raises(ValueError, match=message):
        read_scores(tmp_path / "p.txt", tmp_path / "c.txt")


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_scores(tmp_path / "none.txt")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file in UTF-8"):
        read_scores(tmp_path / "b.txt")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="cannot be read"):
        read_scores(tmp_path / "b.parquet")


@pytest.mark.parametrize("layout", [*EXPORTS])
def test_what_is_written_is_read_back(tmp_path: Path, layout: str) -> None:
    claims = made_claims(5, 3)
    paths = write_scores(claims, tmp_path, "my system", layout)
    assert all(path.name.startswith("my-system") for path in paths)
    source = {"pyeer": ",".join(map(str, paths)), "kvc": str(paths[-1])}.get(layout, str(paths[0]))
    (read,) = read_scores(source, paths[0] if layout == "kvc" else None).values()
    if layout == "pyeer":
        assert all((a == b).all() for a, b in zip(read.scores, claims.scores, strict=True))
        return
    assert (read.score == claims.score).all()
    for ours, theirs in ((claims.claimed, read.claimed), (claims.typist, read.typist)):
        assert [claims.people[u] for u in ours] == [read.people[u] for u in theirs]
    assert read.trials == claims.trials


def test_forms_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no form 'xml'"):
        write_scores(made_claims(2, 2), tmp_path, "a", "xml")
    nameless = ScoredClaims.without_people(np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="bob needs names of people"):
        write_scores(nameless, tmp_path, "a", "bob")


def test_our_own_scores(tmp_path: Path) -> None:
    """Normalised as their protocol says, and only where they are trials."""
    raw = np.array([[3.0, 1.0, 0.0], [0.0, 5.0, 2.5]])
    trials = np.array([[True, True, False], [True, True, True]])
    users = np.array(["a", "b", "c"])
    scores = Scores(users[:2], np.array([1, 1]), np.zeros(2, dtype=int), users, raw, trials)
    pq.write_table(score_table(scores, "mine", "manhattan", "leave-one-out"), tmp_path / "scores.parquet")
    claims = read_scores(tmp_path / "scores.parquet")["manhattan"]
    assert claims.scores[0].tolist() == [1.0, 1.0]
    assert claims.scores[1] == pytest.approx([1 / 3, 0.0, 0.5])
    assert claims.trials == (2, 2)
