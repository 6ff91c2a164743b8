"""What is recommended: chosen for each dataset without it, and recorded as it was chosen."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.detectors import make_detector
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.frame.score_datasets import CHOSEN, detector_for
from keydyn.lab.frame.study_data import load_row
from keydyn.lab.recommended.report import candidates, choices, try_candidates

# What all recordings choose together, and therefore the library's default.
DEFAULT = (4.0, "all")


def test_a_dataset_has_no_say_in_its_own_choice():
    """On a, one is far better; on b and c two is. Mobile and mobile+ are the same recordings."""
    measured = {"a": (0.01, 0.50), "b": (0.10, 0.08), "mobile": (0.12, 0.10), "mobile+": (0.12, 0.10)}
    tried = pd.DataFrame(
        [(name, f"{c}", 0.5, eer) for name, rates in measured.items() for c, eer in enumerate(rates)],
        columns=["dataset", "candidate", "acc", "eer"],
    )
    found = choices(tried).set_index("dataset")
    assert found["chosen"].to_dict() == {"a": "1", "b": "0", "mobile": "0", "mobile+": "0", "all": "0"}
    # without mobile, of a and b: (0.01 + 0.10) / 2; each recording counts once
    assert found.loc["mobile", "eer_on_the_others"] == pytest.approx(0.055)
    assert found.loc["b", "eer_on_the_others"] == pytest.approx((0.01 + 0.12) / 2)


def test_the_default_is_what_all_choose():
    detector = make_detector("pohmm-recommended")
    assert (detector.df, detector.spread_features) == DEFAULT
    assert detector_for("keypad", "pohmm-recommended").df == CHOSEN["keypad"][0]
    assert detector_for("typing", "pohmm-recommended").df == DEFAULT[0]


@pytest.mark.slow
def test_the_recorded_choice_is_what_the_data_choose(recordings, tmp_path):
    rows = [load_row(name, recordings) for name in CHOSEN]
    found = choices(try_candidates(rows, Parts(tmp_path, n_jobs=-1))).set_index("dataset")["chosen"]
    by_name = candidates()
    for name, chosen in {**CHOSEN, "all": DEFAULT}.items():
        candidate = by_name[found[name]]
        assert isinstance(candidate, RecommendedPOHMM)
        assert (candidate.df, candidate.spread_features) == chosen, name
