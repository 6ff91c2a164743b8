"""What people type as evidence, against the model's own answers, and where the text says nothing or all."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.detectors import fit_population
from keydyn.evaluation import LeaveOneOut
from keydyn.keystrokes.samples import Samples
from keydyn.lab.open_questions.typed_text import BOTH, EVIDENCE, TEXT, TIMES, TimesAndText, evidence
from keydyn.model import NGrams, Sequences


@pytest.fixture(scope="module")
def same_text():
    return Samples.without_vectors(make_typists(5, 4, random_state=3))


def test_both_is_the_joint_likelihood_of_the_model(same_text):
    own = same_text[same_text.users == 0]
    (times,) = fit_population("pohmm", own).detectors
    types = times.model_.event_types_
    text = NGrams.learn(own.sequences, 2, types)
    joint = times.model_.score_joint(own.sequences, text=text)
    np.testing.assert_allclose(TimesAndText(times, text).score(own), joint, rtol=1e-10)
    parts = TimesAndText(times).score(own) + TimesAndText(None, text).score(own)
    np.testing.assert_allclose(parts, joint, rtol=1e-10)


def test_where_all_type_the_same_the_text_says_nothing(same_text):
    """Five people, so that one in five is right by chance; times tell them apart as without the text."""
    table = evidence(LeaveOneOut(), same_text, (4, 40)).set_index(["evidence", "keys"]).sort_index()
    assert set(table.index) == {(name, n) for name in EVIDENCE for n in (4, 11)}
    assert table.loc[TEXT, "acc"].tolist() == pytest.approx([0.2] * 10)
    assert table.loc[TEXT, "eer"].tolist() == pytest.approx([0.5] * 10)
    whole = table[table["whole"]]
    for figure in ("acc", "eer", "eer_open", "rejection"):
        assert whole.loc[BOTH, figure].tolist() == pytest.approx(whole.loc[TIMES, figure].tolist())
    assert table.loc[~table["whole"], "rejection"].isna().all()


def test_where_everybody_has_keys_of_their_own_the_text_says_all():
    """The same times for everybody: times tell nothing, and the text tells everybody apart."""
    keys = ["".join(f"{key}" * 6) for key in "abcde"]
    X = np.tile(np.exp(np.random.default_rng(0).normal(5.0, 0.3, (6, 2))), (5 * 3, 1))
    labels = np.concatenate([list(text) for text in keys for _ in range(3)])
    names = [(user, session) for user in range(5) for session in range(3)]
    sequences = Sequences.from_arrays(X, labels, [6] * 15)
    samples = Samples(names, sequences, ("lognormal", "lognormal"))
    table = evidence(LeaveOneOut(), samples, ()).groupby("evidence")[["acc", "eer"]].mean()
    assert table.loc[TEXT].tolist() == [1.0, 0.0]
    assert table.loc[BOTH, "acc"] == 1.0
