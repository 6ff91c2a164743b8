"""Score events one by one under many templates: densities, hidden states and tempos. Compiled.

A sample's score is the sum of its events' terms. An event's term needs the next key, on which the cell of the
hold depends. `score` processes whole samples, or the next events of sessions in progress. The innermost loops
run over templates, which are independent, so that the machine computes several at a time. Nothing is
allocated here, so the loops need no reference counting.
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, merged, without_counting
from keydyn.population.features import CLIP, Typing

# The share of a sample's tempo that is forgotten with each event.
FORGET = 0.02
# The least density of an event, which is the product over its features.
LEAST_DENSITY = 1e-300
# Densities of a sample's events are multiplied until the product leaves the range from this to its inverse.
SMALLEST_PRODUCT = 1e-200
# The number of templates processed together; their data fit into the fastest cache.
TEMPLATES = 128


class TemplateColumns(NamedTuple):
    """The arrays of templates, side by side along the last axis, or one after the other along the first.

    Side by side, `mean` is (C, U) and `slopes` is (F, 3, U); `per_scale`, (C, U), and `per_gain`, (F, U), are
    the inverses of scales and gains, because division is slow.
    """

    mean: Floats
    per_scale: Floats
    slopes: Floats
    per_gain: Floats


class Templates(NamedTuple):
    """The templates to score under: some one after the other, then others side by side."""

    own: TemplateColumns
    beside: TemplateColumns


class Shared(NamedTuple):
    """What all templates share: η, (F,), the parents of residuals, (F, 3, 2), and the hidden chain."""

    tempo: Floats
    parents: Integers
    start: Floats
    transitions: Floats
    location: Floats
    width: Floats
    degrees: Integers
    constant: Floats


class Asked(NamedTuple):
    """Arrays that `score` fills in, except those that are empty."""

    # (n, U) and (N, U) log-densities
    samples: Floats = np.empty((0, 0))
    events: Floats = np.empty((0, 0))
    # (N, F, K) term of each feature in an event's log-density, under the first K templates
    terms: Floats = np.empty((0, 0, 0))
    # (N, F, K) e − d under the first K templates, NaN where a value is missing
    residuals: Floats = np.empty((0, 0, 0))
    # (N, S) probability of the hidden states at each event, given the earlier ones, under the first template
    states: Floats = np.empty((0, 0))


class Sessions(NamedTuple):
    """The sessions that samples continue; without rows, samples are whole.

    Each session has a template of its own, in its row, besides those that all sessions share.
    """

    # (n,) for each sample: its session, the position of its first event there, and the class of the key
    # before it. A position below 0 is no event
    row: Integers
    position: Integers
    before: Integers
    left: Floats  # (K, 5 F + S, U) the state after the last event of each session, as in `Work.left`


_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)
WHOLE = Sessions(_NO_ROWS, _NO_ROWS, _NO_ROWS, np.zeros((0, 0, 0)))


class Event(NamedTuple):
    """Values and cells, (F,), classes of the previous key (−1 if none) and this one, and position mod 3."""

    y: Floats
    cell: Integers
    before: int
    key: int
    place: int


class Block(NamedTuple):
    """Templates that are processed together: `size` of them from `begin` on, the first `detailed` in detail.

    The first `own` are rows from `row` on; `beside` is the column of the next. Loops run over whole `eights`,
    because the machine computes eight templates at a time.
    """

    begin: int
    size: int
    eights: int
    detailed: int
    own: int
    row: int
    beside: int


class Work(NamedTuple):
    """The state of a block of T templates after the events so far, and work arrays for the current event."""

    left: Floats  # (5 F + S, T) the next four arrays in one
    r: Floats  # (3, F, T) residuals of this event and the two before, those of event n at n modulo 3
    # (F, T) the tempo and its variance, 1/P
    d: Floats
    unsure: Floats
    alpha: Floats  # (S, T) probability of the hidden states
    # (T,) the logarithm of the sample's density is `total` + ln `running`
    total: Floats
    running: Floats
    terms: Floats  # (F, T) term of each feature, for detailed templates
    gap: Floats  # (F, T) e − d
    # (F, 3, T) and (F, T) of the templates
    slopes: Floats
    per_gain: Floats
    # Work arrays
    dense: Floats
    likely: Floats
    factor: Floats
    density: Floats
    ratio: Floats
    weight: Floats
    product: Floats

    @classmethod
    def room(cls, F: int, S: int) -> Work:
        """Work arrays for F features and S states; each thread keeps its own."""
        if (F, S) not in _ROOMS.made:
            left = np.zeros((5 * F + S, TEMPLATES))
            shapes = (), (), (F,), (F,), (F, 3), (F,), (F,), (S,), (), (), (), (), ()
            room = (np.empty((*shape, TEMPLATES)) for shape in shapes)
            _ROOMS.made[F, S] = cls(left, *parts_left(left, F), *room)
        return _ROOMS.made[F, S]


def parts_left(left: Floats, F: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Views of residuals (…, 3, F, U), tempo and its variance (…, F, U), and hidden states (…, S, U)."""
    *n, _, U = left.shape
    residuals = left[..., : 3 * F, :].reshape(*n, 3, F, U)
    return residuals, left[..., 3 * F : 4 * F, :], left[..., 4 * F : 5 * F, :], left[..., 5 * F :, :]


class _Rooms(threading.local):
    """Each thread's work arrays, kept because making them takes as long as scoring a short sample."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], Work] = {}


_ROOMS = _Rooms()


@without_counting
def score(
    typing: Typing, templates: Templates, shared: Shared, sessions: Sessions, work: Work, asked: Asked
) -> None:
    """Fill in `asked`; the caller ensures that shapes fit, as `filled` does."""
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
            block = Block(begin, size, (size + 7) // 8, detailed, own, row + begin, max(begin - K, 0))
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
                for f in range(F):
                    for u in range(min(size, n_terms - begin)):
                        asked.terms[n, f, begin + u] = work.terms[f, u]
                    for u in range(min(size, n_residuals - begin)):
                        away = work.gap[f, u] if not np.isnan(event.y[f]) else np.nan
                        asked.residuals[n, f, begin + u] = away
            if going and position + offsets[q + 1] > offsets[q]:
                for k in range(len(work.left)):
                    for u in range(size):
                        sessions.left[row, k, begin + u] = work.left[k, u]
            if asked.samples.size > 0:
                for u in range(size):
                    asked.samples[q, begin + u] = work.total[u] + math.log(work.running[u])


@merged
def _lay_out(templates: Templates, work: Work, block: Block) -> None:
    """Copy the slopes and gains of a block's templates; lanes without a template get those of the last."""
    own, beside = templates
    for u in range(8 * block.eights):
        v = min(u, block.size - 1)
        row, column = block.row + v, block.beside + v - block.own
        for f in range(len(work.per_gain)):
            work.per_gain[f, u] = own.per_gain[row, f] if v < block.own else beside.per_gain[f, column]
            for j in range(3):
                slope = own.slopes[row, f, j] if v < block.own else beside.slopes[f, j, column]
                work.slopes[f, j, u] = slope


@merged
def _tell_nothing(asked: Asked, n: int, block: Block) -> None:
    """Fill in NaN where there is no event."""
    for u in range(min(block.size, asked.events.shape[1])):
        asked.events[n, block.begin + u] = np.nan
    for s in range(asked.states.shape[1]):
        asked.states[n, s] = np.nan


@merged
def _begin_sample(shared: Shared, work: Work, block: Block) -> None:
    """Reset the state for the start of a sample: d = 0, P = 1/η."""
    for u in range(8 * block.eights):
        work.total[u], work.running[u] = 0.0, 1.0
    for k in range(len(work.left)):
        for u in range(8 * block.eights):
            work.left[k, u] = 0.0
    for f in range(len(shared.tempo)):
        for u in range(8 * block.eights):
            work.unsure[f, u] = shared.tempo[f]


@merged
def _step(event: Event, templates: Templates, shared: Shared, work: Work, block: Block) -> None:
    """Compute Σ_s α⁻_s Π_f t(e_f) of one event in `density`, then update hidden states and tempo."""
    _predict_states(event, shared, work, block)
    for u in range(8 * block.eights):
        work.factor[u], work.density[u] = 1.0, 0.0
    for f in range(len(event.y)):
        if np.isnan(event.y[f]):
            for u in range(8 * block.eights):
                work.r[event.place, f, u] = 0.0
        else:
            _take_residual(event, templates, shared.parents, work, block, f)
    for u in range(block.detailed):
        _tell_detail(event.y, shared, work, u)
    for s in range(len(shared.start)):
        _weigh_state(event.y, shared, work, block, s)
    _filter_states(shared, work, block)
    for f in range(len(event.y)):
        _follow_tempo(event.y[f], shared, work, block, f)


@merged
def _predict_states(event: Event, shared: Shared, work: Work, block: Block) -> None:
    """Compute α⁻, the probability of the states before the event is seen."""
    alpha, likely = work.alpha, work.likely
    for s in range(len(shared.start)):
        at_first = shared.start[s] if event.before < 0 else 0.0
        for u in range(8 * block.eights):
            likely[s, u] = at_first
        if event.before >= 0:
            for i in range(len(shared.start)):
                rate = shared.transitions[event.before, event.key, i, s]
                for u in range(8 * block.eights):
                    likely[s, u] += alpha[i, u] * rate


@merged
def _take_residual(
    event: Event, templates: Templates, parents: Integers, work: Work, block: Block, f: int
) -> None:
    """Compute r = (y − μ) / scale and e − d, e = (r − Σ β clip(parent)) / g; `factor` collects the scales."""
    own, beside = templates
    r, gap, factor, per_gain = work.r, work.gap, work.factor, work.per_gain
    y, c, now = event.y[f], event.cell[f], event.place
    for u in range(block.own):
        r[now, f, u] = (y - own.mean[block.row + u, c]) * own.per_scale[block.row + u, c]
        factor[u] *= own.per_scale[block.row + u, c] * per_gain[f, u]
    for u in range(block.size - block.own):
        v = block.own + u
        r[now, f, v] = (y - beside.mean[c, block.beside + u]) * beside.per_scale[c, block.beside + u]
        factor[v] *= beside.per_scale[c, block.beside + u] * per_gain[f, v]
    for u in range(8 * block.eights):
        gap[f, u] = r[now, f, u]
    for j in range(3):
        of, then = parents[f, j, 0], (now + 3 - parents[f, j, 1]) % 3
        if of >= 0:
            for u in range(8 * block.eights):
                gap[f, u] -= work.slopes[f, j, u] * min(max(r[then, of, u], -CLIP), CLIP)
    for u in range(8 * block.eights):
        gap[f, u] = gap[f, u] * per_gain[f, u] - work.d[f, u]
    for u in range(block.detailed):
        work.terms[f, u] = factor[u]


@merged
def _tell_detail(y: Floats, shared: Shared, work: Work, u: int) -> None:
    """Compute the term of each feature under a template; `terms` holds the scales so far."""
    terms, dense = work.terms, work.dense
    for f in range(len(y)):
        dense[f, u] = 0.0
    for s in range(len(shared.start)):
        part = work.likely[s, u]
        for f in range(len(y)):
            if not np.isnan(y[f]):
                spread = shared.width[s, f] * shared.width[s, f] + work.unsure[f, u]
                away = work.gap[f, u] - shared.location[s, f]
                ratio = spread / (spread + away * away / shared.degrees[s])
                part *= shared.constant[s] * math.sqrt(ratio / spread) * ratio ** (shared.degrees[s] // 2)
            dense[f, u] += part
    last = 0.0
    for f in range(len(y)):
        term = last if np.isnan(y[f]) else math.log(max(dense[f, u] * terms[f, u], LEAST_DENSITY))
        terms[f, u], last = term - last, term


@merged
def _weigh_state(y: Floats, shared: Shared, work: Work, block: Block, s: int) -> None:
    """Multiply in Student t with even ν: (1 + z²/(ν v)) to the power −(ν + 1)/2, over √v, v = c² + 1/P.

    This is done for all features together, because roots and quotients are slow.
    """
    gap, unsure, likely, ratio, product = work.gap, work.unsure, work.likely, work.ratio, work.product
    per_degree, constant = 1.0 / shared.degrees[s], 1.0
    for u in range(8 * block.eights):
        ratio[u], product[u] = 1.0, 1.0
    for f in range(len(y)):
        if not np.isnan(y[f]):
            location, square = shared.location[s, f], shared.width[s, f] * shared.width[s, f]
            constant *= shared.constant[s]
            for u in range(8 * block.eights):
                away = gap[f, u] - location
                spread = square + unsure[f, u]
                ratio[u] *= spread
                product[u] *= spread + away * away * per_degree
    for u in range(8 * block.eights):
        per_root = 1.0 / math.sqrt(product[u])
        ratio[u] *= per_root * per_root
        likely[s, u] *= constant * per_root
    for _ in range(shared.degrees[s] // 2):
        for u in range(8 * block.eights):
            likely[s, u] *= ratio[u]
    for u in range(8 * block.eights):
        work.density[u] += likely[s, u]


@merged
def _filter_states(shared: Shared, work: Work, block: Block) -> None:
    """Compute α and the density of the event, and add it to that of the sample.

    Densities are multiplied while that is safe, because logarithms are slow. If no state is likely at all,
    α is the start probability.
    """
    alpha, likely, density, per_density = work.alpha, work.likely, work.density, work.weight
    running, product, total = work.running, work.product, work.total
    for u in range(8 * block.eights):
        per_density[u] = 1.0 / (density[u] + LEAST_DENSITY)
        density[u] = max(density[u] * work.factor[u], LEAST_DENSITY)
    for s in range(len(shared.start)):
        least = shared.start[s] * LEAST_DENSITY
        for u in range(8 * block.eights):
            alpha[s, u] = (likely[s, u] + least) * per_density[u]
    unsafe = 0
    for u in range(8 * block.eights):
        product[u] = running[u] * density[u]
        unsafe += product[u] < SMALLEST_PRODUCT or product[u] > 1.0 / SMALLEST_PRODUCT
    for u in range(8 * block.eights):
        if unsafe and (product[u] < SMALLEST_PRODUCT or product[u] > 1.0 / SMALLEST_PRODUCT):
            total[u] += math.log(running[u]) + math.log(density[u])
            product[u] = 1.0
        running[u] = product[u]


@merged
def _follow_tempo(y: float, shared: Shared, work: Work, block: Block, f: int) -> None:
    """Update P += Σ_s w_s and d += Σ_s w_s z / P, with w_s = α_s (ν_s + 1)/(ν_s + z²/c_s²)/c_s².

    Then forget some of it: d ← (1 − φ) d and 1/P ← (1 − φ)²/P + (1 − (1 − φ)²) η.
    """
    gap, d, unsure, alpha = work.gap, work.d, work.unsure, work.alpha
    weight, product = work.weight, work.product
    for u in range(8 * block.eights):
        weight[u], product[u] = 0.0, 0.0
    for s in range(len(shared.start) if not np.isnan(y) else 0):
        location, nu = shared.location[s, f], shared.degrees[s] + 1.0
        square = shared.degrees[s] * shared.width[s, f] * shared.width[s, f]
        for u in range(8 * block.eights):
            away = gap[f, u] - location
            part = alpha[s, u] * nu / (square + away * away)
            weight[u] += part
            product[u] += part * away
    kept = (1.0 - FORGET) ** 2
    renewed = (1.0 - kept) * shared.tempo[f]
    for u in range(8 * block.eights):
        known = unsure[f, u] / (1.0 + unsure[f, u] * weight[u])
        d[f, u] = (1.0 - FORGET) * (d[f, u] + known * product[u])
        unsure[f, u] = kept * known + renewed
