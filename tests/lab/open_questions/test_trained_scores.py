"""Detectors trained to tell people apart: what they learn from, and who chooses their settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from keydyn import POHMMClassifier
from keydyn.datasets import make_typists
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.protocols.running import enrolments, score_protocol, scores_of
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.study_data import FirstFolds, Row
from keydyn.lab.open_questions.trained import CRITERION, compared
from keydyn.lab.open_questions.trained_scores import (
    ALL,
    FIRST,
    STEPS,
    ConditionalPOHMM,
    MarginPOHMM,
    chosen,
    found,
    reported,
)
from keydyn.model import TrainingCriterion


@pytest.fixture(scope="module")
def samples():
    return Samples.of(make_typists(4, 5, random_state=2))


def figures(eer):
    """Frames as pieces make them: the equal error rate of one user by dataset and candidate."""
    rows = [
        {
            "dataset": dataset,
            "detector": "some",
            "candidate": candidate,
            "user": "1",
            "eer": value,
            "acc": 1.0,
        }
        for dataset, of_dataset in eer.items()
        for candidate, value in of_dataset.items()
    ]
    return pd.DataFrame(rows).assign(enrolments=FIRST)


def test_a_dataset_has_no_say_in_its_own_settings():
    """Whatever a dataset's own figures are, its settings stay; those of the others follow them."""
    others = {"keypad": {"a": 0.1, "b": 0.2}, "fable": {"a": 0.1, "b": 0.3}}
    for own in (0.0, 0.5, 1.0):
        eer = others | {"essay": {"a": own, "b": 1.0 - own}}
        picked = chosen(figures(eer), "some", FIRST)
        assert picked["essay"] == "a"
        # Of keypad, fable and essay choose: a has (0.1 + own) / 2 and b has (0.3 + 1 − own) / 2.
        assert picked["keypad"] == ("a" if 0.1 + own < 1.3 - own else "b")


def test_the_same_recordings_with_sensors_are_no_other_recordings():
    """Mobile and mobile+ are one recording: neither chooses for the other."""
    eer = {"mobile": {"a": 0.0, "b": 1.0}, "mobile+": {"a": 0.0, "b": 1.0}, "fable": {"a": 1.0, "b": 0.0}}
    picked = chosen(figures(eer), "some", FIRST)
    assert (picked["mobile"], picked["mobile+"], picked["fable"]) == ("b", "b", "a")
    alone = chosen(figures({"mobile": {"z": 1.0, "b": 0.0}}), "some", FIRST)
    assert alone == {"mobile": "z"}


def test_only_the_chosen_candidate_is_reported():
    eer = {"keypad": {"a": 0.1, "b": 0.2}, "fable": {"a": 0.4, "b": 0.3}}
    table = reported(figures(eer), ["some"], FIRST)
    assert table[["dataset", "candidate"]].to_numpy().tolist() == [["keypad", "b"], ["fable", "a"]]


@pytest.mark.parametrize("kind", [ConditionalPOHMM, MarginPOHMM])
def test_the_models_are_those_of_the_classifier(samples, kind):
    detector = kind(strength=2.0, lean=0.5).prepare(samples)
    criterion = TrainingCriterion(kind.criterion, 2.0 / 11, 0.5, STEPS)
    classifier = POHMMClassifier(RecommendedPOHMM().unfitted(samples), criterion=criterion)
    classifier.fit(samples.sequences, samples.users)
    for user, expected in zip(
        classifier.classes_, classifier.log_likelihoods(samples.sequences).T, strict=True
    ):
        template = detector.fresh().fit(samples[samples.users == user])
        np.testing.assert_allclose(template.score(samples), expected, rtol=1e-12)
    # The criterion did something.
    assert classifier.criterion_history_[-1] > classifier.criterion_history_[0] + 0.1


def test_a_strong_lean_is_the_recommended_pohmm(samples):
    held = score_protocol(MonacoTappert(), ConditionalPOHMM(lean=1e9), samples)
    plain = score_protocol(MonacoTappert(), RecommendedPOHMM(), samples)
    np.testing.assert_allclose(held.raw, plain.raw, rtol=1e-6)


def test_training_sees_no_query(samples):
    """Whatever is asked, the models stay, although the protocol takes scales from all samples."""
    protocol = FirstFolds(MonacoTappert(), 1)
    split = protocol.splits(samples)[0]
    X = samples.sequences.X.copy()
    asked = np.repeat(split.query, samples.sequences.lengths)
    X[asked] *= 3.0
    changed = replace(samples, sequences=samples.sequences.with_values(X))
    models = [
        [one.model_.emission_[0].loc for one in enrolled[0].population.detectors]
        for enrolled in (enrolments(protocol, MarginPOHMM(), each) for each in (samples, changed))
    ]
    np.testing.assert_array_equal(*models)


def test_unprepared_it_says_so(samples):
    with pytest.raises(ValueError, match="call prepare before fit"):
        ConditionalPOHMM().fit(samples)


def test_the_figures_of_a_piece(samples):
    row = Row("mine", samples, MonacoTappert(), {}, "ours")
    table = found(row, "plain", RecommendedPOHMM(), 2)
    whole = recognition(score_protocol(MonacoTappert(), RecommendedPOHMM(), samples))
    first = recognition(score_protocol(FirstFolds(MonacoTappert(), 2), RecommendedPOHMM(), samples))
    for which, expected in ((ALL, whole), (FIRST, first)):
        own = table[table["enrolments"] == which]
        np.testing.assert_array_equal(own["eer"], expected["eer"])
    trained = found(row, "trained", MarginPOHMM(), 2)
    assert trained["enrolments"].unique().tolist() == [FIRST]
    enrolled = enrolments(FirstFolds(MonacoTappert(), 2), MarginPOHMM(), samples)
    scores = scores_of(MonacoTappert(), enrolled, samples)
    np.testing.assert_array_equal(trained["acc"], recognition(scores)["acc"])


def measured():
    """Twelve users: a criterion halves each equal error rate on keypad, and doubles it on fable."""
    frames = []
    random = np.random.default_rng(0)
    for dataset, factor in (("keypad", 0.5), ("fable", 2.0)):
        start = random.uniform(0.05, 0.1, 12)
        eers = {"pohmm": 1.2 * start, "pohmm-recommended": start, "population": 3.0 * start}
        eers |= {"pohmm-conditional": factor * start, "pohmm-margin": start}
        for detector, eer in eers.items():
            users = {"user": [str(u) for u in range(12)], "eer": eer, "acc": 1.0 - eer}
            frames.append(
                pd.DataFrame(users).assign(dataset=dataset, detector=detector, candidate=f"{detector}, x")
            )
    return pd.concat(frames, ignore_index=True).assign(enrolments=FIRST)


def test_what_the_table_and_the_answer_say():
    names = ("pohmm-conditional", "pohmm-margin")
    table = compared("criterion", "title", measured(), names, FIRST, 0)
    frame = table.frame.set_index(["dataset", "detector"])
    # All twelve differences have one sign: p = 2 / 2^12.
    assert frame.loc[("keypad", "pohmm-conditional"), "eer_p"] == pytest.approx(2.0 / 2**12)
    assert frame.loc[("keypad", "pohmm-margin"), "eer_p"] == 1.0
    assert frame.loc[("keypad", "pohmm-conditional"), "eer_bold"]
    assert not frame.loc[("keypad", "pohmm-recommended"), "eer_bold"]
    first, second = CRITERION.answer({"criterion": table.frame})
    assert "significantly for the better on 1 of 2 datasets and for the worse on 1 of 2 datasets" in first
    assert "POHMM (margin) changes the equal error rate of the recommended POHMM by +0.00 points" in first
    assert "POHMM (conditional) has the lowest equal error rate on Keypad" in second
