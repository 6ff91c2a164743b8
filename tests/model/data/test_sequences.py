"""Sequences and their vocabulary: every accepted form of input is the same thing inside."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn import HMM, POHMM, Sequences
from keydyn.model.data.sequences import as_sequences

X = np.arange(1.0, 13.0).reshape(6, 2)
EVENTS = ["b", "a", None, "c", "a", "b"]
LENGTHS = [3, 1, 2]
PARTS = [slice(0, 3), slice(3, 4), slice(4, 6)]


def frame(order=None):
    table = pd.DataFrame({"one": X[:, 0], "two": X[:, 1], "key": EVENTS, "user": [0, 0, 0, 0, 1, 1]})
    table["session"] = ["x", "x", "x", "y", "x", "x"]
    return table if order is None else table.iloc[order]


def assert_same(have, want, types=True):
    np.testing.assert_array_equal(have.X, want.X)
    np.testing.assert_array_equal(have.offsets, want.offsets)
    np.testing.assert_array_equal(have.labels(), want.labels())
    if types:
        np.testing.assert_array_equal(have.codes, want.codes)
        np.testing.assert_array_equal(have.event_types, want.event_types)
    assert have.X.dtype == np.float64
    assert have.codes.dtype == have.offsets.dtype == np.int64
    assert have.X.flags.c_contiguous


FORMS = {
    "flat": lambda: Sequences.from_arrays(X, EVENTS, LENGTHS),
    "lists": lambda: Sequences.from_arrays(X.tolist(), EVENTS, LENGTHS),
    "flat object events": lambda: Sequences.from_arrays(X, np.array(EVENTS, dtype=object), np.array(LENGTHS)),
    "column of events": lambda: Sequences.from_arrays(X, np.array(EVENTS, dtype=object)[:, None], LENGTHS),
    "fortran order": lambda: Sequences.from_arrays(np.asfortranarray(X), EVENTS, LENGTHS),
    "whole numbers": lambda: Sequences.from_arrays(X.astype(int), EVENTS, LENGTHS),
    "data frame": lambda: Sequences.from_arrays(frame()[["one", "two"]], frame()["key"], LENGTHS),
    "list of arrays": lambda: Sequences.from_arrays([X[p] for p in PARTS], [EVENTS[p] for p in PARTS]),
    "tuple of arrays": lambda: Sequences.from_arrays(tuple(X[p] for p in PARTS), EVENTS),
    "list of lists": lambda: Sequences.from_arrays(
        [X[p].tolist() for p in PARTS], [EVENTS[p] for p in PARTS]
    ),
    "nested events": lambda: Sequences.from_arrays(X, [EVENTS[p] for p in PARTS], LENGTHS),
    "series of events": lambda: Sequences.from_arrays(
        [X[p] for p in PARTS], [pd.Series(EVENTS[p]) for p in PARTS]
    ),
    "frame": lambda: Sequences.from_frame(frame(), ["one", "two"], "key", ["user", "session"]),
    "interleaved frame": lambda: Sequences.from_frame(
        frame([0, 3, 1, 4, 2, 5]), ["one", "two"], "key", ["user", "session"]
    ),
    "categorical frame": lambda: Sequences.from_frame(
        frame().astype({"key": "category", "user": "category", "session": "category"}),
        ["one", "two"],
        "key",
        ["user", "session"],
    ),
    "list of Sequences": lambda: as_sequences(list(FORMS["flat"]())),
    "itself": lambda: as_sequences(FORMS["flat"]()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same(form):
    sequences = FORMS[form]()
    assert_same(sequences, FORMS["flat"]())
    assert sequences.event_types.tolist() == ["a", "b", "c"]
    assert sequences.codes.tolist() == [1, 0, -1, 2, 0, 1]
    assert (len(sequences), sequences.n_events, sequences.n_features) == (3, 6, 2)
    assert sequences.lengths.tolist() == LENGTHS


def test_object_array_of_sequences():
    """What scikit-learn's cross-validation makes of a list of sequences."""
    items, events = np.empty(3, dtype=object), np.empty(3, dtype=object)
    for s, part in enumerate(PARTS):
        items[s], events[s] = X[part], EVENTS[part]
    assert_same(as_sequences(items, events), FORMS["flat"]())


def test_a_frame_keeps_names_and_order_of_appearance():
    order = [4, 0, 5, 3, 1, 2]
    sequences = Sequences.from_frame(frame(order), ["two", "one"], "key", ["user", "session"])
    assert sequences.names == [(1, "x"), (0, "x"), (0, "y")]
    assert sequences.feature_names == ("two", "one")
    assert sequences.X[:, 1].tolist() == [9.0, 11.0, 1.0, 3.0, 5.0, 7.0]
    assert Sequences.from_frame(frame(), ["one"], sequence="session").names == ["x", "y"]
    assert sequences.groups.tolist() == [1, 0, 0]
    assert Sequences.from_frame(frame(), ["one"], sequence="session").groups.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="no names"):
        _ = Sequences.from_frame(frame(), ["one"]).groups
    whole = Sequences.from_frame(frame(), "one")
    assert (len(whole), whole.names, whole.feature_names) == (1, None, ("one",))
    assert whole.labels().tolist() == [None] * 6


def test_categories_that_do_not_occur_are_no_sequences_and_no_types():
    table = frame()
    table["session"] = pd.Categorical(table["session"], categories=["w", "y", "x"])
    table["key"] = pd.Categorical(table["key"], categories=["z", "c", "b", "a"])
    sequences = Sequences.from_frame(table, ["one"], "key", ["session"])
    assert sequences.names == [("x",), ("y",)]
    assert sequences.event_types.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("which", "chosen"),
    [
        (1, [1]),
        (-1, [2]),
        (np.int64(0), [0]),
        (slice(1, None), [1, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        ([2, 0, 2], [2, 0, 2]),
        (np.array([True, False, True]), [0, 2]),
        (slice(0, 0), []),
    ],
)
def test_indexing(which, chosen):
    """Whole sequences are picked, with their names; the vocabulary stays."""
    sequences = Sequences.from_frame(frame(), ["one", "two"], "key", ["user", "session"])
    some = sequences[which]
    assert some.names == [sequences.names[s] for s in chosen]
    np.testing.assert_array_equal(some.X, np.concatenate([X[:0], *(X[PARTS[s]] for s in chosen)]))
    assert some.lengths.tolist() == [LENGTHS[s] for s in chosen]
    assert some.labels().tolist() == [label for s in chosen for label in EVENTS[PARTS[s]]]
    assert some.event_types is sequences.event_types


def test_indexing_out_of_range():
    for which in (3, -4, [0, 3], np.array([True, False])):
        with pytest.raises(IndexError):
            FORMS["flat"]()[which]


def test_iterating_gives_each_sequence():
    assert [one.labels().tolist() for one in FORMS["flat"]()] == [EVENTS[p] for p in PARTS]


def test_concatenating_joins_vocabularies():
    """Different, overlapping and empty vocabularies; codes change, labels do not."""
    labels = [["d", "b"], ["a", None], [None, None], ["b", "a"]]
    parts = [Sequences.from_arrays(np.full((2, 1), s), types) for s, types in enumerate(labels)]
    joined = Sequences.concatenate(parts)
    assert joined.event_types.tolist() == ["a", "b", "d"]
    assert joined.labels().tolist() == list(itertools.chain(*labels))
    assert joined.lengths.tolist() == [2, 2, 2, 2]
    assert_same(Sequences.concatenate([joined[s] for s in range(4)]), joined)


def test_concatenating_different_things():
    one, two = Sequences.from_frame(frame(), ["one", "two"]), Sequences.from_frame(frame(), ["two", "one"])
    with pytest.raises(ValueError, match="different features"):
        Sequences.concatenate([one, two])
    with pytest.raises(ValueError, match="different numbers of features"):
        Sequences.concatenate([one, Sequences.from_frame(frame(), ["one"])])
    with pytest.raises(ValueError, match="all text or all whole numbers"):
        Sequences.concatenate([Sequences.from_arrays(X, [1] * 6), Sequences.from_arrays(X, ["1"] * 6)])
    assert Sequences.concatenate([Sequences.from_arrays(X), one]).feature_names == ("one", "two")


@pytest.mark.parametrize(
    "events",
    [
        [5, None, 3, -2],
        [5.0, float("nan"), 3.0, -2.0],
        np.array([5.0, np.nan, 3.0, -2.0]),
        np.array([5, None, 3, -2], dtype=object),
        [np.int32(5), pd.NA, 3.0, np.float32(-2)],
        pd.Series([5, None, 3, -2]),
        pd.Series([5, None, 3, -2], dtype="Int64"),
        pd.Series([5, None, 3, -2], dtype="category"),
        pd.Index([5.0, None, 3.0, -2.0]),
    ],
)
def test_whole_numbers_whatever_holds_them(events):
    """A missing neighbour turns numbers into floats or objects; they are the same types all the same."""
    sequences = Sequences.from_arrays(np.ones((4, 1)), events)
    assert sequences.labels().tolist() == [5, None, 3, -2]
    assert sequences.event_types.tolist() == [-2, 3, 5]
    assert sequences.event_types.dtype == np.int64


@pytest.mark.parametrize(
    "events",
    [
        ["é", None, "10", "9"],
        ["é", float("nan"), "10", np.str_("9")],
        np.array(["é", pd.NA, "10", "9"], dtype=object),
        pd.Series(["é", None, "10", "9"], dtype="string"),
        pd.Series(["é", None, "10", "9"], dtype="category"),
        pd.Series(["é", None, "10", "9"], dtype=object),
        pd.Categorical(["é", None, "10", "9"]),
        pd.array(["é", None, "10", "9"], dtype="string"),
    ],
)
def test_text_whatever_holds_it(events):
    """Text sorts as text: "10" before "9"."""
    sequences = Sequences.from_arrays(np.ones((4, 1)), events)
    assert sequences.labels().tolist() == ["é", None, "10", "9"]
    assert sequences.event_types.tolist() == ["10", "9", "é"]


def test_numbers_and_their_text_are_different_types():
    """Neither is taken for the other: a model of 1 and 2 does not know "1"."""
    model = POHMM(emission="normal", smoothing=None, handle_unknown="error", tol=1.0)
    model.fit(X, events=[1, 2, 1, 2, 1, 2])
    with pytest.raises(ValueError, match="event type '1' was not seen"):
        model.score(X, events=list("121212"))
    assert model.score(X, events=[1.0, 2.0] * 3) == model.score(
        X, events=np.array([1, 2] * 3, dtype=np.uint8)
    )


labels = st.one_of(
    st.lists(st.none() | st.text(st.characters(exclude_characters="\0")), min_size=1),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1),
)


@given(labels, st.randoms(use_true_random=False))
def test_labels_come_back(events, random):
    """Encoding loses nothing, the vocabulary is sorted and distinct, and lengths cut where they say."""
    lengths = []
    while sum(lengths) < len(events):
        lengths.append(random.randint(1, len(events) - sum(lengths)))
    sequences = Sequences.from_arrays(np.zeros((len(events), 1)), events, lengths)
    assert sequences.labels().tolist() == events
    types = sequences.event_types.tolist()
    assert types == sorted(set(events) - {None})
    assert list(itertools.chain(*(one.labels().tolist() for one in sequences))) == events
    shuffled = random.sample(range(len(sequences)), len(sequences))
    assert_same(Sequences.concatenate([sequences[s] for s in shuffled]), sequences[shuffled])


def test_results_are_the_same_for_every_form():
    """A user's path: fit and score with each form, flat results in input order."""
    events = ["b", "a", "a", "c", "a", "b"]
    cut = [X[p] for p in PARTS], [events[p] for p in PARTS]
    for model in (POHMM(tol=0.1), HMM(tol=0.1)):
        model.fit(X, events=events, lengths=LENGTHS)
        flat = model.score_samples(X, events=events, lengths=LENGTHS)
        assert flat.shape == (6,)
        np.testing.assert_array_equal(model.score_samples(cut[0], events=cut[1]), flat)
        np.testing.assert_array_equal(model.score_samples(Sequences.from_arrays(X, events, LENGTHS)), flat)
        by_list = type(model)(tol=0.1).fit(cut[0], events=cut[1])
        np.testing.assert_array_equal(by_list.transmat_, model.transmat_)


def test_repr_and_places():
    sequences = Sequences.from_frame(frame(), ["one", "two"], "key", ["user", "session"])
    assert repr(sequences) == "Sequences(3 sequences, 6 events, 2 features, 3 event types)"
    assert sequences.place(4, 1) == "sequence 2, row 0 (row 4 of the flat input), column 1 ('two')"
    assert sequences[0].place(2) == "sequence 0, row 2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": [0, 1, 2, 0]}, "codes are numbered 0 to 1"),
        ({"codes": [0, -2, 1, 0]}, "codes are numbered 0 to 1"),
        ({"codes": [0, 1, 0]}, "4 rows in X and 3 codes"),
        ({"codes": [0.5, 1.0, 0.0, 0.0]}, "codes must be a list of whole numbers"),
        ({"codes": np.array([0, 2**64 - 1, 0, 0], dtype=np.uint64)}, "codes must fit into 64 bits"),
        ({"offsets": [0, 5]}, "offsets must rise from 0 to the number of rows, 4"),
        ({"offsets": [0, 3, 1, 4]}, "offsets must rise"),
        ({"offsets": [0, 2, 2, 4]}, "offsets must rise"),
        ({"offsets": [1, 4]}, "offsets must rise"),
        ({"offsets": []}, "offsets must be|offsets must rise"),
        ({"event_types": np.array(["a", "a"])}, "more than once"),
        ({"X": np.ones(4)}, "X must be an"),
        ({"X": np.array([[1.0], [2.0], [np.inf], [3.0]])}, "sequence 1, row 0 .*infinite"),
        ({"feature_names": ("tau", "hold")}, "1 features and 2 feature_names"),
        ({"names": ["only one"]}, "2 sequences and 1 names"),
    ],
)
def test_sequences_are_checked_whoever_makes_them(change, message):
    """Compiled code never sees an index that was not checked."""
    parts = {
        "X": np.ones((4, 1)),
        "codes": np.array([0, 1, -1, 0]),
        "event_types": np.array(["a", "b"]),
        "offsets": np.array([0, 2, 4]),
    }
    assert len(Sequences(**parts)) == 2
    with pytest.raises(ValueError, match=message):
        Sequences(**(parts | change))


def test_sequences_own_their_arrays_and_cannot_be_changed():
    X, codes, offsets = np.ones((4, 1)), np.array([0, 1, 1, 0]), np.array([0, 2, 4])
    made = [
        Sequences(X, codes, np.array(["a", "b"]), offsets),
        Sequences.from_arrays(X, list("abba"), [2, 2]),
    ]
    for sequences in made:
        X[0], codes[0], offsets[1] = 5.0, 1, 3
        assert sequences.X[0, 0] == 1.0
        assert sequences.lengths.tolist() == [2, 2]
        for part in (sequences, sequences[1], sequences[[1, 0]], sequences.without_events()):
            for name in ("X", "codes", "offsets"):
                with pytest.raises(ValueError, match="read-only"):
                    getattr(part, name)[0] = 0
        X[0], codes[0], offsets[1] = 1.0, 0, 2
