"""Text labels to codes: the same as a dictionary finds, whatever the form and the text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.model.data.label_codes import LabelCodes, TextCodes

# Few characters, so that texts are often alike; a null inside, one outside the first plane, half a pair.
CHARACTERS = "aä\0😀\udc80"
texts = st.text(alphabet=CHARACTERS, max_size=4).filter(lambda text: not text.endswith("\0"))


def expected(vocabulary: list[str], labels: list[str]) -> list[int]:
    places = {text: n for n, text in enumerate(vocabulary)}
    return [places.get(label, len(vocabulary) + 1) for label in labels]


@given(st.lists(texts, min_size=1, max_size=9, unique=True), st.lists(texts, max_size=30))
def test_the_same_as_a_dictionary(vocabulary, labels):
    codes = TextCodes(np.array(vocabulary), len(vocabulary) + 1)
    wanted = expected(vocabulary, labels)
    assert codes.of_array(np.array(labels, dtype="U5")).tolist() == wanted
    found = codes.of_list(labels)
    if any("\0" in label for label in labels):
        assert found is None
    else:
        assert found is not None
        assert found.tolist() == wanted


@given(st.lists(texts, min_size=1, max_size=5, unique=True), st.lists(st.none() | texts, max_size=12))
def test_every_form_has_the_same_codes(vocabulary, labels):
    known = LabelCodes(np.array(vocabulary))
    wanted = [known.one(label) for label in labels]
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    for form in (labels, tuple(labels), objects):
        assert known.many(form).tolist() == wanted


def test_many_types_of_many_lengths():
    """A table that is well filled: what collides is told apart."""
    vocabulary = [f"{n}" * (1 + n % 3) for n in range(3_000)]
    labels = [vocabulary[n] for n in np.random.default_rng(0).integers(0, 3_000, 5_000)]
    labels[17], labels[18] = "no such type", "1" * 40
    codes = TextCodes(np.array(vocabulary), 9_999)
    wanted = [9_999 if n in (17, 18) else vocabulary.index(label) for n, label in enumerate(labels)]
    assert codes.of_list(labels).tolist() == wanted
    assert codes.of_array(np.array(labels)).tolist() == wanted
    assert codes.of_array(np.array(labels, dtype=">U40")[::3]).tolist() == wanted[::3]


def test_nothing_and_the_empty_text():
    codes = TextCodes(np.array(["", "a"]), 3)
    assert codes.of_list([]).tolist() == []
    assert codes.of_array(np.array([], dtype="U3")).tolist() == []
    assert codes.of_list(["", "a", ""]).tolist() == [0, 1, 0]
    assert codes.of_list([""]).tolist() == [0]
    assert codes.of_array(np.array(["", "b"])).tolist() == [0, 3]


def test_columns_of_a_frame():
    known = LabelCodes(np.array(["a", "b"]))
    column = pd.Series(["b", "a", "c", None])
    assert known.many(column).tolist() == [1, 0, known.unseen, known.missing]
    assert known.many(pd.Categorical(["b", "a"])).tolist() == [1, 0]


@pytest.mark.parametrize("labels", [["a", 1], ["a\0"], ["a", "b\0"]], ids=str)
def test_what_is_no_label_is_refused_by_name(labels):
    known = LabelCodes(np.array(["a", "b"]))
    for form in (labels, np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match=r"event \d: .*found"):
            known.many(form)
