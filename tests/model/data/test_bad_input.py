"""The bad input table: each kind of wrong input, and what the message says of it.

Every entry is a call that must raise a `ValueError` whose message matches, naming the sequence, the row and
the column where there is one.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from keydyn import HMM, POHMM, Sequences

NAN, INF = np.nan, np.inf
RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(4.0, 0.3, (60, 2)))
EVENTS = np.resize(["a", "b", "c"], 60)
LENGTHS = [20, 25, 15]
MODEL = POHMM(tol=0.1).fit(X, events=EVENTS, lengths=LENGTHS)
STRICT = POHMM(tol=0.1, handle_unknown="error").fit(X, events=EVENTS, lengths=LENGTHS)
encode = Sequences.from_arrays


def changed(row, column, value, X=X):
    """X with one value replaced; row 23 is row 3 of sequence 1."""
    other = X.copy()
    other[row, column] = value
    return other


def fit(X=X, events=EVENTS, lengths=LENGTHS, sample_weight=None, **settings):
    model = POHMM(**{"tol": 0.1, **settings})
    return model.fit(X, events=events, lengths=lengths, sample_weight=sample_weight)


def named(row, label):
    other = EVENTS.astype(object)
    other[row] = label
    return other


PLACE = r"^sequence 1, row 3 \(row 23 of the flat input\)"
VALUES = {
    "zero, log-normal": (
        lambda: fit(changed(23, 1, 0.0)),
        PLACE + ", column 1: 0.0 is not a value of a lognormal",
    ),
    "negative, log-normal": (
        lambda: fit(changed(23, 0, -2.0)),
        PLACE + ", column 0: -2.0 .* greater than zero",
    ),
    "zero, gamma": (lambda: fit(changed(23, 0, 0.0), emission="gamma"), PLACE + ".* of a gamma emission"),
    "negative, exponential": (
        lambda: fit(changed(23, 0, -1.0), emission="exponential"),
        PLACE + ".* zero or greater",
    ),
    "zero, log-Student": (
        lambda: fit(changed(23, 0, 0.0), emission="logstudent"),
        PLACE + ".* of a logstudent",
    ),
    "too large, normal": (
        lambda: fit(changed(23, 1, 1e101), emission="normal"),
        PLACE + ", column 1: 1e\\+101",
    ),
    "too large, Student": (
        lambda: fit(changed(23, 1, -1e101), emission="student"),
        PLACE + ".* -1e100 and 1e100",
    ),
    "in scoring": (
        lambda: MODEL.score(changed(23, 1, 0.0), events=EVENTS, lengths=LENGTHS),
        PLACE + ", column 1",
    ),
    "inf": (
        lambda: encode(changed(23, 1, INF), None, LENGTHS),
        PLACE + r", column 1: the value is infinite \(inf\)",
    ),
    "-inf": (
        lambda: encode(changed(23, 0, -INF), None, LENGTHS),
        PLACE + ", column 0: the value is infinite",
    ),
    "inf in a list": (lambda: encode([X, changed(3, 1, INF)]), r"^sequence 1, row 3 \(row 63 .*, column 1"),
    "inf, one sequence": (lambda: encode([[1.0], [INF]]), "^sequence 0, row 1, column 0: "),
    "inf, named column": (
        lambda: encode(pd.DataFrame({"d": [1.0, INF]})),
        r"^sequence 0, row 1, column 0 \('d'\): the value is infinite",
    ),
    "column of NaN": (lambda: fit(np.c_[X[:, 0], np.full(60, NAN)]), "^column 1 has no value at all"),
    "text": (lambda: encode(np.array([[1.0, 2.0], [3.0, "x"]], dtype=object)), "row 1, column 1 is 'x'"),
    "text in a list": (lambda: encode([[1.0, 2.0], [3.0, "x"]]), "row 1, column 1 is 'x'"),
    "text in a sequence": (
        lambda: encode([[[1.0]], [[2.0], ["x"]]]),
        "^sequence 1 .* row 1, column 0 is 'x'",
    ),
    "text in a frame": (lambda: encode(pd.DataFrame({"d": [1.0], "e": ["x"]})), "row 0, column 1 is 'x'"),
    "complex": (lambda: encode([X, X + 1j]), "^sequence 1 cannot be read as numbers: they are complex"),
}
SHAPES = {
    "nothing": (lambda: encode([]), "^X is empty: there are no sequences"),
    "no rows": (lambda: encode(np.empty((0, 2))), "0 sample"),
    "no columns": (lambda: encode(np.empty((3, 0))), r"0 feature\(s\)"),
    "empty sequence": (lambda: encode([X, X[:0], X]), "^sequence 1 is empty"),
    "empty list": (lambda: encode([X.tolist(), [], X.tolist()]), "^sequence 1 is empty"),
    "one dimension": (lambda: encode(X[:, 0]), "Expected 2D array, got 1D array"),
    "three dimensions": (lambda: encode(X[None]), "dim 3"),
    "list of 1-D": (
        lambda: encode([X[:9, 0], X[:8, 0]]),
        r"different length: .* \(n, K\) array .*reshape\(-1, 1\)",
    ),
    "one 1-D among 2-D": (
        lambda: encode([X, X[:, 0], X]),
        r"^sequence 1 must be an \(n, K\) array; .* \(60,\)",
    ),
    "columns differ": (lambda: encode([X, X[:, :1]]), "^sequence 1 has 1 columns, sequence 0 has 2"),
    "ragged rows": (lambda: encode([[1.0, 2.0], [3.0, 4.0], [5.0]]), "row 2 has 1 columns, row 0 has 2"),
    "ragged sequence": (
        lambda: encode([[[1.0, 2.0]], [[3.0, 4.0], [5.0]]]),
        "^sequence 1 .* row 1 has 1 columns",
    ),
    "too few events": (lambda: encode(X, EVENTS[:-1]), "60 rows in X and 59 events"),
    "events of a sequence": (
        lambda: encode([X, X], [EVENTS, EVENTS[1:]]),
        "^sequence 1 has 60 rows .* 59 in events",
    ),
    "events of too few": (lambda: encode([X, X], [EVENTS]), "events has 1 sequences, X has 2"),
    "events in a table": (
        lambda: encode(X, np.tile(EVENTS, (2, 1)).T),
        "one label per event; .* shape \\(60, 2\\)",
    ),
    "events a number": (lambda: encode(X, 5), "events must be one label per event, not 5"),
    "lengths short": (lambda: encode(X, None, [20, 30]), "lengths add up to 50, but there are 60 rows"),
    "lengths fractions": (lambda: encode(X, None, [20.5, 39.5]), "lengths must be a list of whole numbers"),
    "lengths a number": (lambda: encode(X, None, 60), "lengths must be a list of whole numbers; got 60"),
    "lengths zero": (lambda: encode(X, None, [60, 0]), "^sequence 1 is empty: its length is 0"),
    "lengths negative": (lambda: encode(X, None, [61, -1]), "^sequence 1 is empty: its length is -1"),
    "lengths of a list": (lambda: encode([X], None, [60]), "X is a list of sequences already"),
    "events of Sequences": (lambda: fit(encode(X)), "X is a Sequences, which holds its events and lengths"),
    "features in scoring": (lambda: MODEL.predict(X[:, :1]), "X has 1 features, but POHMM is expecting 2"),
}
LABELS = {
    "mixed": (
        lambda: encode(X, named(23, 7), LENGTHS),
        PLACE + r": .* all text or all whole .* found 7 \(int\)",
    ),
    "mixed lists": (
        lambda: encode([[[1.0]], [[2.0]]], [["a"], [1]]),
        r"^sequence 1, row 0 .* found 1 \(int\)",
    ),
    "fraction": (
        lambda: encode([[1.0], [2.0]], [1.0, 1.5]),
        "^sequence 0, row 1: .* whole numbers; found 1.5",
    ),
    "infinite": (lambda: encode([[1.0], [2.0]], [1.0, INF]), "^sequence 0, row 1: .* found inf"),
    "truth value": (lambda: encode([[1.0]], [True]), "^sequence 0, row 0: .* found True"),
    "bytes": (lambda: encode([[1.0]], [b"a"]), "^sequence 0, row 0: .* found b'a'"),
    "a set": (lambda: encode([[1.0]], [{"a"}]), "event types must be text or whole numbers"),
    "huge": (lambda: encode([[1.0]], [10**30]), "^sequence 0, row 0: .* 64 bits"),
    "null at the end": (
        lambda: encode([[1.0], [2.0]], ["a", "a\0"]),
        "^sequence 0, row 1: .* null character",
    ),
    "unknown": (
        lambda: STRICT.score(X, events=named(23, "z"), lengths=LENGTHS),
        PLACE + ": event type 'z' was not",
    ),
    "unknown, joint": (
        lambda: MODEL.score_joint(X, events=named(23, "z"), lengths=LENGTHS),
        PLACE + ": .* 'z' was",
    ),
    "unknown, next": (
        lambda: STRICT.predict_next(X, events=EVENTS, next_event="z"),
        "next_event 'z' was not seen",
    ),
    "next, too few": (
        lambda: MODEL.predict_next(X, events=EVENTS, lengths=LENGTHS, next_event=["a", "b"]),
        "next_event must be one type, or one per sequence: 3, not 2",
    ),
    "next, mixed": (lambda: MODEL.predict_next([X, X], next_event=["a", 1]), "all text or all whole numbers"),
}
WEIGHTS = {
    "shape": (lambda: fit(sample_weight=[1, 1]), r"one number per sequence: 3 sequences, shape \(2,\)"),
    "negative": (lambda: fit(sample_weight=[1, -1, 1]), "sample_weight of sequence 1 is -1.0"),
    "NaN": (lambda: fit(sample_weight=[1, 1, NAN]), "sample_weight of sequence 2 is nan"),
    "infinite": (lambda: fit(sample_weight=[INF, 1, 1]), "sample_weight of sequence 0 is inf"),
    "all zero": (lambda: fit(sample_weight=[0, 0, 0]), "every sample_weight is zero"),
    "text": (lambda: fit(sample_weight=["a", "b", "c"]), "^sample_weight cannot be read as numbers"),
}
WRONG_SETTINGS = {
    "n_states": [0, 1.5, "2", True, None],
    "emission": ["cauchy", 5, None, ["normal"], ["normal"] * 3, ["normal", 5]],
    "smoothing": ["often", 1.5, -0.1, True, [1], {"begin": None}, {"start": 2.0}],
    "spread": [-1.0, NAN, INF, "wide", None],
    "tol": [-1e-9, NAN, INF, None],
    "max_iter": [0, 10.0],
    "n_init": [0, -1, "three"],
    "random_state": ["seed", -1, 1.5],
    "warm_start": ["yes", 3],
    "fixed": ["begin", ("start", "begin"), 5, None, [["start"]]],
    "marginals": ["approximate", None, ["exact"]],
    "min_scale": [0, -1.0, None, "small", INF],
    "handle_unknown": ["ignore", None],
    "order_states": ["yes", None, 2],
    "leading_feature": [2, -1, 0.0, "first"],
    "density_floor": [0.0, -1.0, "low", NAN],
    "count_floor": [-1.0, None, NAN],
    "spread_features": ["none", 1],
    "spread_scale": ["each", None],
    "start_estimate": ["first", None],
    "transition_weights": ["proper?", None],
    "verbose": [-1, "loud", None],
    "callback": [5, "print"],
}
SETTINGS = {
    f"{name}={value!r}": (lambda name=name, value=value: fit(**{name: value}), f"^{name} ")
    for name, values in WRONG_SETTINGS.items()
    for value in values
}


TWO = np.ones((2, 2))
ONLINE = {
    "features": (lambda: MODEL.online().update([1.0], "a"), r"x must have shape \(1, 2\).* not \(1, 1\)"),
    "two events": (lambda: MODEL.online().update(TWO, "a"), r"x must have shape \(1, 2\)"),
    "domain": (lambda: MODEL.online().update([1.0, -1.0], "a"), "^session 0, column 1: -1.0 is not a value"),
    "infinite": (lambda: MODEL.online().update([INF, 1.0], "a"), "^session 0, column 0: inf is not a value"),
    "text": (lambda: MODEL.online().update(["x", "y"], "a"), "could not convert"),
    "label": (lambda: MODEL.online().update([1.0, 1.0], 1.5), "whole numbers; found 1.5"),
    "unknown": (lambda: STRICT.online().update([1.0, 1.0], "z"), "^session 0, model 0: event type 'z' was"),
}
TABLE = {
    f"{group}: {kind}": entry
    for group, entries in {
        "values": VALUES,
        "shapes": SHAPES,
        "labels": LABELS,
        "weights": WEIGHTS,
        "settings": SETTINGS,
        "online": ONLINE,
    }.items()
    for kind, entry in entries.items()
}


@pytest.mark.parametrize("kind", TABLE)
def test_bad_input(kind):
    call, message = TABLE[kind]
    with pytest.raises(ValueError, match=message):
        call()


def test_every_parameter_of_the_constructor_is_in_the_table():
    assert set(WRONG_SETTINGS) == set(POHMM().get_params()) == set(HMM().get_params())


def test_a_refused_event_leaves_a_stream_as_it_was():
    stream = MODEL.online()
    stream.update([50.0, 60.0], "a")
    before = stream.n_events, stream.log_likelihood, stream.proba.tolist()
    with pytest.raises(ValueError, match="is not a value"):
        stream.update([50.0, -60.0], "a")
    assert (stream.n_events, stream.log_likelihood, stream.proba.tolist()) == before


def test_a_refused_fit_leaves_a_model_as_it_was():
    model = POHMM(tol=0.1).fit(X, events=EVENTS)
    before = model.score(X, events=EVENTS)
    for bad in (changed(3, 0, -1.0), X * NAN):
        with pytest.raises(ValueError, match="column 0"):
            model.fit(bad, events=EVENTS)
    assert model.score(X, events=EVENTS) == before


METHODS = ["score", "score_sequences", "score_samples", "predict_proba", "filter_proba", "predict", "decode"]
METHODS += ["predict_next", "score_joint", "predict_events", "decode_events", "bic", "aic"]


@pytest.mark.parametrize("call", [*METHODS, "sample", "online", "to_hmm", "save"])
def test_not_fitted(call, tmp_path):
    arguments = [X] if call in METHODS else [tmp_path / "model"] if call == "save" else []
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(POHMM(), call)(*arguments)
    assert not list(tmp_path.iterdir())
