"""Classification of sequences: one model per class, and the class that is most probable a posteriori."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from keydyn import files
from keydyn.arrays import Floats, Given
from keydyn.files import Kind, Tensor, Tensors, Values, check_tensors, declared
from keydyn.model.criteria import LIKELIHOOD, Discrimination, Labelled, TrainingCriterion, discriminated
from keydyn.model.data.sequences import as_sequences, check_weights
from keydyn.model.fit.many import fit_many, score_many
from keydyn.model.fit.threads import Learner
from keydyn.model.model_files import MODEL, contents_of
from keydyn.model.pohmm import POHMM


@dataclass(frozen=True, eq=False)
class Classes:
    """The fitted state of a classifier: sorted labels, a model and a prior of each, criterion history."""

    labels: NDArray[Any]
    models: list[Any]
    priors: Floats
    history: Floats | None = None


class POHMMClassifier(Learner, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Maximum a posteriori classification of sequences.

    Parameters
    ----------
    model : the estimator that is fitted to each class; `POHMM()` if None
    priors : "uniform", "empirical" (each class's share of the training sequences), one number per class in
        sorted order of the labels, or a dict by label
    n_jobs : number of threads for fitting and scoring; None for one
    criterion : "likelihood" fits each class by itself; "conditional" and "margin" then train all models
        together to tell the classes apart (`keydyn.model.criteria`). A `TrainingCriterion` has more settings

    Attributes
    ----------
    classes_ : the labels, sorted; models_ : a fitted model for each; priors_ : (C,) class probabilities
    criterion_history_ : the value of the criterion after each step; None for the likelihood

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM, POHMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> sequences = [rng.lognormal(location, 0.3, (40, 1)) for location in [5.0, 6.0] * 10]
    >>> labels = ["fast", "slow"] * 10
    >>> classifier = POHMMClassifier(POHMM(n_states=1)).fit(sequences[:16], labels[:16])
    >>> classifier.predict(sequences[16:]).tolist()
    ['fast', 'slow', 'fast', 'slow']
    """

    def __init__(
        self,
        model: POHMM | None = None,
        priors: Any = "uniform",
        n_jobs: int | None = None,
        criterion: str | TrainingCriterion = LIKELIHOOD,
    ) -> None:
        self.model = model
        self.priors = priors
        self.n_jobs = n_jobs
        self.criterion = criterion

    def fit(
        self, X: Any, y: ArrayLike, *, events: Any = None, lengths: Given = None, sample_weight: Given = None
    ) -> Self:
        """Fit a model to the sequences of each class; `y` has one label per sequence."""
        criterion = self._check_criterion()
        sequences = as_sequences(X, events, lengths)
        labels = _check_labels(y, len(sequences))
        weights = None if sample_weight is None else check_weights(sample_weight, len(sequences))
        classes, number = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"there is one class only, {classes.tolist()[0]!r}: nothing to tell apart")
        members = [np.flatnonzero(number == c) for c in range(len(classes))]
        priors = self._check_priors(classes, np.bincount(number, weights))
        models = fit_many(
            POHMM() if self.model is None else self.model,
            [sequences[which] for which in members],
            n_jobs=self.n_jobs,
            sample_weight=None if weights is None else [weights[which] for which in members],
        )
        history = None
        if criterion is not None:
            each = np.ones(len(sequences)) if weights is None else weights
            with np.errstate(divide="ignore"):
                log_priors = np.log(priors)
            problem = Discrimination(
                models, Labelled(sequences, number, each), log_priors, criterion, self.n_jobs
            )
            models, history = discriminated(problem)
        self._state = Classes(classes, models, priors, history)
        return self

    @property
    def criterion_history_(self) -> Floats | None:
        return self._known().history

    @property
    def classes_(self) -> NDArray[Any]:
        return self._known().labels

    @property
    def models_(self) -> list[Any]:
        return self._known().models

    @property
    def priors_(self) -> Floats:
        return self._known().priors

    def _known(self) -> Classes:
        state: Classes = super()._known()
        return state

    def log_likelihoods(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(x | Ω, class) of each sequence under each class's model, (S, C)."""
        models = self._known().models
        return score_many(models, as_sequences(X, events, lengths), self.n_jobs).T

    def predict_log_proba(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(class | x, Ω) of each sequence, (S, C)."""
        own = self._as_it_is()
        with np.errstate(divide="ignore"):
            joint = own.log_likelihoods(X, events=events, lengths=lengths) + np.log(own.priors_)
        total = np.logaddexp.reduce(joint, axis=1)
        impossible = np.flatnonzero(np.isneginf(total))
        if len(impossible):
            raise ValueError(f"sequence {impossible[0]} has probability zero under every class's model")
        logs: Floats = joint - total[:, None]
        return logs

    def predict_proba(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """P(class | x, Ω) of each sequence, (S, C)."""
        return np.exp(self.predict_log_proba(X, events=events, lengths=lengths))

    def predict(self, X: Any, *, events: Any = None, lengths: Given = None) -> NDArray[Any]:
        """The most probable class of each sequence."""
        own = self._as_it_is()
        best = np.argmax(own.predict_log_proba(X, events=events, lengths=lengths), axis=1)
        labels: NDArray[Any] = own.classes_[best]
        return labels

    def score(
        self, X: Any, y: ArrayLike, *, events: Any = None, lengths: Given = None, sample_weight: Given = None
    ) -> float:
        """The share of sequences whose class is predicted correctly."""
        predicted = self.predict(X, events=events, lengths=lengths)
        right = predicted == _check_labels(y, len(predicted))
        weights = None if sample_weight is None else check_weights(sample_weight, len(right))
        return float(np.average(right, weights=weights))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the classifier to a file (docs/file-format.md) that `keydyn.load` reads.

        The file has the fitted models and priors, but neither `n_jobs` nor the criterion. Priors that were
        given per class come back as numbers.
        """
        self._known()
        files.write(path, CLASSIFIER.packed(*_contents(self._as_it_is())))

    def _check_criterion(self) -> TrainingCriterion | None:
        """The criterion for training the models together; None if each class is fitted by itself."""
        if isinstance(self.criterion, TrainingCriterion):
            return self.criterion
        return None if self.criterion == LIKELIHOOD else TrainingCriterion(self.criterion)

    def _check_priors(self, classes: NDArray[Any], counts: NDArray[Any]) -> Floats:
        n_classes = len(classes)
        if isinstance(self.priors, str):
            if self.priors == "uniform":
                return np.full(n_classes, 1.0 / n_classes)
            if self.priors == "empirical":
                return np.asarray(counts / counts.sum(), dtype=np.float64)
            raise ValueError(f"priors must be 'uniform', 'empirical', numbers or a dict, not {self.priors!r}")
        if isinstance(self.priors, Mapping):
            labels = classes.tolist()
            if set(self.priors) != set(labels):
                raise ValueError(f"priors must have an entry for each of {labels}")
            given = np.array([self.priors[label] for label in labels], dtype=np.float64)
        else:
            given = np.asarray(self.priors, dtype=np.float64)
        if given.shape != (n_classes,) or not (given >= 0).all() or not np.isclose(given.sum(), 1.0):
            raise ValueError(f"priors must be {n_classes} probabilities that add up to one")
        return given


def _check_labels(y: ArrayLike, n_sequences: int) -> NDArray[Any]:
    """Check that there is one label per sequence and none is missing; return them as an array."""
    labels = np.asarray(y)
    if labels.shape != (n_sequences,):
        raise ValueError(f"y must be one label per sequence: {n_sequences} sequences, shape {labels.shape}")
    missing = np.asarray(pd.isna(np.asarray(y, dtype=object)))
    if missing.any():
        raise ValueError(f"the label of sequence {int(np.argmax(missing))} is missing")
    return labels


# A classifier in a file: the models of its classes side by side, the labels and the priors.

LABEL_KINDS: dict[str, Any] = {"text": str, "whole": np.int64, "number": np.float64, "truth": np.bool_}


def _contents(classifier: POHMMClassifier) -> tuple[Values, Tensors]:
    """The fields and arrays of a fitted classifier's file."""
    labels, priors = classifier.classes_, classifier.priors
    kind = {"U": "text", "i": "whole", "u": "whole", "f": "number", "b": "truth"}.get(labels.dtype.kind)
    if kind is None:
        raise ValueError(f"labels of type {labels.dtype} cannot be saved; text, numbers and truth values can")
    tensors: Tensors = {"priors": classifier.priors_}
    headers = []
    for c, model in enumerate(classifier.models_):
        header, own = contents_of(model)
        headers.append(header)
        tensors |= {f"{c}.{name}": values for name, values in own.items()}
    values = {
        "labels": labels.tolist(),
        "kind": kind,
        "priors": priors if isinstance(priors, str) else "given",
        "models": headers,
    }
    return values, tensors


def _labels(values: Values) -> NDArray[Any]:
    listed = values["labels"]
    labels: NDArray[Any] = np.array(listed, dtype=LABEL_KINDS[values["kind"]])
    if len(labels) < 2 or labels.ndim != 1 or labels.tolist() != listed or (labels[1:] <= labels[:-1]).any():
        raise ValueError("the labels must be two or more, different and in order")
    if len(values["models"]) != len(labels):
        raise ValueError("there must be one model for each label")
    return labels


def _built(values: Values, tensors: Tensors) -> POHMMClassifier:
    labels, own, models = _labels(values), dict(tensors), []
    for c, header in enumerate(values["models"]):
        names = [name for name in tensors if name.startswith(f"{c}.")]
        part = {name.removeprefix(f"{c}."): own.pop(name) for name in names}
        models.append(MODEL.restored(header, part))
    check_tensors(own, {"priors": Tensor((len(labels),), files.probabilities)})
    given = values["priors"] == "given"
    classifier = POHMMClassifier(clone(models[0]), own["priors"].tolist() if given else values["priors"])
    classifier._state = Classes(labels, models, own["priors"])
    return classifier


CLASSIFIER = declared(
    Kind(
        POHMMClassifier.__name__,
        {
            "labels": files.many(files.anything),
            "kind": files.one_of(*LABEL_KINDS),
            "priors": files.one_of("uniform", "empirical", "given"),
            "models": files.many(files.mapping),
        },
        None,
        _built,
    )
)
