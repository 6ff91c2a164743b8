"""Feature vectors of long texts: 218 means and standard deviations of times over sets of keys.

They are the descriptive statistics of Monaco and Tappert, by the rules that their published vectors follow;
docs/long-text-features.md describes how the rules were found and how well the vectors agree. There are 39
sets of keys for hold times and 35 pairs of sets for intervals. In each tree, the parent of a set is the
broader set that is used instead if its keys are rare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.keystrokes.key_names import key_name
from keydyn.keystrokes.schema import SAMPLE, check_keystrokes, sample_of_row, sample_starts
from keydyn.keystrokes.timing import LEFT_LETTERS, RIGHT_LETTERS, timing_features
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

# Single letters with columns of their own are sets too, by their own name, and are not listed here.
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

# Sets of all keys, even unknown ones, except those listed.
ALL_BUT: Mapping[str, frozenset[str]] = {
    "all_keys": frozenset(),
    "non_letters": LETTERS,
    "other_non_letters": LETTERS | DIGITS | PUNCTUATION | SPACE | SHIFT,
}

# One letter twice; the only pair that is not a product of two sets.
DOUBLE_LETTERS = "double__letters"

Tree = Mapping[str, Sequence[str]]

# Each set with the sets that fall back on it; parents come before their children.
HOLD_TREE: Tree = {
    "all_keys": ["letters", "non_letters"],
    "letters": ["vowels", "freq_cons", "next_freq_cons", "least_freq_cons", "left_letters", "right_letters"],
    "vowels": list("aeiou"),
    "freq_cons": list("tnsrh"),
    "next_freq_cons": list("ldcpf"),
    # Unlike the other sets of consonants, `other_cons` falls back on the next rarest set.
    "least_freq_cons": [*"mwybg", "other_cons"],
    "non_letters": ["space", "shift", "digits", "punctuation", "other_non_letters"],
    "punctuation": ["period", "comma", "quote", "punctuation_other"],
}

PAIR_TREE: Tree = {
    "all_keys__all_keys": [
        f"{first}__{second}" for first, second in product(("letters", "non_letters"), repeat=2)
    ],
    "letters__letters": [
        *("vowels__consonants", "consonants__vowels", "consonants__consonants", "vowels__vowels"),
        DOUBLE_LETTERS,
        *(f"{first}__{second}" for first, second in product(("left_hand", "right_hand"), repeat=2)),
    ],
    "letters__non_letters": ["letters__space", "letters__punctuation"],
    "non_letters__letters": ["space__letters", "shift__letters"],
    "non_letters__non_letters": ["space__shift", "punctuation__space"],
    "vowels__consonants": ["a__n", "a__t", "e__n", "e__r", "e__s", "i__n", "o__n", "o__r"],
    "consonants__vowels": ["h__e", "r__e", "t__i"],
    "consonants__consonants": ["n__d", "s__t", "t__h"],
    "vowels__vowels": ["e__a"],
}
# The times by their names in the columns: hold time, release of one key to press of the next, press to press.
TIMES = {"du": "duration", "t1": "release_press", "t2": "tau"}
TREES: Mapping[str, Tree] = {"du": HOLD_TREE, "t1": PAIR_TREE, "t2": PAIR_TREE}
STATISTICS = ("mean", "std")
# The number of standard deviations from a key's mean beyond which a time is an outlier.
OUTLIER = 4.0
# A set with fewer times than this is mixed with an ancestor.
ENOUGH = 5
# The weight of the ancestor in such a mixture, in units of one of the set's own times.
PARENT_WEIGHT = 0.25

Bounds = Mapping[str, pd.DataFrame]


def lineages(tree: Tree) -> dict[str, tuple[str, ...]]:
    """Every set of a tree, parents first, with its ancestors from the root down."""
    ancestors: dict[str, tuple[str, ...]] = {next(iter(tree)): ()}
    for parent, children in tree.items():
        ancestors.update((child, (*ancestors[parent], parent)) for child in children)
    return ancestors


COLUMNS = tuple(
    f"{time}_{name}.{statistic}"
    for time, tree in TREES.items()
    for name in sorted(lineages(tree))
    for statistic in STATISTICS
)


def in_set(name: str, keys: Types) -> Truths:
    """A mask of the keys, in lower case, that are in the set of that name."""
    listed = ALL_BUT[name] if name in ALL_BUT else KEY_SETS.get(name, frozenset([name]))
    members: Truths = np.fromiter((key in listed for key in keys), dtype=bool, count=len(keys))
    return ~members if name in ALL_BUT else members


def in_pair(name: str, first: Types, second: Types) -> Truths:
    """A mask of the pairs of first and second keys, in lower case, that are in the named pair of sets."""
    if name == DOUBLE_LETTERS:
        doubled: Truths = (first == second) & in_set("letters", first)
        return doubled
    left, right = name.split("__")
    joined: Truths = in_set(left, first) & in_set(right, second)
    return joined


@dataclass(frozen=True, eq=False)
class _Times:
    """All times of one kind: hold times, or intervals of one of two kinds."""

    value: Floats  # (N,) milliseconds
    sample: Integers  # (N,) the sample's number
    type: Integers  # (N,) index in `keys` of the key, or pair of keys, that the time belongs to
    # The m distinct keys, in lower case; for pairs, the first keys and the second keys
    keys: tuple[Types, ...]
    n_samples: int  # number of samples, including those without any such time

    def members(self, name: str) -> Truths:
        """A mask of the times that belong to keys in a set, or to pairs of keys in a pair of sets."""
        of_type = in_set(name, *self.keys) if len(self.keys) == 1 else in_pair(name, *self.keys)
        members: Truths = of_type[self.type]
        return members

    def moments(self, chosen: Truths) -> tuple[Floats, Floats]:
        """The moments of the chosen times by sample."""
        return _moments(self.value[chosen], self.sample[chosen], self.n_samples)


def long_text_vectors(keystrokes: pd.DataFrame, bounds: Bounds | None = None) -> pd.DataFrame:
    """The 218 statistics of the published vectors, one row per sample, indexed by (user, session).

    `du_SET` are hold times, `t1_A__B` times from the release of a key in A to the press of the next, in B,
    `t2_A__B` from press to press; of each the mean and the standard deviation, in milliseconds. Outliers are
    left out, and statistics of rare keys are mixed with those of broader sets. No value is ever missing.

    Outliers are determined from all the samples given, as in the published protocol. For vectors that do not
    depend on each other, such as that of a new sample, give the `bounds` that `time_bounds` finds in a
    population.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import long_text_vectors
    >>> vectors = long_text_vectors(make_typists(2, 2, "free", 200))
    >>> vectors.shape, bool(vectors.isna().to_numpy().any())
    ((4, 218), False)
    """
    if bounds is not None and not set(TIMES) <= set(bounds):
        raise ValueError(f"bounds must have {', '.join(TIMES)}, not {', '.join(map(str, bounds))}")
    columns: dict[str, Floats] = {}
    checked = check_keystrokes(keystrokes)
    for time, times in _all_times(checked):
        limits = _bounds(times) if bounds is None else bounds[time]
        for name, (mean, std) in _set_statistics(times, _within(times, limits), TREES[time]).items():
            columns[f"{time}_{name}.mean"], columns[f"{time}_{name}.std"] = mean, std
    index = pd.MultiIndex.from_frame(checked.loc[sample_starts(checked), SAMPLE])
    return pd.DataFrame(columns, index=index)[list(COLUMNS)]


def time_bounds(keystrokes: pd.DataFrame) -> Bounds:
    """The range of times that count for each key and pair of keys: `lower` and `upper`, for du, t1 and t2.

    A time counts if it lies strictly between them. Of a key that occurs once, or always with the same time,
    no time counts, because there is no spread.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.keystrokes import long_text_vectors, time_bounds
    >>> bounds = time_bounds(make_typists(4, 2, "free", 200))
    >>> sorted(bounds)
    ['du', 't1', 't2']
    >>> new = make_typists(1, 1, "free", 200, first_user=9)
    >>> long_text_vectors(new, bounds).shape
    (1, 218)
    """
    return {time: _bounds(times) for time, times in _all_times(check_keystrokes(keystrokes))}


def _all_times(keystrokes: pd.DataFrame) -> Iterator[tuple[str, _Times]]:
    """Yield the three kinds of time, without times that are missing because a release was not seen."""
    starts = sample_starts(keystrokes)
    sample = sample_of_row(starts, len(keystrokes))
    code, distinct_names = pd.factorize(keystrokes["keyname"].to_numpy(dtype=object))
    of_name, names = pd.factorize(np.array([key_name(name) for name in distinct_names], dtype=object))
    key = of_name[code]
    pair = np.roll(key, 1) * len(names) + key
    features = timing_features(keystrokes, first="missing")
    for time, feature in TIMES.items():
        value = features[feature].to_numpy(dtype=np.float64)
        there = ~np.isnan(value)
        type_, distinct = pd.factorize((key if time == "du" else pair)[there])
        parts = (distinct,) if time == "du" else np.divmod(distinct, len(names))
        keys = tuple(names[part] for part in parts)
        yield time, _Times(value[there], sample[there], type_, keys, len(starts))


def _bounds(times: _Times) -> pd.DataFrame:
    """Mean ± 4 standard deviations of each type, repeated until no more times are left out."""
    n_types = len(times.keys[0])
    lower, upper = np.full(n_types, -np.inf), np.full(n_types, np.inf)
    kept = np.ones(len(times.value), dtype=bool)
    while True:
        count, (mean, std) = _moments(times.value[kept], times.type[kept], n_types)
        reach = np.where(count > 0, OUTLIER * std, np.inf)
        # Bounds never widen, so that excluded times stay excluded.
        lower, upper = np.maximum(lower, mean - reach), np.minimum(upper, mean + reach)
        still = kept & (times.value > lower[times.type]) & (times.value < upper[times.type])
        if still.sum() == kept.sum():
            return pd.DataFrame({"lower": lower, "upper": upper}, index=_index(times.keys))
        kept = still


def _within(times: _Times, bounds: pd.DataFrame) -> Truths:
    """A mask of the times within the bounds; those of a key without bounds do not count."""
    known = bounds.reindex(_index(times.keys))
    lower, upper = known["lower"].to_numpy()[times.type], known["upper"].to_numpy()[times.type]
    within: Truths = (times.value > lower) & (times.value < upper)
    return within


def _set_statistics(times: _Times, kept: Truths, tree: Tree) -> dict[str, Floats]:
    """The mean and standard deviation, (2, n_samples), of each set of the tree.

    A set with too few times is mixed with the nearest ancestor that has enough together with it, or with the
    root if none has. The ancestor's own statistics are used, not its mixture with a broader set.
    """
    (root, _), *below = lineages(tree).items()
    plain = {root: _root_statistics(times, kept)}
    mixed = dict(plain)
    count: dict[str, Floats] = {}
    for name, (_, *ancestors) in below:
        count[name], plain[name] = times.moments(kept & times.members(name))
        support = plain[root]
        for ancestor in ancestors:
            support = np.where(count[name] + count[ancestor] >= ENOUGH, plain[ancestor], support)
        leaning = (count[name] * plain[name] + PARENT_WEIGHT * support) / (count[name] + PARENT_WEIGHT)
        mixed[name] = np.where(count[name] >= ENOUGH, plain[name], leaning)
    return mixed


def _root_statistics(times: _Times, kept: Truths) -> Floats:
    """The statistics of the root, (2, n_samples), on which all sets fall back: those of all times that count.

    If none counts, they are those of all times; without any times, the mean over the samples that have some;
    0 if no sample has any.
    """
    count, statistics = times.moments(kept)
    everything, unclean = times.moments(np.ones(len(kept), dtype=bool))
    statistics = np.where(count > 0, statistics, unclean)
    some = everything > 0
    elsewhere = statistics[:, some].mean(axis=1) if some.any() else np.zeros(2)
    ended: Floats = np.where(some, statistics, elsewhere[:, None])
    return ended


def _moments(value: Floats, group: Integers, n_groups: int) -> tuple[Floats, Floats]:
    """Counts (n_groups,), and means and standard deviations (2, n_groups), divisor n − 1; 0 if undefined."""
    count = np.bincount(group, minlength=n_groups).astype(np.float64)
    mean = np.bincount(group, value, n_groups) / np.maximum(count, 1)
    square = np.bincount(group, (value - mean[group]) ** 2, n_groups)
    return count, np.stack([mean, np.sqrt(square / np.maximum(count - 1, 1))])


def _index(keys: tuple[Types, ...]) -> pd.Index:
    if len(keys) == 1:
        return pd.Index(keys[0], name="key")
    return pd.MultiIndex.from_arrays(keys, names=["first", "second"])
