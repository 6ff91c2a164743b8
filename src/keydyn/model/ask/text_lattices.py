"""Event types from emissions where a model of n-grams says which types follow each other."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Integers, plain
from keydyn.model.ask.ngrams import NGrams
from keydyn.model.engine.text_recursions import TextWalk, most_probable_types, smooth_types
from keydyn.model.theta.parameters import Parameters

# Entries of a sequence's lattice, of eight bytes each: a gigabyte.
LARGEST_LATTICE = 2**27


def smoothed(
    parameters: Parameters, text: NGrams, log_density: Floats, offsets: Integers
) -> tuple[Floats, Floats]:
    """P(ω_n | x) of each event, (N, m), and ln P(x) of each sequence; densities are (N, m, M).

    Zeros and −∞ for a sequence that the model cannot produce.
    """
    walk = _walk(parameters, text, offsets)
    largest = log_density.max(axis=(1, 2))
    log_scale = np.where(largest > -np.inf, largest, 0.0)
    density = np.exp(log_density - log_scale[:, None, None])
    posterior, scores = np.empty(log_density.shape[:2]), np.empty(len(offsets) - 1)
    smooth_types(walk, density, log_scale, posterior, scores)
    return posterior, scores


def decoded(
    parameters: Parameters, text: NGrams, log_density: Floats, offsets: Integers
) -> tuple[Floats, Integers, Integers]:
    """ln P(x, Ω, z) of each sequence's most probable types and states, and these."""
    walk = _walk(parameters, text, offsets)
    types, states = (np.empty(len(log_density), dtype=np.int64) for _ in range(2))
    scores = np.empty(len(offsets) - 1)
    most_probable_types(walk, plain(log_density), types, states, scores)
    check_possible(scores)
    return scores, types, states


def _walk(parameters: Parameters, text: NGrams, offsets: Integers) -> TextWalk:
    if text.event_types.tolist() != parameters.event_types.tolist():
        raise ValueError(
            "the model of text must know the event types of this model in their order: learn it with "
            "event_types=model.event_types_"
        )
    longest = int(np.diff(offsets).argmax())
    n_events, n_contexts = int(np.diff(offsets)[longest]), len(text.prob)
    if n_events * n_contexts * parameters.n_states > LARGEST_LATTICE:
        raise ValueError(
            f"sequence {longest} has {n_events:,} events, too many for {n_contexts:,} contexts of text: "
            "cut it into shorter ones, or learn the text with a lower order"
        )
    contexts = plain(text.prob), plain(text.following), plain(text.last)
    return TextWalk(
        plain(offsets), *contexts, plain(parameters.startprob), plain(parameters.dense_transmat())
    )


def check_possible(scores: Floats) -> None:
    """`ValueError` naming the first sequence that the model cannot produce."""
    impossible = np.flatnonzero(np.isneginf(scores))
    if len(impossible):
        raise ValueError(f"sequence {impossible[0]} has probability zero under the model")
