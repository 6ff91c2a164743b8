"""Accuracy and equal error rate of detectors that are trained to tell people apart, and of their rivals.

Two of these detectors start from the recommended POHMM and continue training with a criterion that separates
people. Every candidate, a detector with particular settings, is tried on every row. The candidate reported
for a dataset is the one with the lowest mean equal error rate over the other recordings, so that no sample
influences the settings with which it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar, Self

import pandas as pd

from keydyn.detectors import Detector, HybridPOHMM
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.evaluation.protocols.running import enrolments, n_templates, scores_of
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import detector_for, inputs_of, user_figures
from keydyn.lab.frame.study_data import FirstFolds, Row
from keydyn.lab.recommended.report import choices
from keydyn.model import POHMMClassifier, TrainingCriterion

# Steps of the search, which begins at the maximum-likelihood models of each person.
STEPS = 8


class TrainedTogether(RecommendedPOHMM):
    """The POHMM of a person, trained by a criterion that compares it with the models of everyone else.

    `prepare` fits the models of all people in the training data, each to its own samples, and then optimises
    the criterion. `strength` is the criterion's sharpness times the mean number of keys in a sample, so that
    it means the same for samples of ten keys and of five hundred; `lean` is passed to the criterion.
    """

    learns_people: ClassVar[bool] = True
    stores_templates: ClassVar[bool] = False
    criterion: ClassVar[str]
    prepared_models_: dict[Any, Any]

    def __init__(self, strength: float = 1.0, lean: float = 1.0, df: float | None = 4.0) -> None:
        super().__init__(df)
        self.strength, self.lean = strength, lean

    def prepare(self, everyone: Samples) -> Self:
        prepared = super().prepare(everyone)
        sharpness = self.strength / float(everyone.sequences.lengths.mean())
        criterion = TrainingCriterion(self.criterion, sharpness, self.lean, STEPS)
        codes, users = everyone.people
        classifier = POHMMClassifier(self.unfitted(everyone), criterion=criterion)
        classifier.fit(everyone.sequences, codes)
        prepared.prepared_models_ = dict(zip(users.tolist(), classifier.models_, strict=True))
        return prepared

    def fit(self, samples: Samples) -> Self:
        if not hasattr(self, "prepared_models_"):
            raise ValueError(f"{self.name} is trained on everyone at once: call prepare before fit")
        self.model_ = self.prepared_models_[samples.users.tolist()[0]]
        return self

    @property
    def limited(self) -> bool:
        """Always False: the number of steps is a setting, and reaching it is not a failure."""
        return False


class ConditionalPOHMM(TrainedTogether):
    """A POHMM trained to maximise the probability of the right person given the sample."""

    name: ClassVar[str] = "pohmm-conditional"
    title: ClassVar[str] = "POHMM (conditional)"
    criterion: ClassVar[str] = "conditional"


class MarginPOHMM(TrainedTogether):
    """A POHMM trained to increase the margin of the right person over all others."""

    name: ClassVar[str] = "pohmm-margin"
    title: ClassVar[str] = "POHMM (margin)"
    criterion: ClassVar[str] = "margin"


FRAME = "trained"
RIVALS = ("pohmm", "pohmm-recommended", "population")
CRITERIA = (ConditionalPOHMM, MarginPOHMM)
# The strength of a criterion, and its pull towards the maximum-likelihood models.
STRENGTHS = ((1.0, 1.0), (3.0, 1.0), (3.0, 10.0))
MACHINES = (
    *(("linear", C, 1.0) for C in (0.001, 0.01, 0.1)),
    *(("rbf", C, gamma) for C in (1.0, 10.0) for gamma in (0.3, 1.0)),
)
# The number of a row's enrolments for which all people are trained together, which takes long.
FOLDS = {"password": 1, "keypad": 5, "mobile": 5, "mobile+": 2, "fable": 2, "essay": 1, SIMULATED: 2}
ALL, FIRST = "all", "first"
# The duration of training per template relative to the rivals; used for the progress bar only.
TRAINING = 15.0


def candidates(dataset: str) -> dict[str, Detector]:
    """All detectors by name and settings; rivals have no settings to choose."""
    found: dict[str, Detector] = {name: detector_for(dataset, name) for name in RIVALS}
    df = getattr(found["pohmm-recommended"], "df", None)
    for kind, (strength, lean) in product(CRITERIA, STRENGTHS):
        found[f"{kind.name}, strength {strength:g}, lean {lean:g}"] = kind(strength, lean, df)
    for kernel, C, gamma in MACHINES:
        width = f", γ {gamma:g}" if kernel == "rbf" else ""
        found[f"{HybridPOHMM.name}, {kernel}, C {C:g}{width}"] = HybridPOHMM(kernel, C, gamma)
    return found


def pieces(rows: Sequence[Row], seed: int) -> Mapping[str, Sequence[Piece]]:
    """A piece for each row and candidate."""
    return {FRAME: [_piece(row, name, one) for row in rows for name, one in candidates(row.name).items()]}


def _piece(row: Row, candidate: str, detector: Detector) -> Piece:
    together = isinstance(detector, CRITERIA)
    protocol = FirstFolds(row.protocol, FOLDS[row.name])
    events = row.samples.sequences.n_events / len(row.samples.people[1])
    fits = n_templates(protocol if together else row.protocol, detector, row.samples)
    call = partial(found, row, candidate, detector, FOLDS[row.name])
    inputs = inputs_of(row, detector) | {"candidate": candidate, "first": FOLDS[row.name]}
    inputs |= {"steps": STEPS} if together else {}
    stem = candidate.replace(", ", "-").replace(" ", "").replace("γ", "gamma")
    name = f"{FRAME}-{row.name}-{stem}"
    cost = fits * events * (TRAINING if together else 1.0)
    return Piece((name,), inputs, [call], f"{row.name} · {candidate}", cost)


def found(row: Row, candidate: str, detector: Detector, first: int) -> pd.DataFrame:
    """A frame of dataset, detector, candidate, enrolments ("first" or "all"), user, acc and eer.

    `first` is the number of first enrolments. Detectors that are trained together have figures of these only.
    """
    together = isinstance(detector, CRITERIA)
    protocol = FirstFolds(row.protocol, first) if together else row.protocol
    enrolled = enrolments(protocol, detector, row.samples)
    frames = []
    for which in (FIRST,) if together else (FIRST, ALL):
        some = enrolled[:first] if which == FIRST else enrolled
        table = user_figures(scores_of(protocol, some, row.samples))
        labels = {"dataset": row.name, "detector": detector.name, "candidate": candidate}
        frames.append(table.assign(**labels, enrolments=which))
    return pd.concat(frames, ignore_index=True)


def tried(measured: pd.DataFrame, detector: str, enrolments: str) -> pd.DataFrame:
    """A frame of dataset, candidate, and mean acc and eer over users, for all candidates of a detector."""
    own = measured[(measured["detector"] == detector) & (measured["enrolments"] == enrolments)]
    means = own.groupby(["dataset", "candidate"], sort=False)[["acc", "eer"]].mean()
    return means.reset_index()


def chosen(measured: pd.DataFrame, detector: str, enrolments: str) -> dict[str, str]:
    """The candidate that the other recordings select for each dataset; the first if there are no others."""
    of_all = tried(measured, detector, enrolments)
    datasets = list(dict.fromkeys(of_all["dataset"]))
    if len({name.removesuffix("+") for name in datasets}) < 2:
        return dict.fromkeys(datasets, str(of_all["candidate"].iloc[0]))
    picked = choices(of_all)
    by_dataset = dict(zip(picked["dataset"].astype(str), picked["chosen"].astype(str), strict=True))
    return {name: by_dataset[name] for name in datasets}


def reported(measured: pd.DataFrame, detectors: Sequence[str], enrolments: str) -> pd.DataFrame:
    """The users' figures of each detector, with the settings selected on the other recordings."""
    frames = []
    for detector in detectors:
        own = measured[(measured["detector"] == detector) & (measured["enrolments"] == enrolments)]
        by_dataset = chosen(measured, detector, enrolments)
        frames.append(own[own["candidate"] == own["dataset"].map(by_dataset)])
    return pd.concat(frames, ignore_index=True)
