"""The key sets of the long-text features: 39 for hold times, 35 pairs of sets for intervals, and their trees.

The names are those of the columns in the vectors that Monaco and Tappert published. The sets follow how
frequent letters are in English, and the hands on a QWERTY keyboard. In each tree, the parent of a set is the
broader set that stands in for it where its keys are rare. docs/long-text-features.md says how sets and trees
were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from keydyn.keystrokes.key_groups import LEFT_LETTERS, RIGHT_LETTERS
from keydyn.model.data.vocabulary import Types

Truths = NDArray[np.bool_]

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
VOWELS = frozenset("aeiou")
DIGITS = frozenset("0123456789")
# Brackets are punctuation here, but dash, equals and backslash are not, as in the published vectors.
# The printed characters are other names of the same keys.
OTHER_PUNCTUATION = frozenset(["semicolon", "slash", "back_quote", "open_bracket", "close_bracket", *";/`[]"])
PERIOD, COMMA, QUOTE = frozenset(["period", "."]), frozenset(["comma", ","]), frozenset(["quote", "'"])
PUNCTUATION = PERIOD | COMMA | QUOTE | OTHER_PUNCTUATION
SPACE, SHIFT = frozenset(["space", " "]), frozenset(["shift"])

# A letter that has a column of its own is a set under its own name, and is not listed here.
KEY_SETS: Mapping[str, frozenset[str]] = {
    "letters": LETTERS,
    "vowels": VOWELS,
    "consonants": LETTERS - VOWELS,
    "freq_cons": frozenset("tnsrh"),
    "next_freq_cons": frozenset("ldcpf"),
    "least_freq_cons": frozenset("mwybg"),
    "other_cons": frozenset("jkqvxz"),
    "left_letters": LEFT_LETTERS,
    "right_letters": RIGHT_LETTERS,
    "left_hand": LEFT_LETTERS | frozenset("12345"),
    "right_hand": RIGHT_LETTERS | frozenset("67890"),
    "space": SPACE,
    "shift": SHIFT,
    "digits": DIGITS,
    "punctuation": PUNCTUATION,
    "period": PERIOD,
    "comma": COMMA,
    "quote": QUOTE,
    "punctuation_other": OTHER_PUNCTUATION,
}

# Sets of all keys except some, so that every key is in one of them, even an unknown key.
ALL_BUT: Mapping[str, frozenset[str]] = {
    "all_keys": frozenset(),
    "non_letters": LETTERS,
    "other_non_letters": LETTERS | DIGITS | PUNCTUATION | SPACE | SHIFT,
}

# One letter twice; the only pair that is not a product of two sets.
DOUBLE_LETTERS = "double__letters"

Tree = Mapping[str, Sequence[str]]

# Each set with those that fall back on it; parents come before their children.
HOLD_TREE: Tree = {
    "all_keys": ["letters", "non_letters"],
    "letters": ["vowels", "freq_cons", "next_freq_cons", "least_freq_cons", "left_letters", "right_letters"],
    "vowels": list("aeiou"),
    "freq_cons": list("tnsrh"),
    "next_freq_cons": list("ldcpf"),
    # Not with the other consonants' sets: the rarest fall back on the next rarest.
    "least_freq_cons": [*"mwybg", "other_cons"],
    "non_letters": ["space", "shift", "digits", "punctuation", "other_non_letters"],
    "punctuation": ["period", "comma", "quote", "punctuation_other"],
}

PAIR_TREE: Tree = {
    "all_keys__all_keys": [
        "letters__letters",
        "letters__non_letters",
        "non_letters__letters",
        "non_letters__non_letters",
    ],
    "letters__letters": [
        "vowels__consonants",
        "consonants__vowels",
        "consonants__consonants",
        "vowels__vowels",
        DOUBLE_LETTERS,
        "left_hand__left_hand",
        "left_hand__right_hand",
        "right_hand__left_hand",
        "right_hand__right_hand",
    ],
    "letters__non_letters": ["letters__space", "letters__punctuation"],
    "non_letters__letters": ["space__letters", "shift__letters"],
    "non_letters__non_letters": ["space__shift", "punctuation__space"],
    "vowels__consonants": ["a__n", "a__t", "e__n", "e__r", "e__s", "i__n", "o__n", "o__r"],
    "consonants__vowels": ["h__e", "r__e", "t__i"],
    "consonants__consonants": ["n__d", "s__t", "t__h"],
    "vowels__vowels": ["e__a"],
}


def lineages(tree: Tree) -> dict[str, tuple[str, ...]]:
    """Every set of a tree with its ancestors from the root down, excluding itself; parents first."""
    ancestors: dict[str, tuple[str, ...]] = {next(iter(tree)): ()}
    for parent, children in tree.items():
        ancestors.update((child, (*ancestors[parent], parent)) for child in children)
    return ancestors


def in_set(name: str, keys: Types) -> Truths:
    """Which of the keys, in lower case, are in the set of that name."""
    listed = ALL_BUT[name] if name in ALL_BUT else KEY_SETS.get(name, frozenset([name]))
    members: Truths = np.fromiter((key in listed for key in keys), dtype=bool, count=len(keys))
    return ~members if name in ALL_BUT else members


def in_pair(name: str, first: Types, second: Types) -> Truths:
    """Which pairs of a first and a second key, in lower case, are in the pair of sets of that name."""
    if name == DOUBLE_LETTERS:
        doubled: Truths = (first == second) & in_set("letters", first)
        return doubled
    left, right = name.split("__")
    joined: Truths = in_set(left, first) & in_set(right, second)
    return joined
