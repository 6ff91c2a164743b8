"""Guesses keys and words from timings: the attacker's knowledge, and how much of a text is recovered."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats, Integers, Truths
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.keystrokes.samples import Samples
from keydyn.model import POHMM, NGrams, Sequences

FIRST_GUESSES = 5
# Breaks ties between equally probable guesses; far below any difference due to times.
TIES = 1e-9
# The least number of letters in a word.
WORD = 2
# Knowledge of the text: the frequencies of keys, their order in pairs, or n-grams of other texts.
LETTERS, CHAIN, READING = "key frequencies", "event chain", "n-grams of essays"
ORDERS = {LETTERS: 1, CHAIN: 2, READING: 3}
Figures = dict[str, float]


@dataclass(frozen=True, eq=False)
class Attacker:
    """An attacker who has timings, a model of how keys are timed, and models of texts."""

    times: POHMM
    texts: dict[str, NGrams]

    @classmethod
    def taught(cls, lessons: Samples, reading: Samples | None = None, grain: float = 0.0) -> Attacker:
        """An attacker who learns both models from these samples, and n-grams from `reading`, if given."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coarse = replace(lessons, sequences=rounded(lessons.sequences, grain))
            times: POHMM = RecommendedPOHMM().fit(coarse).model_
        read = {LETTERS: lessons, CHAIN: lessons} | ({} if reading is None else {READING: reading})
        texts = {
            name: NGrams.learn(samples.sequences, ORDERS[name], times.event_types_)
            for name, samples in read.items()
        }
        return cls(times, texts)


def rounded(sequences: Sequences, grain: float) -> Sequences:
    """Round times to multiples of `grain` milliseconds, at least half of one; 0 leaves them unchanged."""
    if grain == 0.0:
        return sequences
    return sequences.with_values(np.maximum(np.round(sequences.X / grain), 0.5) * grain)


def in_windows(sequences: Sequences, n_keys: int) -> Sequences:
    """Divide each sequence into windows of this many keys; rests and shorter sequences are left out."""
    counts = sequences.lengths // n_keys
    places = [
        np.arange(first, first + count * n_keys)
        for first, count in zip(sequences.offsets[:-1].tolist(), counts.tolist(), strict=True)
    ]
    which = np.concatenate(places)
    parts = sequences.X[which], sequences.codes[which], sequences.event_types
    return Sequences.of_checked(*parts, np.arange(counts.sum() + 1) * n_keys, sequences.feature_names)


def guessed(attacker: Attacker, text: str, sequences: Sequences, timed: bool = True) -> Figures:
    """The shares of keys, and of words with at least two letters, that are recovered.

    `top_1` and `top_5` are the shares of keys that were the most probable, and among the five most probable.
    `word_1` and `word_5` are the same for words, with each key guessed separately. A key that the attacker
    does not know is not recovered. With `timed` false, only the model of the text is used.
    """
    model, typed = attacker.times, sequences.labels().astype(object)
    seen = sequences if timed else sequences.with_values(np.full_like(sequences.X, np.nan))
    probability = model.predict_events(seen.without_events(), text=attacker.texts[text])[1]
    order = {label: k for k, label in enumerate(model.event_types_.tolist())}
    place = np.array([order.get(label, -1) for label in typed.tolist()])
    with np.errstate(divide="ignore"):
        # The order of equally probable guesses is random.
        log_p = np.log(probability) + TIES * np.random.default_rng(0).random(probability.shape)
    own = np.where(place >= 0, log_p[np.arange(len(place)), place], -np.inf)
    rank = np.where(place >= 0, (log_p > own[:, None]).sum(axis=1), FIRST_GUESSES)
    words = _word_ranks(log_p, own, words_of(sequences))
    found = {"keys": float(len(typed)), "words": float(len(words))}
    for k in (1, FIRST_GUESSES):
        found[f"top_{k}"] = float((rank < k).mean())
        found[f"word_{k}"] = float((words < k).mean()) if len(words) else math.nan
    return found


def bits_per_key(attacker: Attacker, text: str, sequences: Sequences) -> float:
    """Bits per key that timings add to the text: ln P(x, Ω) − ln P(x) − ln P(Ω), in bits.

    Keys that the attacker does not know are left out.
    """
    model, ngrams = attacker.times, attacker.texts[text]
    labels = sequences.labels().astype(object)
    known = np.isin(labels, model.event_types_)
    labels[~known] = None
    frame = pd.DataFrame(sequences.X, columns=sequences.feature_names)
    timed = Sequences.from_arrays(frame, labels, sequences.lengths)
    untimed = timed.with_values(np.full_like(timed.X, np.nan))
    joint, times, alone = (
        model.score_joint(one, text=ngrams).sum() for one in (timed, timed.without_events(), untimed)
    )
    return float((joint - times - alone) / math.log(2) / known.sum())


def words_of(sequences: Sequences) -> Integers:
    """The begin and end of each word, (W, 2): the longest runs of letters within a sequence."""
    names = sequences.event_types.astype(str)
    letter: Truths = np.array([len(name) == 1 and name.isalpha() for name in names.tolist()])
    is_letter = letter[sequences.codes]
    first = is_letter.copy()
    first[1:] &= ~is_letter[:-1]
    first[sequences.offsets[:-1]] = is_letter[sequences.offsets[:-1]]
    last = np.append(~is_letter[1:] | first[1:], True) & is_letter
    bounds = np.stack([np.flatnonzero(first), np.flatnonzero(last) + 1], axis=1)
    return bounds[np.diff(bounds, axis=1)[:, 0] >= WORD]


def _word_ranks(log_p: Floats, log_own: Floats, words: Integers) -> Integers:
    """The number of the five most probable strings that are more probable than each word, (W,)."""
    if len(words) == 0:
        return np.empty(0, dtype=np.int64)
    lengths = words[:, 1] - words[:, 0]
    best = np.full((len(words), FIRST_GUESSES), -np.inf)
    best[:, 0], own = 0.0, np.zeros(len(words))
    order = np.sort(log_p, axis=1)[:, ::-1][:, :FIRST_GUESSES]
    for k in range(int(lengths.max())):
        here = np.flatnonzero(lengths > k)
        keys = words[here, 0] + k
        longer = (best[here, :, None] + order[keys][:, None, :]).reshape(len(here), -1)
        best[here] = np.sort(longer, axis=1)[:, ::-1][:, :FIRST_GUESSES]
        own[here] += log_own[keys]
    ranks: Integers = (best > own[:, None]).sum(axis=1)
    return np.where(np.isneginf(own), FIRST_GUESSES, ranks)


@dataclass(frozen=True, eq=False)
class Guesses:
    """All guesses about one person's text: rows with the attacker's knowledge and the results."""

    asked: Sequences
    rows: list[dict[str, Any]]

    def by_text(self, source: str, attacker: Attacker) -> None:
        """Add guesses with and without timings, for each kind of knowledge of the text."""
        for text in attacker.texts:
            found = guessed(attacker, text, self.asked)
            alone = guessed(attacker, text, self.asked, timed=False)
            without = {f"alone_{name}": alone[name] for name in ("top_1", "top_5", "word_1", "word_5")}
            bits = bits_per_key(attacker, text, self.asked) if text == CHAIN else math.nan
            known = {"known_keys": len(attacker.times.event_types_), "bits": bits}
            self.rows.append({"what": "text", "source": source, "text": text, **known, **found, **without})

    def by_length(self, source: str, attacker: Attacker, lengths: Sequence[int]) -> None:
        """Add guesses from windows of this many keys each."""
        for n in (n for n in lengths if n <= self.asked.longest):
            windows = in_windows(self.asked, n)
            found = guessed(attacker, CHAIN, windows) | {"bits": bits_per_key(attacker, CHAIN, windows)}
            self.rows.append({"what": "length", "source": source, "text": CHAIN, "length": n, **found})

    def by_grain(self, source: str, attackers: Mapping[float, Attacker]) -> None:
        """Add guesses from rounded times; each attacker has learnt from times rounded in the same way."""
        for grain, attacker in attackers.items():
            sequences = rounded(self.asked, grain)
            found = guessed(attacker, CHAIN, sequences) | {"bits": bits_per_key(attacker, CHAIN, sequences)}
            self.rows.append({"what": "grain", "source": source, "text": CHAIN, "grain": grain, **found})
