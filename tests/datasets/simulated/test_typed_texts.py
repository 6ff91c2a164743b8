"""What simulated typists type: the texts, and the mistakes in them."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn.datasets.simulated import keyboard, texts
from keydyn.datasets.simulated.typists import make_typists
from tests.examples import examples


def typed(frame):
    """The keys of each sample, as lists."""
    return [group.tolist() for _, group in frame.groupby(["user", "session"])["keyname"]]


def corrected(keys):
    """The text on the page after all backspaces; shift leaves nothing there."""
    page = []
    for key in keys:
        if key == "backspace":
            page.pop()
        elif key != "shift":
            page.append(key)
    return page


def words_of(keys):
    """Words and punctuation marks, in lower case."""
    signs = {name: sign for sign, name in keyboard.SIGNS.items()}
    text = "".join(signs.get(key, key) for key in keys if key != "shift")
    return text.replace(",", " ,").replace(".", " .").split()


@settings(max_examples=examples(30), deadline=None)
@given(
    text=st.sampled_from(["copied", "free"]),
    mistakes=st.floats(0.0, 0.5),
    n_keys=st.integers(1, 300),
    seed=st.integers(0, 99),
)
def test_corrections_lead_back_to_the_text(text, mistakes, n_keys, seed):
    clean = typed(make_typists(2, 2, text, n_keys, mistakes=0.0, random_state=seed))
    erring = typed(make_typists(2, 2, text, n_keys, mistakes=mistakes, random_state=seed))
    for right, keys in zip(clean, erring, strict=True):
        page, wanted = corrected(keys), corrected(right)
        agree = [a == b for a, b in zip(page, wanted, strict=False)]
        # At the end a wrong key may stand with up to two keys after it, or some of them if the sample ends
        # while they are taken back.
        assert all(agree[:-3])
        assert len(page) <= len(wanted) + 1


def test_how_often_mistakes_are_made():
    for text in ("copied", "free"):
        rates = [
            np.mean(make_typists(40, 4, text, 200, mistakes=rate)["keyname"] == "backspace")
            for rate in (0.0, 0.02, 0.1)
        ]
        assert rates[0] == 0.0
        # Each mistake takes one to three backspaces, letters are about three keys in four, and people differ.
        assert 0.01 < rates[1] < 0.06
        assert 3.0 < rates[2] / rates[1] < 5.0


def test_a_wrong_letter_is_a_neighbour():
    """The keys next to each other on the keyboard, read off its rows."""
    rows = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
    beside = {pair for row in rows for a, b in itertools.pairwise(row) for pair in (a + b, b + a)}
    seen = 0
    for right, keys in zip(
        typed(make_typists(20, 8, "copied", 60, mistakes=0.0)),
        typed(make_typists(20, 8, "copied", 60, mistakes=0.05)),
        strict=True,
    ):
        differ = [k for k, (a, b) in enumerate(zip(right, keys, strict=True)) if a != b]
        if differ:
            seen += 1
            assert right[differ[0]] + keys[differ[0]] in beside
    assert seen > 100


def test_all_copy_the_same_passages_one_after_another():
    samples = typed(make_typists(3, 10, "copied", 400, mistakes=0.0))
    assert samples[:10] == samples[10:20] == samples[20:]
    whole = [keyboard.spelled(passage + "\n") for passage in texts.PASSAGES]
    ring = [key for passage in whole for key in passage]
    for s, keys in enumerate(samples[:10]):
        start = sum(map(len, whole[: s % len(whole)]))
        assert keys == (ring + ring)[start : start + 400]


def test_spelling():
    assert " ".join(keyboard.spelled("Two: it's 4.\n")) == (
        "shift t w o shift semicolon space i t quote s space 4 period enter"
    )


def test_passages_are_some_hundreds_of_words():
    assert 300 < sum(len(passage.split()) for passage in texts.PASSAGES) < 600


@pytest.fixture(scope="module")
def samples():
    """What 60 people write in six samples each, as words; the last word may be cut short, and is left out."""
    return [words_of(keys)[:-1] for keys in typed(make_typists(60, 6, "free", mistakes=0.0))]


def test_free_text_is_sentences_of_our_words(samples):
    kinds = {word.lower(): set() for words in texts.WORDS.values() for word in words.split()}
    for kind, words in texts.WORDS.items():
        for word in words.split():
            kinds[word.lower()].add(kind)
    for words in samples:
        assert set(words) <= set(kinds)
        for before, after in itertools.pairwise([".", *words]):
            assert any(kinds[after] & set(texts.FOLLOWING[kind]) for kind in kinds[before]), (before, after)
    first_keys = [keys[:2] for keys in typed(make_typists(20, 2, "free", 30, mistakes=0.0))]
    assert all(keys[0] == "shift" and keys[1] in keyboard.LETTERS for keys in first_keys)


def test_the_chain_of_classes_is_a_chain():
    for row in texts.FOLLOWING.values():
        assert sum(row.values()) == pytest.approx(1.0)
        assert set(row) <= set(texts.WORDS)


def test_words_are_zipfian_and_people_have_favourites(samples):
    people = [list(itertools.chain(*samples[k : k + 6])) for k in range(0, len(samples), 6)]
    everything = Counter(itertools.chain(*people))
    nouns = texts.WORDS["noun"].split()
    counts = np.array([everything[noun] for noun in nouns])
    # 1 / (1 + rank): the first ten of 53 nouns have 2.02 of 3.57; favourites even out over 60 people.
    shares = 1.0 / (2.0 + np.arange(len(nouns)))
    assert counts[:10].sum() / counts.sum() == pytest.approx(shares[:10].sum() / shares.sum(), abs=0.04)
    # If all were alike, the halves of two people's texts would differ as much as those of one person's.
    own, others = [], []
    for user, words in enumerate(people):
        other = people[(user + 1) % len(people)]
        own.append(_distance(words[::2], words[1::2]))
        others.append(_distance(words[::2], other[1::2]))
    assert np.mean(own) < np.mean(others)
    assert np.mean(np.array(own) < np.array(others)) > 0.8


def _distance(one, other):
    a, b = Counter(one), Counter(other)
    return sum(abs(a[word] / len(one) - b[word] / len(other)) for word in a | b)
