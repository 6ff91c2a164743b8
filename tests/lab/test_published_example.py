"""The paper's example of continuous verification: two numbers in the text and caption of its Figure 7."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.evaluation.continuous.lockout import RankPenalty
from keydyn.evaluation.continuous.penalty import first_above
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.frame.score_datasets import rank_rows, ranked_of
from keydyn.lab.frame.study_data import load_row


@pytest.mark.slow
def test_the_example(recordings, tmp_path):
    """The first sample of the first essay user: 81 keys on average, and 23 for the average penalty."""
    table = rank_rows([load_row("essay", recordings)], ["pohmm"], Parts(tmp_path, n_jobs=2))
    ranks = ranked_of(table)["essay", "pohmm"]
    levels = RankPenalty().levels(ranks)[: ranks.lengths[0]]
    own = ranks.own[0]
    assert own.sum() == 1
    threshold = levels[:, own].max()
    times = [first_above(column, threshold) for column in levels[:, ~own].T]
    assert round(np.mean(times)) == 81
    assert first_above(levels[:, ~own].mean(axis=1), threshold) == 23
