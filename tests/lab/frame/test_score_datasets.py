"""Scores of datasets are kept part by part: interrupted work resumes, and changed inputs are scored again."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.detectors import Detector, register
from keydyn.detectors.detector import _DETECTORS
from keydyn.evaluation.protocols.protocol import LeaveOneOut
from keydyn.keystrokes import Samples
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.frame.score_datasets import rank_rows, score_rows, scored_of
from keydyn.lab.frame.study_data import Row


class Counting(Detector):
    """Counts its fits; the score is the mean interval's closeness. Fails when asked to."""

    name = "counting"
    title = "Counting"
    fits = 0
    fails = False

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def fit(self, samples):
        type(self).fits += 1
        if self.fails:
            raise ValueError("asked to fail")
        self.mean_ = samples.vectors.mean()
        return self

    def score(self, samples):
        return -(np.abs(samples.vectors.mean(axis=1) - self.mean_) ** self.power)


@pytest.fixture
def counting():
    register(Counting)
    Counting.fits, Counting.fails = 0, False
    yield Counting
    del _DETECTORS["counting"]


@pytest.fixture(scope="module")
def row():
    samples = Samples.of(make_typists(4, 3, random_state=0))
    return Row("typed", samples, LeaveOneOut(), {"typed.csv": "0123"}, "ours")


def test_finished_parts_are_not_made_again(row, counting, tmp_path):
    first = score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 12
    again = score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 12
    assert again.equals(first)
    score_rows([row], [Counting()], Parts(tmp_path, fresh=True))
    assert counting.fits == 24


def test_a_resumed_study_writes_the_bytes_of_an_uninterrupted_one(row, tmp_path):
    parts, written = Parts(tmp_path / "parts"), []
    for name in ("first", "resumed"):
        outputs = Outputs(tmp_path / name)
        outputs.scores(score_rows([row], ["manhattan", "hmm"], parts.below("scores")))
        outputs.ranks(rank_rows([row], ["hmm"], parts.below("ranks")))
        written.append({path.name: path.read_bytes() for path in outputs.folder.iterdir()})
    assert set(written[0]) == {"scores.parquet", "ranks.parquet"}
    assert written[0] == written[1]


@pytest.mark.parametrize("changed", ["data", "protocol", "setting"])
def test_other_inputs_are_other_parts(row, counting, tmp_path, changed):
    score_rows([row], [Counting()], Parts(tmp_path))
    other, detector = row, Counting()
    if changed == "data":
        other = Row(row.name, row.samples, row.protocol, {"typed.csv": "4567"}, "ours")
    elif changed == "protocol":
        from keydyn.evaluation.protocols.protocol import Chronological

        other = Row(row.name, row.samples, Chronological(), row.checksums, "ours")
    else:
        detector = Counting(power=2.0)
    score_rows([other], [detector], Parts(tmp_path))
    assert counting.fits > 12


def test_a_crash_midway_leaves_what_was_finished_and_nothing_half(row, counting, tmp_path):
    score_rows([row], ["manhattan"], Parts(tmp_path))
    counting.fails = True
    with pytest.raises(ValueError, match="asked to fail"):
        score_rows([row], ["manhattan", Counting()], Parts(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["typed-manhattan.parquet"]
    counting.fails = False
    whole = scored_of(score_rows([row], ["manhattan", Counting()], Parts(tmp_path)))
    assert list(whole) == [("typed", "manhattan"), ("typed", "counting")]


def test_a_spoilt_part_is_made_anew(row, counting, tmp_path):
    score_rows([row], [Counting()], Parts(tmp_path))
    path = tmp_path / "typed-counting.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 24
    # Spoilt in the middle: it still says what it was made from.
    path.write_bytes(whole[:4] + bytes(len(whole) // 4) + whole[4 + len(whole) // 4 :])
    score_rows([row], [Counting()], Parts(tmp_path))
    assert counting.fits == 36


def test_progress_ends_at_the_whole(row, tmp_path):
    progress = []
    parts = Parts(tmp_path, show_progress=lambda what, share: progress.append(share))
    score_rows([row], ["manhattan", "hmm"], parts)
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(1.0)


def test_ranks_need_a_detector_of_events(row, tmp_path):
    with pytest.raises(ValueError, match="manhattan cannot score single events"):
        rank_rows([row], ["manhattan"], Parts(tmp_path))
