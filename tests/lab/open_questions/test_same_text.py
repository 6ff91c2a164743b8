"""Texts that are matched in spite of errors, and what is left of errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.keystrokes.samples import Samples
from keydyn.lab.open_questions.typed_text import (
    groups_of_same_texts,
    kept_keys,
    of_common_text,
    passages,
    with_keys,
)
from keydyn.model import Sequences

POEMS = (
    "the quick brown fox jumps over the lazy dog and runs away from it",
    "a man a plan a canal panama is what he wrote upon my kitchen wall",
    "sphinx of black quartz judge my vow before the five wizards box us",
)
NAMES = {" ": "space", "<": "backspace", "^": "shift"}


def samples_of(texts):
    """Samples by (user, session), one key per character; the n-th key takes n milliseconds."""
    keys = [NAMES.get(key, key) for text in texts.values() for key in text]
    lengths = [len(text) for text in texts.values()]
    X = np.concatenate([np.arange(1.0, n + 1) for n in lengths])[:, None]
    names = pd.MultiIndex.from_tuples(list(texts), names=["user", "session"])
    return Samples(names, Sequences.from_arrays(X, keys, lengths), ("lognormal",))


def text_of(samples, s):
    shown = {name: key for key, name in NAMES.items()}
    return "".join(shown.get(name, name) for name in samples.sequences[s].labels())


def plainly_typed(text):
    """What a text editor would show, key by key."""
    shown = []
    for key in text:
        if key == "<":
            shown = shown[:-1]
        elif key != "^":
            shown.append(key)
    return "".join(shown)


@given(st.lists(st.text("ab <^", min_size=1, max_size=20), min_size=1, max_size=5))
def test_erased_keys_are_left_out_as_in_an_editor(texts):
    texts = [f"x{text}y" for text in texts]
    samples = samples_of({(0, n): text for n, text in enumerate(texts)})
    left = with_keys(samples, kept_keys(samples.sequences))
    assert [text_of(left, n) for n in range(len(texts))] == [plainly_typed(text) for text in texts]


def slips(draw, text, n):
    """The text with so many slips: keys left out, added, or typed wrong and corrected."""
    for _ in range(n):
        place = draw.integers(5, len(text) - 5)
        kind = draw.integers(3)
        wrong = draw.choice(list("jkxz"))
        text = text[:place] + ("", wrong, f"{wrong}<{text[place]}")[kind] + text[place + (kind != 1) :]
    return text


@given(st.integers(0, 2**32 - 1))
def test_copies_with_errors_are_of_the_same_text_and_others_are_not(seed):
    """Whatever the order of samples, up to five slips in sixty keys."""
    draw = np.random.default_rng(seed)
    which = draw.permutation(np.repeat([0, 1, 2], 4))
    texts = {(n, 0): slips(draw, POEMS[poem], int(draw.integers(6))) for n, poem in enumerate(which)}
    number = passages(samples_of(texts))
    same = number[:, None] == number[None, :]
    np.testing.assert_array_equal(same, which[:, None] == which[None, :])


def test_people_of_a_group_have_typed_the_same_texts_in_one_order():
    texts = {}
    for user in range(6):
        first = user % 2
        texts |= {(user, 0): POEMS[first], (user, 1): POEMS[1 - first]}
    # These two have typed something that nobody else has, or one text twice.
    texts |= {(6, 0): POEMS[0], (6, 1): POEMS[2], (7, 0): POEMS[0], (7, 1): POEMS[0]}
    (group,) = groups_of_same_texts(samples_of(texts))
    assert group.people[1].tolist() == list(range(6))
    for number in (0, 1):
        nth = group[group.numbers == number]
        assert len({text_of(nth, s) for s in range(len(nth))}) == 1


def test_of_the_common_text_nothing_is_left_of_errors():
    text = POEMS[0]
    copies = {
        (0, 0): text,
        (1, 0): text,
        (2, 0): text.replace("brown", "brj<own"),
        (3, 0): text.replace("jumps ", ""),
        (4, 0): text.replace("lazy", "lazxy")[4:-6],
    }
    samples = samples_of(copies)
    found = of_common_text(samples)
    assert [text_of(found, s) for s in range(5)] == [text, text, text, text, text[4:-6]]
    there = ~np.isnan(found.sequences.X[:, 0])
    left = [int(one.sum()) for one in np.split(there, found.sequences.offsets[1:-1])]
    # Keys that were left out have no time; a key that is right has the time that it took.
    assert left[:4] == [len(text), len(text), len(text), len(text) - len("jumps ")]
    third = found.sequences[2].X[:, 0]
    assert third[text.index("own")] == text.index("own") + 3


def test_a_sample_without_text_is_named():
    samples = samples_of({(0, 0): "abcdef", (1, 0): "^a<"})
    with pytest.raises(ValueError, match="user 1, session 0: nothing is left"):
        with_keys(samples, kept_keys(samples.sequences))
