"""The bad input table for whole models: classifiers, many models, data frames."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from keydyn import POHMM, POHMMClassifier, Sequences, fit_many

NAN = np.nan
KNOWN = POHMM.from_parameters(
    ["a", "b"], np.full((2, 2), 0.5), np.full((2, 2, 2, 2), 0.5), [("normal", np.zeros((2, 2)), 1.0)]
)
RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(4.0, 0.3, (60, 1)))
LENGTHS = [20, 25, 15]
USERS = ["u", "v", "u"]
GOOD, BAD = Sequences.from_arrays(X, None, LENGTHS), Sequences.from_arrays(-X, None, LENGTHS)


def classify(y=USERS, **settings):
    return POHMMClassifier(POHMM(tol=0.1), **settings).fit(X, y, lengths=LENGTHS)


MANY = {
    "one class": (lambda: classify(["u", "u", "u"]), "one class only.*'u'"),
    "labels too few": (
        lambda: classify(["u", "v"]),
        r"y must be one label per sequence: 3 sequences, shape \(2,\)",
    ),
    "labels per event": (lambda: classify(["u", "v"] * 30), "y must be one label per sequence: 3 sequences"),
    "no labels": (lambda: classify(None), "y must be one label per sequence"),
    "priors name": (lambda: classify(priors="flat"), "priors must be 'uniform', 'empirical'"),
    "priors sum": (lambda: classify(priors=[0.5, 0.6]), "priors must be 2 probabilities that add up to one"),
    "priors negative": (lambda: classify(priors=[1.5, -0.5]), "priors must be 2 probabilities"),
    "priors NaN": (lambda: classify(priors=[NAN, 1.0]), "priors must be 2 probabilities"),
    "priors too few": (lambda: classify(priors=[1.0]), "priors must be 2 probabilities"),
    "priors of one": (lambda: classify(priors={"u": 1.0}), r"an entry for each of \['u', 'v'\]"),
    "class without weight": (
        lambda: POHMMClassifier(POHMM(tol=0.1)).fit(X, USERS, lengths=LENGTHS, sample_weight=[1, 0, 1]),
        "model 1: every sample_weight is zero",
    ),
    "bad value of a class": (
        lambda: classify().predict(-X, lengths=LENGTHS),
        "sequence 0, row 0 .* column 0: .* is not a value of a lognormal",
    ),
    "second of many": (
        lambda: fit_many(POHMM(tol=0.1), [GOOD, BAD, GOOD]),
        r"^model 1: sequence 0, row 0 .*, column 0: -.* is not a value",
    ),
    "second of many, two threads": (
        lambda: fit_many(POHMM(tol=0.1), [GOOD, BAD], n_jobs=2),
        "^model 1: sequence 0",
    ),
    "settings of many": (lambda: fit_many(POHMM(tol=-1), [GOOD]), "^model 0: tol must be zero or greater"),
    "weights of many": (
        lambda: fit_many(POHMM(), [GOOD, GOOD], sample_weight=[None]),
        "has 1 items, data has 2",
    ),
    "weight of one": (
        lambda: fit_many(POHMM(tol=0.1), [GOOD, GOOD], sample_weight=[None, [1, 1]]),
        "^model 1: sample_weight must be one number per sequence",
    ),
    "update before data": (lambda: POHMM().update(), "nothing to update from"),
    "vocabulary changes": (
        lambda: POHMM().partial_fit(X, events=["a"] * 60).partial_fit(X, event_types=["b"]),
        "give it on the first call only",
    ),
    "kinds of labels change": (
        lambda: POHMM().partial_fit(X, events=["a"] * 60).partial_fit(X, events=[1] * 60),
        "all text or all whole numbers, in every call",
    ),
    "types after none": (
        lambda: POHMM(tol=0.1).fit(X).partial_fit(X, events=["a"] * 60),
        "fitted without event types and cannot learn them now",
    ),
    "other states in a warm start": (
        lambda: POHMM(tol=0.1, warm_start=True).fit(X).set_params(n_states=3).fit(X),
        "the model has 2 states, but n_states is 3",
    ),
    "another family in a warm start": (
        lambda: POHMM(tol=0.1, warm_start=True).fit(X).set_params(emission="gamma").fit(X),
        r"the model has LogNormal\(\) for feature 0, but emission says Gamma\(\)",
    ),
    "infinite item": (lambda: fit_many(POHMM(tol=0.1), [GOOD, X * np.inf]), "^model 1: sequence 0, row 0"),
    "sample of nothing": (lambda: KNOWN.sample(0), "n_events must be a whole number, 1 or more, not 0"),
    "sample of a half": (lambda: KNOWN.sample(2.5), "n_events must be a whole number, 1 or more"),
    "sample seed": (lambda: KNOWN.sample(2, random_state="x"), "random_state 'x' is not a seed"),
    "quantile": (
        lambda: KNOWN.predict_next([[0.0]], events=["a"]).quantile(1.0),
        "q must lie between 0 and 1",
    ),
    "mean of a log-Student": (
        lambda: POHMM(emission="logstudent", tol=1.0).fit(X).predict_next(X).mean(),
        r"feature 0: a logstudent distribution has no finite mean here; ask for the median, quantile\(0.5\)",
    ),
}

FRAME = pd.DataFrame({"d": X[:, 0], "key": ["a", "b"] * 30, "s": np.repeat([0.0, 1.0, 2.0], LENGTHS)})


def of_frame(frame=FRAME, features=("d",), event="key", sequence="s"):
    return Sequences.from_frame(frame, features, event, sequence)


def with_cell(column, row, value):
    frame = FRAME.astype({column: object})
    frame.loc[row, column] = value
    return frame


FRAMES = {
    "feature column": (
        lambda: of_frame(features=["d", "tau"]),
        "no column 'tau'; the frame has 'd', 'key', 's'",
    ),
    "event column": (lambda: of_frame(event="keyname"), "no column 'keyname'"),
    "sequence columns": (lambda: of_frame(sequence=["user", "s", "day"]), "no column 'user', 'day'"),
    "no features": (lambda: of_frame(features=[]), "features is empty"),
    "no rows": (lambda: of_frame(FRAME[:0]), "the frame has no rows"),
    "no sequence": (
        lambda: of_frame(with_cell("s", 7, None)),
        "row 7, column 's': the sequence it belongs to is",
    ),
    "infinite": (
        lambda: of_frame(with_cell("d", 23, np.inf)),
        r"sequence 1, row 3 \(row 23 .* column 0 \('d'\): .* inf",
    ),
    "text": (lambda: of_frame(with_cell("d", 23, "x")), "row 23, column 0 is 'x'"),
    "mixed events": (
        lambda: of_frame(with_cell("key", 23, 5)),
        r"sequence 1, row 3 \(row 23 .* found 5 \(int\)",
    ),
    "domain": (
        lambda: POHMM().fit(of_frame(with_cell("d", 23, 0.0))),
        r"sequence 1, row 3 .* column 0 \('d'\): 0.0",
    ),
}
TABLE = {
    f"{group}: {kind}": case
    for group, cases in {"many": MANY, "frame": FRAMES}.items()
    for kind, case in cases.items()
}


@pytest.mark.parametrize("kind", TABLE)
def test_bad_model(kind):
    call, message = TABLE[kind]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "log_likelihoods"])
def test_classifier_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(POHMMClassifier(), method)(X)
