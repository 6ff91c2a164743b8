"""The keys that a simulated typist presses: a phrase, a passage or words of their own, with mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.datasets.simulated import keyboard, texts
from keydyn.datasets.simulated.keyboard import BACKSPACE, COMMA, PERIOD, SHIFT, SPACE
from keydyn.datasets.simulated.typist_population import MISTAKES, PREFERENCES, WORDS, Streams

# Standard deviation over people of the logarithm of the frequency with which they use a word.
PREFERENCE = 0.6
# The largest number of keys pressed before a wrong one is noticed.
UNNOTICED = 2


def fixed_keys(phrase: str | Sequence[str]) -> Integers:
    """The numbers of the keys of a phrase, given as text or by the keys' names."""
    keys = keyboard.spelled(phrase) if isinstance(phrase, str) else phrase
    return keyboard.key_codes(keys)


def copied_keys(n_samples: int, n_keys: int) -> Integers:
    """The keys of copied passages, (n_samples, n_keys)."""
    passages = [fixed_keys(passage + "\n") for passage in texts.PASSAGES]
    starts = np.cumsum([0] + [len(passage) for passage in passages])
    first = starts[np.arange(n_samples) % len(passages)]
    keys: Integers = np.concatenate(passages)[(first[:, None] + np.arange(n_keys)) % starts[-1]]
    return keys


def free_keys(streams: Streams, users: Integers, n_samples: int, n_keys: int) -> Integers:
    """Sentences, (U · n_samples, n_keys), with words that each person favours to a different degree."""
    lexicon = the_lexicon()
    liking = streams.normals(users, PREFERENCES, (len(lexicon.rank),))
    weights = np.exp(PREFERENCE * liking) / (1.0 + lexicon.rank)
    # A word has at least one key, so there are never more words than keys.
    uniforms = streams.uniforms(users, WORDS, (n_samples, n_keys, 2))
    keys = np.empty((len(users) * n_samples, n_keys), dtype=np.int64)
    person = np.repeat(np.arange(len(users)), n_samples)
    _write(lexicon, np.cumsum(weights, axis=1), person, uniforms.reshape(len(keys), n_keys, 2), keys)
    return keys


def with_mistakes(clean: Integers, rates: Floats, streams: Streams, users: Integers) -> Integers:
    """Insert wrong letters at each user's rate, which are noticed, deleted and typed again."""
    n_samples, n_keys = len(clean) // len(users), clean.shape[1]
    uniforms = streams.uniforms(users, MISTAKES, (n_samples, n_keys, 2)).reshape(len(clean), n_keys, 2)
    keys = np.empty_like(clean)
    _stumble(clean, np.repeat(rates, n_samples), uniforms, keyboard.neighbours(), keys)
    return keys


class Lexicon(NamedTuple):
    """The words as arrays, class by class."""

    chain: Floats  # (C, C) cumulative probabilities of the next word's class
    first_word: Integers  # (C + 1,) class c has the words first_word[c] to first_word[c + 1]
    rank: Integers  # (W,) a word's place in its class, from 1
    first_key: Integers  # (W + 1,) word w has the keys first_key[w] to first_key[w + 1] of `keys`
    keys: Integers


@cache
def the_lexicon() -> Lexicon:
    """The words of `texts`."""
    classes = list(texts.WORDS)
    chain = np.array([[texts.FOLLOWING[row].get(column, 0.0) for column in classes] for row in classes])
    sizes = [len(texts.WORDS[name].split()) for name in classes]
    words = [fixed_keys(word) for name in classes for word in texts.WORDS[name].split()]
    return Lexicon(
        chain=np.cumsum(chain, axis=1),
        first_word=np.concatenate([[0], np.cumsum(sizes)]),
        rank=np.concatenate([np.arange(1, size + 1) for size in sizes]),
        first_key=np.concatenate([[0], np.cumsum([len(word) for word in words])]),
        keys=np.concatenate(words),
    )


@compiled
def _find(bounds: Floats, low: int, high: int, value: float) -> int:
    """The first place in bounds[low:high] above the value; the last place if there is none."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if value < bounds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _write(lexicon: Lexicon, weights: Floats, person: Integers, uniforms: Floats, keys: Integers) -> None:
    """Fill `keys` with sentences; `weights` (U, W) are cumulative over all words of a person."""
    chain, first_word, first_key, word_keys = (
        lexicon.chain,
        lexicon.first_word,
        lexicon.first_key,
        lexicon.keys,
    )
    n_classes, n_keys = len(chain), keys.shape[1]
    for s in range(len(keys)):
        # Every text begins as if a sentence had just ended.
        kind, begins, n, drawn = n_classes - 1, True, 0, 0
        while n < n_keys:
            kind = _find(chain[kind], 0, n_classes, uniforms[s, drawn, 0])
            low, high = first_word[kind], first_word[kind + 1]
            bounds = weights[person[s]]
            below = bounds[low - 1] if low > 0 else 0.0
            word = _find(bounds, low, high, below + uniforms[s, drawn, 1] * (bounds[high - 1] - below))
            drawn += 1
            first = word_keys[first_key[word]]
            mark = first in (PERIOD, COMMA)
            if n > 0 and not mark:
                keys[s, n] = SPACE
                n += 1
            if begins and first != SHIFT and n < n_keys:
                keys[s, n] = SHIFT
                n += 1
            for k in range(first_key[word], min(first_key[word + 1], first_key[word] + n_keys - n)):
                keys[s, n] = word_keys[k]
                n += 1
            begins = first == PERIOD


@compiled
def _stumble(clean: Integers, rates: Floats, uniforms: Floats, neighbours: Integers, keys: Integers) -> None:
    """Fill `keys` with the clean texts and mistakes in them."""
    n_keys = keys.shape[1]
    for s in range(len(keys)):
        right, n = 0, 0
        while n < n_keys:
            key = clean[s, right]
            if uniforms[s, n, 0] >= rates[s] or neighbours[key, 0] < 0:
                keys[s, n] = key
                right += 1
                n += 1
                continue
            side = int(2.0 * uniforms[s, n, 1])
            rest = 2.0 * uniforms[s, n, 1] - side
            keys[s, n] = neighbours[key, side]
            n += 1
            unnoticed = 0
            # Because of the square, most mistakes are noticed at once. Shift leaves no character to delete.
            for k in range(right + 1, min(right + 1 + int((UNNOTICED + 1) * rest * rest), n_keys)):
                if n == n_keys or clean[s, k] == SHIFT:
                    break
                keys[s, n] = clean[s, k]
                unnoticed += 1
                n += 1
            for _ in range(min(unnoticed + 1, n_keys - n)):
                keys[s, n] = BACKSPACE
                n += 1
            # The second attempt is always right; otherwise a high rate could keep it wrong for ever.
            if n < n_keys:
                keys[s, n] = key
                right += 1
                n += 1
