"""Our long-text vectors beside the published ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import load_dataset
from keydyn.keystrokes.long_text import COLUMNS, long_text_vectors
from keydyn.lab import long_text_agreement

# Accuracy and equal error rate in the paper, of the authors' vectors.
PUBLISHED = {
    "fable": [(0.492, 0.085), (0.613, 0.049), (0.571, 0.099)],
    "essay": [(0.730, 0.061), (0.839, 0.028), (0.342, 0.098)],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_detectors_reach_the_published_figures_with_our_vectors(recordings, name):
    dataset = load_dataset(name, recordings)
    found = long_text_agreement.detectors_on(dataset, long_text_vectors(dataset.keystrokes))
    # Three decimals: half a unit of the last.
    np.testing.assert_allclose(found[["accuracy", "eer"]], PUBLISHED[name], rtol=0, atol=0.5e-3 + 1e-9)


def test_a_difference_is_seen_in_its_family_alone():
    index = pd.MultiIndex.from_product([range(2), range(2)], names=["user", "session"])
    theirs = pd.DataFrame(100.0, index=index, columns=list(COLUMNS))
    ours = theirs.copy()
    ours.loc[(1, 1), "t1_t__h.std"] = 101.0
    table = long_text_agreement.agreement(ours, theirs).set_index(["time", "statistic", "level"])
    assert table["columns"].sum() == 218
    assert table["values"].sum() == 4 * 218
    assert table.loc[("t1", "std", 3), "equal"] == pytest.approx(1 - 1 / (4 * 15))
    assert table.loc[("t1", "std", 3), "largest"] == pytest.approx(0.01)
    assert (table.drop(("t1", "std", 3))["equal"] == 1).all()


def test_command(recordings, tmp_path, capsys):
    assert long_text_agreement.main([str(recordings)]) == 0
    printed = capsys.readouterr().out
    assert "manhattan-scaled" in printed
    assert "essay" in printed
    assert long_text_agreement.main(["a", "b"]) == 2
    assert "usage" in capsys.readouterr().err
    assert long_text_agreement.main([str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
