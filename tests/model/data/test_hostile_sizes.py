"""Numbers that would wrap round, and indices that point outside: refused before compiled code sees them."""

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest

from keydyn import HMM, POHMM, Sequences
from keydyn.model import OnlineBatch

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(4.0, 0.3, (60, 1)))
EVENTS = np.resize(["a", "b", "c"], 60)
LENGTHS = [20, 25, 15]
MODEL = POHMM(tol=0.1).fit(X, events=EVENTS, lengths=LENGTHS)
FULL = Sequences.from_arrays(X, EVENTS, LENGTHS)

WRAPPING = {
    "the sum wraps round to the number of rows": [2**62] * 4 + [60],
    "unsigned": np.array([2**64 - 1, 61], dtype=np.uint64),
    "unsigned, one": np.array([2**63], dtype=np.uint64),
    "objects": [2**64, 60],
    "small integers that would wrap": np.full(60, 127, dtype=np.int8),
    "masked": np.ma.array([20, 25, 15], mask=[0, 1, 0]),
}


@pytest.mark.parametrize("kind", WRAPPING)
@pytest.mark.parametrize("ask", ["score", "predict", "decode", "fit", "partial_fit"])
def test_lengths_that_wrap_round(kind, ask):
    with pytest.raises(ValueError, match="lengths"):
        getattr(copy.deepcopy(MODEL), ask)(X, lengths=WRAPPING[kind])


@pytest.mark.parametrize("kind", [kind for kind in WRAPPING if not kind.startswith("small")])
def test_drawing_of_lengths_that_wrap_round(kind):
    with pytest.raises(ValueError, match="lengths"):
        MODEL.sample(lengths=WRAPPING[kind])


def made(**change):
    parts = {"X": X[:6], "codes": [0, 1, 2, 0, 1, -1], "event_types": ["a", "b", "c"], "offsets": [0, 3, 6]}
    return Sequences(**(parts | change))


BAD_PARTS = {
    "code above": ({"codes": [0, 1, 3, 0, 1, -1]}, "codes are numbered 0 to 2"),
    "code below": ({"codes": [0, 1, -2, 0, 1, -1]}, "codes are numbered 0 to 2"),
    "code of 64 bits": ({"codes": np.array([0, 2**64 - 1] * 3, dtype=np.uint64)}, "codes must fit into 64"),
    "codes fractions": ({"codes": np.zeros(6)}, "codes must be a list of whole numbers"),
    "codes in a table": ({"codes": np.zeros((6, 1), dtype=int)}, "codes must be a list of whole numbers"),
    "codes ragged": ({"codes": [[0], [1, 2]]}, "codes must be a list of whole numbers"),
    "codes masked": ({"codes": np.ma.array([0] * 6, mask=[1] * 6)}, "codes must be a list of whole numbers"),
    "offsets beyond": ({"offsets": [0, 3, 7]}, "offsets must rise from 0 to the number of rows, 6"),
    "offsets back": ({"offsets": [0, 4, 3, 6]}, "offsets must rise"),
    "offsets from 1": ({"offsets": [1, 6]}, "offsets must rise"),
    "offsets none": ({"offsets": np.array([], dtype=int)}, "offsets must rise"),
    "offsets of 64 bits": ({"offsets": np.array([0, 2**64 - 1, 6], dtype=np.uint64)}, "offsets must fit"),
    "types twice": ({"event_types": ["a", "b", "a"]}, "'a' more than once"),
    "names": ({"names": ["u"]}, "2 sequences and 1 names"),
    "feature names": ({"feature_names": ["d", "e"]}, "1 features and 2 feature_names"),
}


@pytest.mark.parametrize("kind", BAD_PARTS)
def test_sequences_with_indices_out_of_range(kind):
    change, message = BAD_PARTS[kind]
    with pytest.raises(ValueError, match=message):
        made(**change)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(made(), **change)


WAYS = {
    "constructor": lambda: made(feature_names=["d"], names=["u", "v"]),
    "arrays": lambda: Sequences.from_arrays(X, EVENTS, LENGTHS),
    "list": lambda: Sequences.from_arrays([X[:20], X[20:]], [EVENTS[:20], EVENTS[20:]]),
    "frame": lambda: Sequences.from_frame(pd.DataFrame({"d": X[:, 0], "e": EVENTS}), ["d"], "e"),
    "with_values": lambda: FULL.with_values(2 * X),
    "concatenate": lambda: Sequences.concatenate([FULL, FULL]),
    "one": lambda: FULL[1],
    "slice": lambda: FULL[:2],
    "chosen": lambda: FULL[[2, 0]],
    "without_events": FULL.without_events,
    "deepcopy": lambda: copy.deepcopy(FULL),
    "deep copy": lambda: copy.deepcopy(FULL),
    "copy": lambda: copy.copy(FULL),
    "iterated": lambda: next(iter(FULL)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_sequences_gives_arrays_that_cannot_be_written(way):
    sequences = WAYS[way]()
    for array in (sequences.X, sequences.codes, sequences.offsets, sequences.event_types):
        assert not array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        sequences.codes = np.array([9])


def test_sequences_do_not_follow_what_they_were_made_from():
    values, codes, types, offsets = X[:6].copy(), np.zeros(6, dtype=int), np.array(["a"]), np.array([0, 6])
    names, features = ["u"], ["d"]
    sequences = Sequences(values, codes, types, offsets, features, names)
    for given in (values, codes, offsets):
        given[:] = 99
    types[:] = "z"
    names.append("v")
    features.append("e")
    np.testing.assert_array_equal(sequences.X, X[:6])
    assert sequences.codes.tolist() == [0] * 6
    assert sequences.offsets.tolist() == [0, 6]
    assert sequences.event_types.tolist() == ["a"]
    assert (sequences.names, sequences.feature_names) == (["u"], ("d",))


OTHER_VALUES = {
    "fewer": (X[:3], r"must have shape \(60, 1\), not \(3, 1\)"),
    "text": ("text", "X cannot be read as numbers"),
    "infinite": (np.full((60, 1), np.inf), "sequence 0, row 0.*infinite"),
    "complex": (X + 1j, "X cannot be read as numbers: they are complex"),
    "none": (None, "must have shape"),
}


@pytest.mark.parametrize("kind", OTHER_VALUES)
def test_other_values_are_checked(kind):
    values, message = OTHER_VALUES[kind]
    with pytest.raises(ValueError, match=message):
        FULL.with_values(values)


MASK = np.zeros((60, 1), dtype=bool)
MASK[[3, 27]] = True
GAPS = np.where(MASK, np.nan, X)
MISSING = {
    "masked": np.ma.array(X, mask=MASK),
    "masked in a list": [np.ma.array(X[:20], mask=MASK[:20]), np.ma.array(X[20:], mask=MASK[20:])],
    "masked rows": [*np.ma.array(X, mask=MASK)],
    "masked integers": np.ma.array(np.round(X).astype(int), mask=MASK),
    "nullable frame": pd.DataFrame({"d": pd.array(GAPS[:, 0], dtype="Float64")}),
    "nullable frames": [
        pd.DataFrame({"d": pd.array(part[:, 0], dtype="Float64")}) for part in (GAPS[:20], GAPS[20:])
    ],
    "frames": [pd.DataFrame({"d": part[:, 0]}) for part in (GAPS[:20], GAPS[20:])],
    "None": np.where(MASK, None, X),
}


@pytest.mark.parametrize("form", MISSING)
def test_what_is_masked_or_not_available_is_missing(form):
    sequences = Sequences.from_arrays(MISSING[form])
    expected = np.round(GAPS) if "integers" in form else GAPS
    np.testing.assert_array_equal(sequences.X, expected)
    assert sequences.feature_names == (("d",) if "frame" in form else None)


def test_masked_labels_are_missing():
    masked = np.ma.array(EVENTS, mask=MASK[:, 0])
    for events, values in ((masked, X), ([masked[:20], masked[20:]], [X[:20], X[20:]])):
        codes = Sequences.from_arrays(values, events).codes
        assert np.flatnonzero(codes == -1).tolist() == [3, 27]


NOT_NUMBERS = {
    "too large": ([[10**400]], "X cannot be read as numbers"),
    "too large in a list": ([np.array([[10**400]], dtype=object)], "^sequence 0 cannot be read as numbers"),
    "dict": (np.array([[{}]], dtype=object), "X cannot be read as numbers"),
    "dict in a list": ([X, np.array([[{}]], dtype=object)], "^sequence 1 cannot be read as numbers"),
    "frames that differ": (
        [pd.DataFrame({"d": [1.0]}), pd.DataFrame({"e": [1.0]})],
        r"^sequence 1 has the columns \['e'\], sequence 0 has \['d'\]",
    ),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_what_is_no_number_is_refused(kind):
    values, message = NOT_NUMBERS[kind]
    with pytest.raises(ValueError, match=message):
        Sequences.from_arrays(values)


def test_masked_weights_are_no_weights():
    with pytest.raises(ValueError, match="sample_weight of sequence 1 is nan"):
        MODEL.score(X, lengths=LENGTHS, sample_weight=np.ma.array([1.0, 1.0, 1.0], mask=[0, 1, 0]))


def test_tables_of_all_pairs_are_refused_where_they_are_too_large():
    n = 20_000
    text = np.append(np.arange(n), [5, 7, 5])
    model = POHMM(tol=1.0).fit(np.exp(RNG.normal(4.0, 0.3, (len(text), 1))), events=text)
    with pytest.raises(ValueError, match=r"transmat_ would take .* GiB .*transmat_between\(earlier, later\)"):
        _ = model.transmat_
    with pytest.raises(ValueError, match=r"event_transmat_ would .*: event_pairs_ has the pairs"):
        _ = model.event_transmat_
    between = model.transmat_between([5, 5, 3, None], [6, 8, 12_345, 3])
    np.testing.assert_allclose(between.sum(axis=-1), 1.0)


def test_single_pairs_are_those_of_the_table():
    types = MODEL.event_types_
    before, after = np.divmod(np.arange(9), 3)
    np.testing.assert_array_equal(
        MODEL.transmat_between(types[before], types[after]), MODEL.transmat_.reshape(9, 2, 2)
    )
    marginal = MODEL.marginal_
    np.testing.assert_array_equal(MODEL.transmat_between(["a"], ["z"])[0], marginal.transmat_from[0])
    with pytest.raises(ValueError, match="there are 1 earlier and 2 later event types"):
        MODEL.transmat_between(["a"], ["a", "b"])


def test_given_parameters_of_a_wrong_kind():
    with pytest.raises(ValueError, match="emission must be a list"):
        HMM.from_parameters([1.0], [[1.0]], 5)


MANY = OnlineBatch([MODEL], 3)
ODD_EVENTS = {
    "complex": (lambda: MODEL.online().update([1j], "a"), "x cannot be read as numbers: they are complex"),
    "text": (lambda: MODEL.online().update(["x"], "a"), "x cannot be read as numbers"),
    "dict": (lambda: MODEL.online().update({}, "a"), "x cannot be read as numbers"),
    "too large": (lambda: MODEL.online().update([10**400], "a"), "x cannot be read as numbers"),
    "many, complex": (lambda: MANY.update(np.full((3, 1), 1j)), "x cannot be read as numbers"),
    "many, dict": (lambda: MANY.update({}), "x cannot be read as numbers"),
    "many, rows of 64 bits": (
        lambda: MANY.update([[1.0]], sessions=np.array([2**64 - 1], dtype=np.uint64)),
        "sessions are numbered 0 to 2",
    ),
    "many, codes of 64 bits": (
        lambda: MANY.update(X[:3], codes=np.array([0, 0, 2**63], dtype=np.uint64)),
        "codes are numbered 0 to 4",
    ),
    "predicted, complex": (lambda: MODEL.predict_next(X).cdf(1j), "cannot be read as numbers"),
}


@pytest.mark.parametrize("kind", ODD_EVENTS)
def test_odd_events_online(kind):
    call, message = ODD_EVENTS[kind]
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_masked_is_missing_online_too():
    one, other = MODEL.online(), MODEL.online()
    assert one.update(np.ma.array([3.0], mask=[True]), "a") == other.update([np.nan], "a")
