"""An n-gram model of text: the probability of each event type given those before it, learnt from any text.

The probability of a type after a context of n − 1 types is interpolated with that after the last n − 2 of
them, and so on down to equal shares, by method C of T. C. Bell, J. G. Cleary and I. H. Witten (*Text
Compression*, 1990): with a context seen f times, followed by d different types, the shorter context has the
weight d / (f + d). Contexts that were never seen are not kept: they have the probabilities of their longest
suffix that was seen.

In place of the event chain, such a model helps to recover event types from emissions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from keydyn.arrays import Floats, Given, Integers, plain
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences, as_sequences, to_draw
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.text_recursions import TextWalk, smooth_types
from keydyn.model.theta.lattice import per_sequence
from keydyn.model.theta.parameters import Parameters
from keydyn.short_repr import short_repr

# Most entries of the table of contexts and types: a gigabyte with everything computed from them.
LARGEST = 2**25
# Most entries of a sequence's lattice, of eight bytes each: a gigabyte.
LARGEST_LATTICE = 2**27


@dataclass(frozen=True, eq=False)
class NGrams:
    """An n-gram model of event types.

    Attributes
    ----------
    event_types : (m,) the known types; order : n
    prob : (C, m) the probability of each type after each context. The first context is the empty one,
        followed by the m single types and then the longer contexts that were seen
    following : (C, m) the context that results when a type follows a context
    contexts : (C,) the lengths of the contexts, and (C,) their types as the digits of a number to the base m

    Examples
    --------
    >>> from keydyn import NGrams
    >>> text = NGrams.learn(list("the cat sat on the mat ") * 10, order=3)
    >>> text.order, len(text.event_types)
    (3, 10)
    """

    event_types: Types
    order: int
    prob: Floats
    following: Integers
    contexts: tuple[Integers, Integers]

    __repr__ = short_repr

    @classmethod
    def learn(cls, events: Any, order: int = 3, event_types: Any = None, lengths: Given = None) -> Self:
        """Learn a model from texts: event types in any form that `fit` accepts, or `Sequences`.

        `event_types` is the vocabulary, by default the types in the texts. Contexts do not extend across a
        type outside of it, a missing type, or the end of a text.

        Examples
        --------
        >>> lines = ["the cat", "the mat"]
        >>> NGrams.learn([list(line) for line in lines], order=2).event_types.tolist()
        [' ', 'a', 'c', 'e', 'h', 'm', 't']
        """
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 1:
            raise ValueError(f"order must be a whole number, 1 or more, not {order!r}")
        texts = _texts(events, lengths)
        types = texts.event_types if event_types is None else vocabulary.check_types(event_types)
        m = len(types)
        if m == 0:
            raise ValueError("the texts have no event types to learn from")
        if m ** (order + 1) > np.iinfo(np.int64).max:
            raise ValueError(f"{m} event types are too many for order {order}")
        codes = vocabulary.find(texts.codes, texts.event_types, types)[0]
        reach = _reach(codes, texts.offsets, m)
        reached, digits, prob = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [np.full((1, m), 1.0 / m)]
        # The last type is a context even if no probability depends on it.
        for n in range(max(order, 2)):
            # Known events with n known types before them in the same text.
            counted = np.flatnonzero(reach > n) if n < order else np.empty(0, dtype=np.int64)
            before = _digits(codes, counted - 1, n, m)
            seen = np.arange(m**n) if n < 2 else np.unique(before)
            if (sum(map(len, digits)) + len(seen)) * m > LARGEST:
                raise ValueError(
                    f"order {order} makes too many contexts of {m} event types: take a lower one"
                )
            counts = np.zeros((len(seen), m))
            np.add.at(counts, (np.searchsorted(seen, before), codes[counted]), 1.0)
            leans = prob[-1][np.searchsorted(digits[-1], seen % m ** (n - 1))] if n else prob[0]
            distinct = np.count_nonzero(counts, axis=1)[:, None]
            total = counts.sum(axis=1, keepdims=True) + distinct
            mixed = np.divide(counts + distinct * leans, total, out=leans.copy(), where=total > 0)
            if n == 0:
                prob = [mixed]
            elif len(seen):
                reached, digits, prob = [*reached, np.full(len(seen), n)], [*digits, seen], [*prob, mixed]
        contexts = np.concatenate(reached), np.concatenate(digits)
        following = _following(contexts, m)
        return cls(types, int(order), np.concatenate(prob), following, contexts)

    def log_probability(self, events: Any, lengths: Given = None) -> Floats:
        """ln P(Ω), one per text; −∞ for a text with an unknown type.

        Examples
        --------
        >>> text.log_probability(list("the mat")) > text.log_probability(list("tem hat"))
        array([ True])
        """
        texts = _texts(events, lengths)
        return per_sequence(self.log_probabilities(texts), texts.offsets)

    def log_probabilities(self, events: Any, lengths: Given = None) -> Floats:
        """ln P(Ω_n | Ω_1..n−1) of each event; −∞ for an unknown type, after which contexts start anew.

        Examples
        --------
        >>> text.log_probabilities(list("the?")).tolist()[3]
        -inf
        """
        texts, m = _texts(events, lengths), len(self.event_types)
        codes = vocabulary.find(texts.codes, texts.event_types, self.event_types)[0]
        known = codes < m
        reach = np.where(known, _reach(codes, texts.offsets, m) - 1, 0)
        found = np.zeros(len(codes), dtype=np.int64)
        missing = known & (reach > 0)
        for n in range(int(self.contexts[0].max()), 0, -1):
            asked = np.flatnonzero(missing & (reach >= n))
            place, there = _place(self.contexts, n, _digits(codes, asked - 1, n, m))
            found[asked[there]] = place[there]
            missing[asked[there]] = False
        result = np.full(len(codes), -np.inf)
        result[known] = np.log(self.prob[found[known], codes[known]])
        return result

    @property
    def last(self) -> Integers:
        """The last type of each context, (C,); 0 for the empty one."""
        return self.contexts[1] % len(self.event_types)


def _texts(events: Any, lengths: Given) -> Sequences:
    if isinstance(events, Sequences):
        return as_sequences(events, None, lengths)
    return to_draw(1, 0, events, lengths)


def _reach(codes: Integers, offsets: Integers, m: int) -> Integers:
    """The number of successive known types that end with each event, within its text; 0 if it is unknown."""
    place = np.arange(len(codes))
    begins = np.zeros(len(codes), dtype=np.int64)
    begins[offsets[:-1]] = offsets[:-1]
    gaps = np.where(codes < m, begins, place + 1)
    reach: Integers = place + 1 - np.maximum.accumulate(gaps)
    return reach


def _digits(codes: Integers, ends: Integers, n: int, m: int) -> Integers:
    """The n types up to each of these events, as the digits of a number to the base m."""
    number = np.zeros(len(ends), dtype=np.int64)
    for back in range(n - 1, -1, -1):
        number = number * m + codes[ends - back]
    return number


def _place(contexts: tuple[Integers, Integers], n: int, digits: Integers) -> tuple[Integers, Integers]:
    """The places of the contexts of n types with these digits, and a mask of those that exist."""
    lengths, all_digits = contexts
    first, end = np.searchsorted(lengths, [n, n + 1])
    place = np.minimum(np.searchsorted(all_digits[first:end], digits), max(end - first - 1, 0)) + first
    return place, all_digits[place] == digits if end > first else np.zeros(len(digits), dtype=bool)


def _following(contexts: tuple[Integers, Integers], m: int) -> Integers:
    """The longest known suffix of each context extended by each type, (C, m)."""
    lengths, digits = contexts
    longer = digits[:, None] * m + np.arange(m)
    found = np.zeros(longer.shape, dtype=np.int64)
    for n in range(1, int(lengths.max()) + 1):
        place, there = _place(contexts, n, (longer % m**n).ravel())
        there = there.reshape(longer.shape) & (lengths[:, None] + 1 >= n)
        found[there] = place.reshape(longer.shape)[there]
    return found


def smoothed(
    parameters: Parameters, text: NGrams, log_density: Floats, offsets: Integers
) -> tuple[Floats, Floats]:
    """P(ω_n | x) of each event, (N, m), and ln P(x) of each sequence, from densities (N, m, M).

    A sequence that the model cannot produce gets zeros and −∞.
    """
    walk = _walk(parameters, text, offsets)
    largest = log_density.max(axis=(1, 2))
    log_scale = np.where(largest > -np.inf, largest, 0.0)
    density = np.exp(log_density - log_scale[:, None, None])
    posterior, scores = np.empty(log_density.shape[:2]), np.empty(len(offsets) - 1)
    smooth_types(walk, density, log_scale, posterior, scores)
    return posterior, scores


def _walk(
    parameters: Parameters, text: NGrams, offsets: Integers, largest: int = LARGEST_LATTICE
) -> TextWalk:
    if text.event_types.tolist() != parameters.event_types.tolist():
        raise ValueError(
            "the model of text must know the event types of this model in their order: learn it with "
            "event_types=model.event_types_"
        )
    longest = int(np.diff(offsets).argmax())
    n_events, n_contexts = int(np.diff(offsets)[longest]), len(text.prob)
    if n_events * n_contexts * parameters.n_states > largest:
        raise ValueError(
            f"sequence {longest} has {n_events:,} events, too many for {n_contexts:,} contexts of text: "
            "cut it into shorter ones, or learn the text with a lower order"
        )
    contexts = plain(text.prob), plain(text.following), plain(text.last)
    return TextWalk(
        plain(offsets), *contexts, plain(parameters.startprob), plain(parameters.dense_transmat())
    )


def check_possible(scores: Floats) -> None:
    """Raise `ValueError` naming the first sequence that the model cannot produce."""
    impossible = np.flatnonzero(np.isneginf(scores))
    if len(impossible):
        raise ValueError(f"sequence {impossible[0]} has probability zero under the model")
