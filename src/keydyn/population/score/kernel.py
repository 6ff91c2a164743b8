"""One event after the other under many templates: its density, the hidden states, the tempo. Compiled.

A sample's score is the sum of its events' terms. An event's term is known when the next key is, whose name
the cell of its hold needs. `score` goes through whole samples, or through what has come of sessions that go
on. The innermost loops go over templates, which do not depend on each other, so that the machine computes
several at a time. Nothing is allocated here, so that no references need counting in the loops.
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, merged, without_counting
from keydyn.population.features import CLIP, Typing

# How much of a sample's tempo is forgotten with each event.
FORGET = 0.02
# Densities of all features of an event are multiplied: a smaller product counts as this.
LEAST_DENSITY = 1e-300
# Densities of a sample's events are multiplied down to this product, or up to one divided by it.
SMALLEST_PRODUCT = 1e-200
# What is known of this many templates fits into the fastest memory.
TEMPLATES = 64


class TemplateColumns(NamedTuple):
    """Templates side by side: the last axis is theirs; or one after the other, where the first is.

    `mean`, (C, U), and `slopes`, (F, 3, U), are the templates'; `per_scale`, (C, U), and `per_gain`, (F, U),
    are one divided by their scales and gains, because dividing takes long.
    """

    mean: Floats
    per_scale: Floats
    slopes: Floats
    per_gain: Floats


class Templates(NamedTuple):
    """What events are scored under: templates one after the other, then others side by side."""

    own: TemplateColumns
    beside: TemplateColumns


class Shared(NamedTuple):
    """What all people share: η, (F,), the parents of residuals, (F, 3, 2), and the chain of hidden states."""

    tempo: Floats
    parents: Integers
    start: Floats
    transitions: Floats
    location: Floats
    width: Floats
    degrees: Integers
    constant: Floats


class Asked(NamedTuple):
    """What `score` fills in; an empty array is not asked for."""

    # (n, U) and (N, U) log-densities
    samples: Floats = np.empty((0, 0))
    events: Floats = np.empty((0, 0))
    # (N, F, K) what each feature adds to an event's log-density, under the first K templates
    terms: Floats = np.empty((0, 0, 0))
    # (N, F, K) e − d under the first K templates, NaN where a value is missing
    residuals: Floats = np.empty((0, 0, 0))
    # (N, S) probability of the hidden states at each event, given the earlier ones, under the first template
    states: Floats = np.empty((0, 0))


class Sessions(NamedTuple):
    """What samples are the next part of; without rows, they are whole.

    A session has one template of its own, that of its row, beside those that all share.
    """

    # (n,) of each sample its session, the number of its first event there, from 0, and the class of the key
    # before that; below 0 it is no event
    row: Integers
    position: Integers
    before: Integers
    left: Floats  # (K, 5 F + S, U) what the events of each session have left, as `Work.left`


_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)
WHOLE = Sessions(_NO_ROWS, _NO_ROWS, _NO_ROWS, np.zeros((0, 0, 0)))


class Event(NamedTuple):
    """Values and cells, (F,), classes of the key before (−1 at first) and its own, and place modulo 3."""

    y: Floats
    cell: Integers
    before: int
    key: int
    place: int


class Block(NamedTuple):
    """Templates that are worked on together: the first, how many, and how many of them in detail.

    The first `own` are rows from `row` on; `beside` is the column of the next.
    """

    begin: int
    size: int
    detailed: int
    own: int
    row: int
    beside: int


class Work(NamedTuple):
    """What events so far have left of a block of T templates, and room for the event at hand."""

    left: Floats  # (5 F + S, T) the next four
    r: Floats  # (3, F, T) residuals of this event and the two before, event n at n modulo 3
    # (F, T) the tempo and its variance, 1/P
    d: Floats
    unsure: Floats
    alpha: Floats  # (S, T) probability of the hidden states
    # (T,) the logarithm of the sample's density is `total` + ln `running`
    total: Floats
    running: Floats
    # (F, T) what each feature adds to it, and e − d, in detail
    terms: Floats
    gap: Floats
    # (F, 3, T) and (F, T) the templates' own
    slopes: Floats
    per_gain: Floats
    # Room
    e: Floats
    likely: Floats
    factor: Floats
    density: Floats
    ratio: Floats
    weight: Floats
    product: Floats

    @classmethod
    def room(cls, F: int, S: int) -> Work:
        """For F features and S states; each thread keeps its own."""
        if (F, S) not in _ROOMS.made:
            left = np.zeros((5 * F + S, TEMPLATES))
            shapes = (), (), (F,), (F,), (F, 3), (F,), (F,), (S,), (), (), (), (), ()
            room = (np.empty((*shape, TEMPLATES)) for shape in shapes)
            _ROOMS.made[F, S] = cls(left, *parts_left(left, F), *room)
        return _ROOMS.made[F, S]


def parts_left(left: Floats, F: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Residuals (…, 3, F, U), tempo and its variance (…, F, U), and hidden states (…, S, U), in one array."""
    *n, _, U = left.shape
    residuals = left[..., : 3 * F, :].reshape(*n, 3, F, U)
    return residuals, left[..., 3 * F : 4 * F, :], left[..., 4 * F : 5 * F, :], left[..., 5 * F :, :]


class _Rooms(threading.local):
    """To make room takes as long as to score a short sample."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], Work] = {}


_ROOMS = _Rooms()


@without_counting
def score(
    typing: Typing, templates: Templates, shared: Shared, sessions: Sessions, work: Work, asked: Asked
) -> None:
    """Fill in what is asked; `filled` sees to it that shapes fit."""
    offsets, classes = typing.offsets, typing.classes
    going = len(sessions.row) > 0
    K = 1 if going else len(templates.own.mean)
    U, F = K + templates.beside.mean.shape[1], typing.y.shape[1]
    n_terms, n_residuals = asked.terms.shape[2], asked.residuals.shape[2]
    for q in range(len(offsets) - 1):
        row, position, last = 0, 0, -1
        if going:
            row, position, last = sessions.row[q], sessions.position[q], sessions.before[q]
        for begin in range(0, U, TEMPLATES):
            size = min(TEMPLATES, U - begin)
            own = max(min(K - begin, size), 0)
            detailed = max(min(size, max(n_terms, n_residuals) - begin), 0)
            block = Block(begin, size, detailed, own, row + begin, max(begin - K, 0))
            _lay_out(templates, work, block)
            _begin_sample(shared, work, block)
            if position > 0:
                for k in range(len(work.left)):
                    for u in range(size):
                        work.left[k, u] = sessions.left[row, k, begin + u]
            for n in range(offsets[q], offsets[q + 1]):
                place = position + n - offsets[q]
                if place < 0:
                    _tell_nothing(asked, n, block)
                    continue
                before = classes[n - 1] if n > offsets[q] else last
                event = Event(typing.y[n], typing.cell[n], before if place > 0 else -1, classes[n], place % 3)
                _step(event, templates, shared, work, block)
                if asked.events.size > 0:
                    for u in range(size):
                        asked.events[n, begin + u] = math.log(work.density[u])
                if asked.states.size > 0 and begin == 0:
                    for s in range(asked.states.shape[1]):
                        asked.states[n, s] = work.alpha[s, 0]
                _add_term(work, block)
                for f in range(F):
                    for u in range(min(size, n_terms - begin)):
                        asked.terms[n, f, begin + u] = work.terms[f, u]
                    for u in range(min(size, n_residuals - begin)):
                        asked.residuals[n, f, begin + u] = work.gap[f, u]
            if going and position + offsets[q + 1] > offsets[q]:
                for k in range(len(work.left)):
                    for u in range(size):
                        sessions.left[row, k, begin + u] = work.left[k, u]
            if asked.samples.size > 0:
                for u in range(size):
                    asked.samples[q, begin + u] = work.total[u] + math.log(work.running[u])


@merged
def _lay_out(templates: Templates, work: Work, block: Block) -> None:
    """The slopes and gains of the templates of a block."""
    own, beside = templates
    for u in range(block.size):
        row, column = block.row + u, block.beside + u - block.own
        for f in range(len(work.per_gain)):
            work.per_gain[f, u] = own.per_gain[row, f] if u < block.own else beside.per_gain[f, column]
            for j in range(3):
                slope = own.slopes[row, f, j] if u < block.own else beside.slopes[f, j, column]
                work.slopes[f, j, u] = slope


@merged
def _tell_nothing(asked: Asked, n: int, block: Block) -> None:
    """NaN, where there is no event."""
    for u in range(min(block.size, asked.events.shape[1])):
        asked.events[n, block.begin + u] = np.nan
    for s in range(asked.states.shape[1]):
        asked.states[n, s] = np.nan


@merged
def _begin_sample(shared: Shared, work: Work, block: Block) -> None:
    """Nothing came before: d = 0, P = 1/η."""
    for u in range(block.size):
        work.total[u], work.running[u] = 0.0, 1.0
    for k in range(len(work.left)):
        for u in range(block.size):
            work.left[k, u] = 0.0
    for f in range(len(shared.tempo)):
        for u in range(block.size):
            work.unsure[f, u] = shared.tempo[f]


@merged
def _step(event: Event, templates: Templates, shared: Shared, work: Work, block: Block) -> None:
    """Σ_s α⁻_s Π_f t(e_f) of one event, in `density`; then the hidden states and the tempo after it."""
    _predict_states(event, shared, work, block)
    for u in range(block.size):
        work.factor[u], work.density[u] = 1.0, 0.0
    for f in range(len(event.y)):
        if np.isnan(event.y[f]):
            for u in range(block.size):
                work.r[event.place, f, u] = 0.0
            for u in range(block.detailed):
                work.terms[f, u], work.gap[f, u] = 0.0, np.nan
        else:
            _take_residual(event, templates, shared.parents, work, block, f)
            _weigh_states(shared, work, block, f)
            _tell_detail(work, block, f)
    _filter_states(shared, work, block)
    for f in range(len(event.y)):
        if not np.isnan(event.y[f]):
            _follow_tempo(shared, work, block, f)
        _forget_tempo(shared, work, block, f)


@merged
def _predict_states(event: Event, shared: Shared, work: Work, block: Block) -> None:
    """α⁻: the states before the event is seen."""
    alpha, likely = work.alpha, work.likely
    for s in range(len(shared.start)):
        at_first = shared.start[s] if event.before < 0 else 0.0
        for u in range(block.size):
            likely[s, u] = at_first
        if event.before >= 0:
            for i in range(len(shared.start)):
                rate = shared.transitions[event.before, event.key, i, s]
                for u in range(block.size):
                    likely[s, u] += alpha[i, u] * rate


@merged
def _take_residual(
    event: Event, templates: Templates, parents: Integers, work: Work, block: Block, f: int
) -> None:
    """r = (y − μ) / scale, and e = (r − Σ β clip(parent)) / g; `factor` collects the scales."""
    own, beside = templates
    r, e, factor, per_gain = work.r, work.e, work.factor, work.per_gain
    y, c, now = event.y[f], event.cell[f], event.place
    for u in range(block.own):
        r[now, f, u] = (y - own.mean[block.row + u, c]) * own.per_scale[block.row + u, c]
        factor[u] *= own.per_scale[block.row + u, c] * per_gain[f, u]
    for u in range(block.size - block.own):
        v = block.own + u
        r[now, f, v] = (y - beside.mean[c, block.beside + u]) * beside.per_scale[c, block.beside + u]
        factor[v] *= beside.per_scale[c, block.beside + u] * per_gain[f, v]
    for u in range(block.size):
        e[f, u] = r[now, f, u]
    for j in range(3):
        of, then = parents[f, j, 0], (now + 3 - parents[f, j, 1]) % 3
        if of >= 0:
            for u in range(block.size):
                e[f, u] -= work.slopes[f, j, u] * min(max(r[then, of, u], -CLIP), CLIP)
    for u in range(block.size):
        e[f, u] *= per_gain[f, u]


@merged
def _weigh_states(shared: Shared, work: Work, block: Block, f: int) -> None:
    """Student t with an even ν: (1 + z²/(ν v)) to the power −(ν + 1)/2, divided by √v, v = c² + 1/P."""
    e, d, unsure, likely, ratio = work.e, work.d, work.unsure, work.likely, work.ratio
    for s in range(len(shared.start)):
        location, square = shared.location[s, f], shared.width[s, f] * shared.width[s, f]
        degrees, constant, per_degree = shared.degrees[s], shared.constant[s], 1.0 / shared.degrees[s]
        for u in range(block.size):
            gap = e[f, u] - d[f, u] - location
            spread = square + unsure[f, u]
            per_root = 1.0 / math.sqrt(spread + gap * gap * per_degree)
            ratio[u] = spread * per_root * per_root
            likely[s, u] *= constant * per_root
        for _ in range(degrees // 2):
            for u in range(block.size):
                likely[s, u] *= ratio[u]


@merged
def _tell_detail(work: Work, block: Block, f: int) -> None:
    """What the feature adds to the event's term, and e − d; `density` has the term so far."""
    for u in range(block.detailed):
        dense = 0.0
        for s in range(len(work.likely)):
            dense += work.likely[s, u]
        term = math.log(max(dense * work.factor[u], LEAST_DENSITY))
        work.terms[f, u], work.density[u] = term - work.density[u], term
        work.gap[f, u] = work.e[f, u] - work.d[f, u]


@merged
def _filter_states(shared: Shared, work: Work, block: Block) -> None:
    """α, and the density of the event."""
    alpha, likely, density, per_density = work.alpha, work.likely, work.density, work.weight
    for u in range(block.size):
        density[u] = 0.0
    for s in range(len(shared.start)):
        for u in range(block.size):
            density[u] += likely[s, u]
    for u in range(block.size):
        per_density[u] = 1.0 / density[u] if density[u] > 0.0 else 0.0
    for s in range(len(shared.start)):
        start = shared.start[s]
        for u in range(block.size):
            alpha[s, u] = likely[s, u] * per_density[u] if density[u] > 0.0 else start
    for u in range(block.size):
        density[u] = max(density[u] * work.factor[u], LEAST_DENSITY)


@merged
def _add_term(work: Work, block: Block) -> None:
    """Add the event to its sample: densities are multiplied while that is safe; logarithms take long."""
    density, running, total = work.density, work.running, work.total
    for u in range(block.size):
        product = running[u] * density[u]
        if product < SMALLEST_PRODUCT or product > 1.0 / SMALLEST_PRODUCT:
            total[u] += math.log(running[u]) + math.log(density[u])
            product = 1.0
        running[u] = product


@merged
def _follow_tempo(shared: Shared, work: Work, block: Block, f: int) -> None:
    """P += Σ_s w_s and d += Σ_s w_s z / P, with w_s = α_s (ν_s + 1)/(ν_s + z²/c_s²)/c_s²."""
    e, d, unsure, alpha, weight, product = work.e, work.d, work.unsure, work.alpha, work.weight, work.product
    for u in range(block.size):
        weight[u], product[u] = 0.0, 0.0
    for s in range(len(shared.start)):
        location, nu = shared.location[s, f], shared.degrees[s] + 1.0
        square = shared.degrees[s] * shared.width[s, f] * shared.width[s, f]
        for u in range(block.size):
            gap = e[f, u] - d[f, u] - location
            part = alpha[s, u] * nu / (square + gap * gap)
            weight[u] += part
            product[u] += part * gap
    for u in range(block.size):
        unsure[f, u] /= 1.0 + unsure[f, u] * weight[u]
        d[f, u] += unsure[f, u] * product[u]


@merged
def _forget_tempo(shared: Shared, work: Work, block: Block, f: int) -> None:
    """d ← (1 − φ) d and 1/P ← (1 − φ)²/P + (1 − (1 − φ)²) η."""
    kept = (1.0 - FORGET) ** 2
    d, unsure, renewed = work.d, work.unsure, (1.0 - kept) * shared.tempo[f]
    for u in range(block.size):
        d[f, u] *= 1.0 - FORGET
        unsure[f, u] = kept * unsure[f, u] + renewed
